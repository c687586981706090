# SPDX-License-Identifier: Apache-2.0
"""The requests of the commands, and their output for the server's answers."""

import json
import threading
import urllib.parse
from wsgiref import simple_server

import fixtures
from keystoneauth1 import fixture

from placement_rpc.http import microversion
from placement_rpc.osc import plugin
from tests import base
from tests.functional.test_osc_program import Openstack

UUID = "0c5a2b3e-8f0f-4bd0-9d0a-3e1b7b1f6a01"
AGGREGATE = "c9a3f7d8-3c11-4d7c-8f5e-6b7a8c9d0e01"
OTHER = "c9a3f7d8-3c11-4d7c-8f5e-6b7a8c9d0e02"
INVENTORY = {"total": 10, "reserved": 1, "min_unit": 1, "max_unit": 10, "step_size": 1,
              "allocation_ratio": 1.0}
_REASONS = {200: "OK", 201: "Created", 204: "No Content", 400: "Bad Request", 404: "Not Found",
            409: "Conflict", 410: "Gone", 412: "Precondition Failed", 503: "Unavailable"}


class _Silent(simple_server.WSGIRequestHandler):

    def log_message(self, *arguments):
        pass


class StandIn(fixtures.Fixture):
    """A server that gives prepared answers and records requests.

    ``answers`` has a list for each "METHOD /path"; the last of it stays. ``requests`` has the
    same keys with the query, the body and the headers that count.
    """

    def _setUp(self):
        self.answers = {}
        self.requests = []
        server = simple_server.make_server("127.0.0.1", 0, self._serve, handler_class=_Silent)
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)

    def on(self, what, *answers):
        """:param answers: (status, body, headers), of which the last ones may be left out"""
        self.answers[what] = list(answers)

    def asked(self, what):
        """The requests of a kind, each as a dict."""
        return [each for each in self.requests if each["what"] == what]

    def _serve(self, environ, start_response):
        size = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(size)
        what = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        self.requests.append({
            "what": what, "body": json.loads(body) if body else None,
            "query": dict(urllib.parse.parse_qsl(environ["QUERY_STRING"],
                                                 keep_blank_values=True)),
            "if_match": environ.get("HTTP_IF_MATCH"), "roles": environ.get("HTTP_X_ROLES"),
            "token": environ.get("HTTP_X_AUTH_TOKEN"),
            "version": environ.get("HTTP_OPENSTACK_API_VERSION")})
        left = self.answers.get(what) or [(404, error(404, f"nothing is at {what}"))]
        status, document, headers = (*(left.pop(0) if len(left) > 1 else left[0]), None, {})[:3]
        if isinstance(document, (dict, list)):
            document = json.dumps(document).encode()
        start_response(f"{status} {_REASONS[status]}", [
            (name, value) for name, value in {
                "OpenStack-API-Version": "placement 1.39", **(headers or {})}.items() if value])
        return [document or b""]


def error(status, detail, **more):
    return {"errors": [{"status": status, "title": _REASONS[status], "detail": detail, **more}]}


class CommandTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.server = self.useFixture(StandIn())
        self.openstack = self.useFixture(Openstack(self.server.url))

    def run_json(self, *arguments, **how):
        code, out, err = self.openstack(*arguments, "-f", "json", **how)
        self.assertEqual(0, code, err)
        return json.loads(out)

    def refused(self, *arguments):
        """Run a command that fails; return its one line, with nothing on standard output."""
        code, out, err = self.openstack(*arguments)
        self.assertEqual((1, ""), (code, out), err)
        self.assertNotIn("Traceback", err)
        self.assertEqual(1, len(err.splitlines()), err)
        return err.strip()


class VersionTest(base.TestCase):
    """The plugin imports no part of the service, so it repeats the newest microversion."""

    def test_the_newest_is_that_of_the_service(self):
        self.assertEqual(microversion.text(microversion.MAX), plugin.DEFAULT_API_VERSION)


class ProviderTest(CommandTest):

    def provider(self, collection="resource_providers", aggregates=()):
        document = {"uuid": UUID, "name": "share", "generation": 3, "links": []}
        if collection == "resource_pools":
            del document["generation"]
        self.server.on(f"GET /{collection}/{UUID}", (200, document, {"ETag": '"p"'}))
        self.server.on(f"GET /{collection}/{UUID}/aggregates",
                       (200, {"aggregates": list(aggregates)}, {"ETag": '"a"'}))

    def test_roles_are_sent_without_keystone_and_not_with_a_token(self):
        self.server.on("GET /resource_providers", (200, {"resource_providers": []}))
        self.assertEqual([], self.run_json("resource-provider", "list"))
        self.openstack("resource-provider", "list",
                       auth=("--os-auth-type", "admin_token", "--os-token", "secret"))
        without, with_token = self.server.requests
        self.assertEqual(("notused", "admin", "placement 1.4"),
                         (without["token"], without["roles"], without["version"]))
        self.assertEqual(("secret", None), (with_token["token"], with_token["roles"]))

    def test_with_keystone_the_catalog_says_where(self):
        token = fixture.V3Token(project_id="p")
        for name, region in (("wrong", "north"), ("", "south")):
            service = token.add_service("placement")
            service.add_standard_endpoints(public=f"{self.server.url}/{name}", region=region)
        keystone = fixture.V3Discovery(f"{self.server.url}/v3")
        self.server.on("GET /v3", (200, {"version": keystone}))
        self.server.on("POST /v3/auth/tokens", (201, token, {"X-Subject-Token": "fetched"}))
        self.server.on("GET /resource_providers", (200, {"resource_providers": []}))
        self.assertEqual([], self.run_json("resource-provider", "list", auth=(
            "--os-auth-type", "password", "--os-auth-url", f"{self.server.url}/v3",
            "--os-username", "u", "--os-password", "p", "--os-project-id", "p",
            "--os-user-domain-id", "default", "--os-region-name", "south")))
        asked, = self.server.asked("GET /resource_providers")
        self.assertEqual(("fetched", None), (asked["token"], asked["roles"]))

    def test_list_filters(self):
        self.server.on("GET /resource_providers", (200, {"resource_providers": []}))
        self.run_json("resource-provider", "list", "--name", "a b", "--uuid", UUID,
                      "--member-of", f"{AGGREGATE},{OTHER}", "--resource", "VCPU=2",
                      "--resource", "MEMORY_MB=512")
        self.assertEqual(
            {"name": "a b", "uuid": UUID, "member_of": f"in:{AGGREGATE},{OTHER}",
             "resources": "VCPU:2,MEMORY_MB:512"}, self.server.requests[-1]["query"])
        self.run_json("resource-provider", "list", "--member-of", AGGREGATE)
        self.assertEqual({"member_of": AGGREGATE}, self.server.requests[-1]["query"])

    def test_an_option_newer_than_the_chosen_version_is_refused_before_the_request(self):
        old = ("--os-placement-rpc-api-version", "1.1")
        for arguments, needed in (
                (("resource-provider", "list", "--resource", "VCPU=1"), "1.4"),
                (("resource-provider", "list", "--member-of", AGGREGATE), "1.3"),
                (("resource-class", "list"), "1.2")):
            self.assertIn(needed, self.refused(*old, *arguments))
        self.assertEqual([], self.server.requests)

    def test_create_associates_in_a_second_request(self):
        for word, collection in (("resource-provider", "resource_providers"),
                                 ("resource-pool", "resource_pools")):
            self.provider(collection)
            self.server.on(f"POST /{collection}", (
                201, None, {"Location": f"http://elsewhere/{collection}/{UUID}"}))
            self.server.on(f"PUT /{collection}/{UUID}/aggregates", (200, {"aggregates": []}))
            shown = self.run_json(word, "create", "Global NFS share", "--uuid", UUID,
                                  f"--aggregate-uuid={AGGREGATE}")
            self.assertEqual(("share", UUID), (shown["name"], shown["uuid"]))
            self.assertEqual({"name": "Global NFS share", "uuid": UUID},
                             self.server.asked(f"POST /{collection}")[0]["body"])
            put, = self.server.asked(f"PUT /{collection}/{UUID}/aggregates")
            self.assertEqual(([AGGREGATE], '"a"'), (put["body"], put["if_match"]))

    def test_a_provider_that_was_created_and_not_associated_is_reported(self):
        self.server.on("POST /resource_providers", (
            201, None, {"Location": f"/resource_providers/{UUID}"}))
        said = self.refused("resource-provider", "create", "x", "--aggregate-uuid", AGGREGATE)
        self.assertIn(f"{UUID} was created, but not associated", said)

    def test_aggregates_are_added_to_those_of_a_concurrent_change(self):
        self.provider()
        path = f"/resource_providers/{UUID}/aggregates"
        self.server.on(f"GET {path}", (200, {"aggregates": []}, {"ETag": '"1"'}),
                       (200, {"aggregates": [OTHER]}, {"ETag": '"2"'}))
        self.server.on(f"PUT {path}", (412, error(412, "stale")), (200, {"aggregates": []}))
        self.run_json("resource-provider", "add", "aggregate", UUID, AGGREGATE, OTHER)
        first, second = self.server.asked(f"PUT {path}")
        self.assertEqual(([AGGREGATE, OTHER], '"1"'), (first["body"], first["if_match"]))
        self.assertEqual(([OTHER, AGGREGATE], '"2"'), (second["body"], second["if_match"]))

    def test_what_is_no_version(self):
        for version in "1", "1.x":
            code, _, err = self.openstack(
                "--os-placement-rpc-api-version", version, "resource-provider", "list")
            self.assertEqual(1, code)
            # After what the program says itself of versions that it does not know.
            self.assertIn(f"{version!r} is not a version of the API", err.splitlines()[-1])

    def test_delete_aggregate_leaves_the_others(self):
        self.provider("resource_pools", [AGGREGATE, OTHER])
        path = f"/resource_pools/{UUID}/aggregates"
        self.server.on(f"PUT {path}", (204,))
        code, out, err = self.openstack(
            "resource-pool", "delete", "aggregate", UUID, AGGREGATE.upper())
        self.assertEqual((0, ""), (code, out), err)
        self.assertEqual([OTHER], self.server.asked(f"PUT {path}")[0]["body"])
        code, _, err = self.openstack(
            "resource-pool", "delete", "aggregate", UUID, AGGREGATE.replace("-", ""))
        self.assertEqual((0, [OTHER]), (code, self.server.asked(f"PUT {path}")[-1]["body"]), err)
        self.assertIn("not associated", self.refused(
            "resource-pool", "delete", "aggregate", UUID, UUID))

    def test_a_conflict_that_a_retry_cannot_solve_is_shown_at_once(self):
        self.provider()
        self.server.on(f"PUT /resource_providers/{UUID}", (409, error(409, "name in use")))
        self.assertEqual("name in use", self.refused(
            "resource-provider", "update", UUID, "--name", "taken"))
        self.assertEqual(1, len(self.server.asked(f"PUT /resource_providers/{UUID}")))

    def test_a_pool_is_renamed_with_the_etag_it_was_read_with(self):
        self.provider("resource_pools")
        self.server.on(f"PUT /resource_pools/{UUID}", (204,))
        shown = self.run_json("resource-pool", "update", UUID, "--name", "new")
        self.assertEqual({"uuid": UUID, "name": "share", "aggregates": []}, shown)
        put, = self.server.asked(f"PUT /resource_pools/{UUID}")
        self.assertEqual(({"name": "new"}, '"p"'), (put["body"], put["if_match"]))

    def test_delete_goes_on_and_tells_what_was_refused(self):
        self.server.on(f"DELETE /resource_providers/{OTHER}", (204,))
        said = self.refused("resource-provider", "delete", UUID, OTHER)
        self.assertIn("1 of 2 were not deleted", said)
        self.assertIn(UUID, said)
        self.assertTrue(self.server.asked(f"DELETE /resource_providers/{OTHER}"))

    def test_an_address_that_is_no_placement_service(self):
        self.server.on("GET /resource_providers", (200, b"<html>hello</html>"))
        self.assertIn("endpoint", self.refused("resource-provider", "list"))
        # Answers of another service.
        self.server.on("GET /resource_providers", (200, {}, {"OpenStack-API-Version": None}))
        self.server.on("POST /resource_providers", (200, {}))
        self.server.on("GET /events", (200, b""))
        for command in (("resource-provider", "list"), ("resource-provider", "create", "node"),
                        ("event", "list")):
            self.assertIn("endpoint", self.refused(*command))
        self.server.on("GET /resource_providers", (503, b"<html>away</html>"))
        self.assertIn("503 Unavailable", self.refused("resource-provider", "list"))

    def test_the_reason_of_a_validation_error_is_shown(self):
        self.server.on("GET /resource_providers", (400, error(
            400, "JSON does not validate: 0 is less than 1\n\nFailed validating 'minimum'\n{}")))
        self.assertEqual("JSON does not validate: 0 is less than 1",
                         self.refused("resource-provider", "list"))


class InventoryTest(CommandTest):

    def setUp(self):
        super().setUp()
        self.all = f"/resource_providers/{UUID}/inventories"
        self.one = f"{self.all}/DISK_GB"

    def set(self, *arguments):
        return ("resource-provider", "set", "inventory", UUID, "--resource-class=DISK_GB",
                *arguments)

    def test_a_new_one_has_what_was_given(self):
        self.server.on(f"GET {self.one}", (404, error(404, "none")), (200, INVENTORY))
        self.server.on(f"POST {self.all}", (201, INVENTORY))
        shown = self.run_json(*self.set("--total=10", "--allocation-ratio=1.5"))
        self.assertEqual({"resource_class": "DISK_GB", **INVENTORY}, shown)
        self.assertEqual({"resource_class": "DISK_GB", "total": 10, "allocation_ratio": 1.5},
                         self.server.asked(f"POST {self.all}")[0]["body"])

    def test_a_new_one_needs_a_total(self):
        self.assertIn("--total", self.refused(*self.set("--reserved=1")))

    def test_what_is_not_given_stays(self):
        present = {"resource_provider_generation": 4, **INVENTORY}
        self.server.on(f"GET {self.one}", (200, present, {"ETag": '"4"'}))
        self.server.on(f"PUT {self.one}", (200, present))
        self.run_json(*self.set("--total=20", "--reserved=0"))
        put, = self.server.asked(f"PUT {self.one}")
        self.assertEqual({**present, "total": 20, "reserved": 0}, put["body"])
        self.assertEqual('"4"', put["if_match"])

    def test_an_inventory_created_by_a_concurrent_change_is_updated(self):
        present = {"resource_provider_generation": 1, **INVENTORY, "reserved": 5}
        self.server.on(f"GET {self.one}", (404, error(404, "none")), (200, present))
        self.server.on(f"POST {self.all}", (409, error(409, "exists")))
        self.server.on(f"PUT {self.one}", (200, present))
        self.run_json(*self.set("--total=20"))
        self.assertEqual({**present, "total": 20},
                         self.server.asked(f"PUT {self.one}")[0]["body"])

    def test_an_inventory_that_always_changes_ends_with_an_error(self):
        self.useFixture(fixtures.MonkeyPatch("time.sleep", lambda seconds: None))
        self.server.on(f"GET {self.one}", *(
            (200, {"resource_provider_generation": number, **INVENTORY})
            for number in range(50)))
        self.server.on(f"PUT {self.one}", (409, error(409, "generation conflict")))
        self.assertEqual("generation conflict", self.refused(*self.set("--total=20")))
        self.assertEqual(8, len(self.server.asked(f"PUT {self.one}")))

    def test_usage_has_capacity_and_share(self):
        self.server.on(f"GET /resource_providers/{UUID}/usages", (
            200, {"resource_provider_generation": 1, "usages": {"DISK_GB": 3, "VCPU": 1}}))
        self.server.on(f"GET {self.all}", (
            200, {"resource_provider_generation": 1, "inventories": {"DISK_GB": INVENTORY}}))
        self.assertEqual(
            [{"resource_class": "DISK_GB", "used": 3, "capacity": 9, "percent": 33.3},
             {"resource_class": "VCPU", "used": 1, "capacity": None, "percent": None}],
            self.run_json("resource-provider", "usage", UUID))


class AllocationTest(CommandTest):

    def test_set_sends_everything_at_once(self):
        path = f"/allocations/{UUID}"
        self.server.on(f"PUT {path}", (204,))
        self.server.on(f"GET {path}", (200, {"allocations": {
            OTHER: {"generation": 2, "resources": {"VCPU": 2, "MEMORY_MB": 64}}}}))
        code, out, err = self.openstack(
            "allocation", "set", UUID, "--allocation", f"rp={OTHER},VCPU=2,MEMORY_MB=64",
            "--allocation", f"rp={AGGREGATE},DISK_GB=1")
        self.assertEqual(0, code, err)
        self.assertIn("MEMORY_MB=64,VCPU=2", out)
        self.assertEqual({"allocations": [
            {"resource_provider": {"uuid": OTHER}, "resources": {"VCPU": 2, "MEMORY_MB": 64}},
            {"resource_provider": {"uuid": AGGREGATE}, "resources": {"DISK_GB": 1}}]},
            self.server.asked(f"PUT {path}")[0]["body"])

    def test_set_sends_an_owner_at_the_version_that_has_one(self):
        path = f"/allocations/{UUID}"
        self.server.on(f"PUT {path}", (204,))
        self.server.on(f"GET {path}", (200, {"allocations": {}}))
        amounts = ["allocation", "set", UUID, "--allocation", f"rp={OTHER},VCPU=2"]
        for owner, in_body, version in (
                ([], {}, "1.4"),
                (["--project", "p", "--user", "u"], {"project_id": "p", "user_id": "u"}, "1.8")):
            self.assertEqual([], self.run_json(*amounts, *owner))
            request = self.server.asked(f"PUT {path}")[-1]
            del request["body"]["allocations"]
            self.assertEqual((in_body, f"placement {version}"),
                             (request["body"], request["version"]))

    def test_an_owner_is_a_project_and_a_user(self):
        for owner in (["--project", "p"], ["--user", "u"]):
            self.assertIn("together", self.refused(
                "allocation", "set", UUID, "--allocation", f"rp={OTHER},VCPU=2", *owner))
        self.assertIn("1.8", self.refused(
            "--os-placement-rpc-api-version", "1.7", "allocation", "set", UUID, "--allocation",
            f"rp={OTHER},VCPU=2", "--project", "p", "--user", "u"))
        self.assertEqual([], self.server.requests)

    def test_malformed_allocations_are_refused_before_the_request(self):
        for arguments in (["--allocation", "VCPU=2"], ["--allocation", f"rp={OTHER}"],
                          ["--allocation", f"rp={OTHER},VCPU=x"],
                          ["--allocation", f"rp={OTHER},VCPU=1,VCPU=2"],
                          ["--allocation", f"rp={OTHER},VCPU=1"] * 2, []):
            code, _, err = self.openstack("allocation", "set", UUID, *arguments)
            self.assertIn(code, (1, 2), arguments)
            self.assertNotIn("Traceback", err)
        self.assertEqual([], self.server.requests)
