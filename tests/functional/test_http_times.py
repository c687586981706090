# SPDX-License-Identifier: Apache-2.0
"""last-modified and cache-control of every route, from microversion 1.15 on."""

import datetime
from email import utils

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.http import routes
from tests import base, http

# What the answer to a request has. The time is that of the row, or of the answer.
ROW, NOW, NO_TIME, NOTHING = "row", "now", "no time", "nothing"
LONG_AGO = datetime.datetime(2020, 2, 3, 4, 5, 6, 700000)
LONG_AGO_TEXT = "Mon, 03 Feb 2020 04:05:06 GMT"


class TimesTest(http.HTTPTest):
    version = "1.39"

    def setUp(self):
        super().setUp()
        self.uuid, self.empty = self.make(VCPU={"total": 8}), self.make()
        self.consumer = base.new_uuid()
        self.api.create_trait(None, "CUSTOM_A")
        self.api.set_provider_traits(None, self.uuid, ["CUSTOM_A"])
        self.api.resource_class_create(None, "CUSTOM_B")
        self.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}, self.consumer))

        def age(tx):
            for table in models.metadata.sorted_tables:
                if "updated_at" in table.c and table.name not in ("services", "relay_state"):
                    tx.execute(sa.update(table).values(
                        created_at=LONG_AGO, updated_at=LONG_AGO))

        self.database.write(age)

    def requests(self):
        """Yield method, path, body and what the answer has, for every route and shape."""
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
            ("/resource_pools", ROW), (f"/resource_pools/{self.uuid}", ROW)))
        yield "PUT", "/traits/CUSTOM_A", None, ROW
        yield "PUT", "/traits/CUSTOM_NEW", None, NOW
        yield "PUT", "/resource_classes/CUSTOM_B", None, NOTHING
        yield "PUT", "/resource_classes/CUSTOM_NEW", None, NOTHING
        yield "POST", "/resource_classes", {"name": "CUSTOM_NEW_2"}, NOTHING
        yield "POST", "/resource_providers", {"name": "new"}, NOW
        yield "POST", "/resource_providers?request", {"resources": {"VCPU": 1}}, NOW
        yield "POST", "/resource_providers?explain", {"resources": {"VCPU": 1}}, NOW
        yield "PUT", one, {"name": f"provider {self.uuid}"}, ROW
        yield "PUT", empty, {"name": "renamed"}, NOW
        generation = {"resource_provider_generation": 1}
        yield "PUT", f"{empty}/inventories", {**generation, "inventories": {}}, NO_TIME
        yield "PUT", f"{empty}/inventories", {
            **generation, "inventories": {"VCPU": {"total": 1}}}, NOW
        generation["resource_provider_generation"] = 2
        yield "PUT", f"{empty}/inventories/VCPU", {**generation, "total": 2}, NOW
        yield "POST", f"{empty}/inventories", {"resource_class": "DISK_GB", "total": 2}, NOW
        generation["resource_provider_generation"] = 4
        yield "PUT", f"{empty}/aggregates", {**generation, "aggregates": [self.uuid]}, NOW
        generation["resource_provider_generation"] = 5
        yield "PUT", f"{empty}/traits", {**generation, "traits": ["CUSTOM_A"]}, NOW
        for path in (f"{empty}/traits", f"{empty}/inventories/DISK_GB", f"{empty}/inventories",
                     f"/allocations/{self.consumer}", empty, "/resource_classes/CUSTOM_NEW",
                     "/traits/CUSTOM_NEW"):
            yield "DELETE", path, None, NOTHING

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
        for method, path, body, what in self.requests():
            answer = self.send(method, path, body)
            self.assertLess(answer.status_code, 300, f"{method} {path}: {answer.text}")
            self.check(what, answer, (method, path))

    def test_none_before_1_15(self):
        for method, path, _body, _what in self.requests():
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

    def test_no_address_is_missing(self):
        """Each address is among the requests, but those that test_http_pools and others have."""
        known = {path.partition("?")[0].replace(self.uuid, "{uuid}").replace(
            self.empty, "{uuid}") for _, path, _, _ in self.requests()}
        for route in routes.ROUTES:
            if not route.path.startswith("/resource_pools") and "{uuid}" in route.path:
                pattern = route.path.replace("{resource_class}", "VCPU")
                self.assertIn(pattern, known)
