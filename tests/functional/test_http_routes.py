# SPDX-License-Identifier: Apache-2.0
"""Every route: how many calls a request is, and from microversion 1.15 on its times."""

import datetime
from email import utils

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.http import microversion, routes
from tests import base, http

# What the answer to a request has. The time is that of the row, or of the answer.
ROW, NOW, NO_TIME, NOTHING = "row", "now", "no time", "nothing"
LONG_AGO = datetime.datetime(2020, 2, 3, 4, 5, 6, 700000)
LONG_AGO_TEXT = "Mon, 03 Feb 2020 04:05:06 GMT"


class _RoutesTest(http.HTTPTest):
    """A service whose rows are old, and a request of each shape that each route has."""

    version = "1.39"

    def setUp(self):
        super().setUp()
        self.uuid, self.empty = self.make(VCPU={"total": 8}), self.make()
        self.child = self.api.create_provider(
            None, "child", parent_provider_uuid=self.uuid).uuid
        self.consumer = base.new_uuid()
        self.api.create_trait(None, "CUSTOM_A")
        self.api.set_provider_traits(None, self.uuid, ["CUSTOM_A"])
        self.api.resource_class_create(None, "CUSTOM_B")
        self.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}, self.consumer))
        self.database.write(self._age)

    @staticmethod
    def _age(tx):
        for table in models.metadata.sorted_tables:
            if "updated_at" in table.c and table.name not in ("services", "relay_state"):
                tx.execute(sa.update(table).values(created_at=LONG_AGO, updated_at=LONG_AGO))

    def requests(self):
        """Yield method, path, body, what the answer has, and a microversion if it is not 1.39."""
        one, empty = f"/resource_providers/{self.uuid}", f"/resource_providers/{self.empty}"
        yield from (("GET", path, None, what) for path, what in (
            ("/", NOW), ("/openapi.json", NOW), ("/resource_providers", ROW),
            ("/resource_providers?name=none", NOW), (one, ROW), (f"{one}/inventories", ROW),
            (f"{empty}/inventories", NO_TIME), (f"{one}/inventories/VCPU", ROW),
            (f"{one}/usages", NOW), (f"{one}/aggregates", NOW), (f"{one}/traits", ROW),
            (f"{empty}/traits", NOW), (f"{one}/allocations", ROW), (f"{empty}/allocations", NOW),
            (f"/allocations/{self.consumer}", ROW), (f"/allocations/{base.new_uuid()}", NOW),
            ("/resource_classes", ROW), ("/resource_classes/CUSTOM_B", ROW),
            ("/resource_classes/VCPU", ROW), ("/traits", ROW), ("/traits?name=in:", NOW),
            ("/traits/CUSTOM_A", ROW), ("/usages?project_id=p", NOW), ("/events", NOTHING),
            ("/provider_summaries", NOW), ("/consumers", NOW),
            (f"/consumers?project_id=p&user_id=u&resource_provider={self.uuid}&limit=5", NOW)))
        # All filters at once.
        yield "GET", (f"/resource_providers?name=n&uuid={self.uuid}&in_tree={self.child}"
                      f"&resources=VCPU:1&required=CUSTOM_A&member_of={self.empty}"
                      f"&member_of=!{self.uuid}&required=!CUSTOM_A"), None, NOW
        yield "GET", "/allocation_candidates?resources=VCPU:1", None, NOW
        yield "GET", (f"/allocation_candidates?resources=VCPU:1&resources_A=VCPU:1&required_B="
                      f"CUSTOM_A&same_subtree=_A,_B&group_policy=none&root_required=!CUSTOM_A"
                      f"&member_of_A=!{self.uuid}&in_tree={self.uuid}&limit=5"), None, NOW
        yield "PUT", "/traits/CUSTOM_A", None, ROW
        yield "PUT", "/traits/CUSTOM_NEW", None, NOW
        yield "PUT", "/resource_classes/CUSTOM_B", None, NOTHING
        yield "PUT", "/resource_classes/CUSTOM_NEW", None, NOTHING
        yield "POST", "/resource_classes", {"name": "CUSTOM_NEW_2"}, NOTHING
        yield "POST", "/resource_providers", {"name": "new"}, NOW
        yield "POST", "/resource_providers?request", {"resources": {"VCPU": 1}}, NOW
        yield "POST", "/resource_providers?explain", {"resources": {"VCPU": 1}}, NOW
        yield "POST", "/resource_providers?headroom", {"resources": {"VCPU": 1}}, NOW
        yield "PUT", one, {"name": f"provider {self.uuid}"}, ROW
        yield "PUT", empty, {"name": "renamed", "parent_provider_uuid": None}, NOW
        yield from self._changes(empty)
        yield "PUT", f"/allocations/{self.consumer}", {
            "allocations": [{"resource_provider": {"uuid": self.uuid}, "resources": {"VCPU": 2}}],
            "project_id": "p", "user_id": "u"}, NOTHING, "1.8"
        claim = {"allocations": {self.uuid: {"resources": {"VCPU": 1}}}, "project_id": "p",
                 "user_id": "u", "consumer_type": "INSTANCE"}
        yield "PUT", f"/allocations/{self.consumer}", {**claim, "consumer_generation": 2}, NOTHING
        yield "POST", "/allocations", {
            self.consumer: {**claim, "consumer_generation": 3},
            base.new_uuid(): {**claim, "consumer_generation": None}}, NOTHING
        yield "POST", "/reshaper", {"allocations": {}, "inventories": {self.child: {
            "resource_provider_generation": 0, "inventories": {"VCPU": {"total": 1}}}}}, NOTHING
        for path in (f"{empty}/traits", f"{empty}/inventories/DISK_GB", f"{empty}/inventories",
                     f"/allocations/{self.consumer}", empty, "/resource_classes/CUSTOM_NEW",
                     "/traits/CUSTOM_NEW"):
            yield "DELETE", path, None, NOTHING

    def _changes(self, path):
        """Yield the requests that change what is below a provider."""
        for generation, below, body, what in (
                (1, "/inventories", {"inventories": {}}, NO_TIME),
                (1, "/inventories", {"inventories": {"VCPU": {"total": 1}}}, NOW),
                (2, "/inventories/VCPU", {"total": 2}, NOW),
                (4, "/aggregates", {"aggregates": [self.uuid]}, NOW),
                (5, "/traits", {"traits": ["CUSTOM_A"]}, NOW)):
            if generation == 4:
                yield "POST", f"{path}/inventories", {
                    "resource_class": "DISK_GB", "total": 2}, NOW
            body["resource_provider_generation"] = generation
            yield "PUT", f"{path}{below}", body, what

    def pools(self):
        """Yield the same for the routes of pools."""
        one, empty = f"/resource_pools/{self.uuid}", f"/resource_pools/{self.empty}"
        for path in ("", "/inventories", "/inventories/VCPU", "/usages", "/aggregates"):
            yield "GET", f"{one}{path}", None, NOW if path in ("/usages", "/aggregates") else ROW
        yield "GET", "/resource_pools", None, ROW
        yield "POST", "/resource_pools", {"name": "pool"}, NOTHING
        yield "POST", f"{empty}/inventories", {"resource_class": "VCPU", "total": 1}, NOTHING
        yield "PUT", f"{empty}/inventories/VCPU", {"total": 2}, NOTHING
        yield "PUT", f"{empty}/aggregates", [self.uuid], NOTHING
        yield "PUT", empty, {"name": "renamed"}, NOTHING
        yield "DELETE", f"{empty}/inventories/VCPU", None, NOTHING
        yield "DELETE", empty, None, NOTHING

    def answered(self, method, path, body, version=None):
        """Send a request, and check that it succeeds."""
        # A PUT of a pool needs it, and everything else takes it.
        headers = {"If_Match": "*"} if path.startswith("/resource_pools/") else {}
        # The reshaper is for services.
        headers["X_Roles"] = "admin,service"
        answer = self.send(method, path, body, version=version, **headers)
        self.assertLess(answer.status_code, 300, f"{method} {path}: {answer.text}")
        return answer


class CallsTest(_RoutesTest):
    """Each request is one call to the service at most."""

    def setUp(self):
        super().setUp()
        self.calls, make = [], self.api.sender.call

        def call(context, method, *args, **kwargs):
            self.calls.append(method)
            return make(context, method, *args, **kwargs)

        self.patch(self.api.sender, "call", call)

    def check(self, requests):
        for method, path, body, _, *version in requests:
            self.calls.clear()
            self.answered(method, path, body, *version)
            self.assertLessEqual(len(self.calls), 1, (method, path, self.calls))

    def test_every_route(self):
        self.check(self.requests())

    def test_every_route_of_pools(self):
        self.check(self.pools())

    def test_with_an_entity_tag(self):
        path = f"/resource_providers/{self.uuid}"
        for method, body in (("GET", None), ("PUT", {"name": "tagged"})):
            etag = self.send("GET", path).headers["etag"]
            self.calls.clear()
            self.assertEqual(200, self.send(method, path, body, If_Match=etag).status_code)
            self.assertEqual(1, len(self.calls))

    def test_what_is_refused(self):
        for method, path, body, calls in (
                ("PUT", f"/resource_providers/{self.uuid}", {}, 1),
                ("PUT", f"/resource_providers/{base.new_uuid()}", {}, 1),
                ("PUT", f"/resource_providers/{self.uuid}", {"name": "child"}, 1),
                ("PUT", "/resource_providers/pony", {}, 0),
                ("GET", "/resource_providers?name=%20", None, 1),
                ("GET", "/resource_providers?required=pony", None, 0),
                ("POST", "/resource_providers", {}, 0)):
            self.calls.clear()
            self.send(method, path, body)
            self.assertEqual(calls, len(self.calls), (method, path, self.calls))

    def test_no_route_is_missing(self):
        """A request of each route is among the requests."""
        places = [(self.uuid, "{uuid}"), (self.empty, "{uuid}"), ("CUSTOM_NEW_2", "{name}"),
                  ("CUSTOM_NEW", "{name}"), ("CUSTOM_A", "{name}"), ("CUSTOM_B", "{name}"),
                  ("inventories/VCPU", "inventories/{resource_class}"),
                  ("inventories/DISK_GB", "inventories/{resource_class}"),
                  (self.consumer, "{consumer_uuid}")]
        made = set()
        for method, path, *_ in (*self.requests(), *self.pools()):
            path, _, query = path.partition("?")
            for value, place in places:
                path = path.replace(value, place)
            made.add((method, path,
                      query if query in ("request", "explain", "headroom") else None))
        newest = microversion.MAX
        for route in routes.ROUTES:
            if route.since <= newest and not (route.before and route.before <= newest):
                self.assertIn((route.method, route.path, route.variant), made)


class TimesTest(_RoutesTest):

    def check(self, what, answer, request):
        headers = answer.headers
        self.assertEqual(None if what == NOTHING else "no-cache", headers.get("cache-control"),
                         request)
        given = headers.get("last-modified")
        if what in (NOTHING, NO_TIME):
            self.assertIsNone(given, request)
        elif what == ROW:
            self.assertEqual(LONG_AGO_TEXT, given, request)
        else:
            age = datetime.datetime.now(datetime.UTC) - utils.parsedate_to_datetime(given)
            self.assertLess(abs(age), datetime.timedelta(minutes=10), request)

    def test_every_route(self):
        for method, path, body, what, *version in self.requests():
            self.check(what, self.answered(method, path, body, *version), (method, path))

    def test_every_route_of_pools(self):
        for method, path, body, what in self.pools():
            self.check(what, self.answered(method, path, body), (method, path))

    def test_none_before_1_15(self):
        for method, path, *_ in self.requests():
            if method == "GET":
                self.check(NOTHING, self.send(method, path, version="1.14"), path)

    def test_what_is_not_modified_has_them_too(self):
        path = f"/resource_providers/{self.uuid}"
        answer = self.send("GET", path, If_None_Match=self.send("GET", path).headers["etag"])
        self.assertEqual(304, answer.status_code)
        self.check(ROW, answer, path)

    def test_no_error_has_them(self):
        for path in ("/resource_providers/pony", "/traits/CUSTOM_NONE", "/traits?name=pony"):
            answer = self.send("GET", path)
            self.assertGreaterEqual(answer.status_code, 400)
            self.check(NOTHING, answer, path)
