# SPDX-License-Identifier: Apache-2.0
"""Bad input over HTTP: the right status, a document with the reason, and nothing written."""

import json
from urllib import parse

import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement_rpc.db import models
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, http

MISSING = "0d6b7a0c-9a11-4b0b-9f5e-6e7d1f0c3d3c"


class InputTest(http.HTTPTest):

    def setUp(self):
        super().setUp()
        self.uuid = self.make("node", VCPU={"total": 8, "max_unit": 4, "step_size": 2})
        self.one = f"/resource_providers/{self.uuid}"
        self.before = self.tables()

    def tables(self):
        """Everything in the store but heartbeats, to be compared."""
        with self.database.reader() as tx:
            return {table.name: tx.execute(sa.select(table)).all()
                    for table in models.metadata.sorted_tables if table.name not in (
                        "services", "requests")}

    def check(self, status, method, path, body=None, says="", **how):
        answer = self.send(method, path, body, **how)
        error = self.refused(status, answer)
        self.assertIn(says, error["detail"], path)
        self.assertEqual(self.before, self.tables())
        return answer

    def test_a_body_with_too_many_elements(self):
        answer = self.check(413, "POST", "/resource_providers", "[" + "[]," * 200_000 + "[]]",
                            "at most 200000 elements")
        self.assertEqual("placement.input.too_large", answer.json["errors"][0]["code"])

    def test_bodies(self):
        path = "/resource_providers"
        for body, says in (
                ("{", "Malformed JSON"), ("", "Malformed JSON"), ("{} {}", "Extra data"),
                ('{"name": "a", "name": "b"}', "twice"),
                (b'{"name": "\xff"}', "not UTF-8"),
                ('{"name": "\\ud800"}', "surrogate"),
                ('{"name": NaN}', "NaN is not a JSON number"),
                ('{"name": 1e999}', "too large"), ("[" * 100_000, "too deeply"),
                ('{"name": ' + "9" * 5000 + "}", "Malformed JSON"),
                ("[" * 500 + "]" * 500, "too deeply"),
                ('{"a":' * 300 + "1" + "}" * 300, "too deeply"),
                ("[" * 64 + "]" * 64, "JSON does not validate"),
                ('{"a":' * 64 + "1" + "}" * 64, "does not validate"),
                ("[]", "is not of type 'object'"), ("null", "is not of type 'object'"),
                ('{"name": 5}', "Failed validating 'type'"), ("{}", "'name' is a required"),
                ('{"name": ""}', "non-empty"), (json.dumps({"name": "x" * 201}), "too long"),
                ('{"name": "a", "pony": 1}', "'pony' was unexpected"),
                ('{"name": "a", "uuid": "pony"}', "is not a 'uuid'"),
                ('{"name": "a\\nb"}', "not printable"),
                ('{"name": "a\\u0000"}', "not printable")):
            self.check(400, "POST", path, body, says)

    def test_amounts(self):
        for values, says in (
                ({"total": 0}, "0 is less than the minimum of 1"),
                ({"total": 2 ** 31}, "greater than the maximum"), ({"total": "8"}, "integer"),
                ({"total": 8.5}, "integer"), ({"total": True}, "integer"), ({}, "'total'"),
                ({"total": 8, "reserved": 9}, "9 reserved of a total of 8"),
                ({"total": 8, "reserved": 8}, "8 reserved of a total of 8"),
                ({"total": 8, "allocation_ratio": 0}, "greater than or equal to total"),
                ({"total": 8, "allocation_ratio": 3.5e38}, "maximum"),
                ({"total": 8, "used": 1}, "unexpected")):
            self.check(400, "PUT", f"{self.one}/inventories", {
                "resource_provider_generation": 1, "inventories": {"VCPU": values}}, says)
        for resources, status in (
                ({}, 400), ({"VCPU": 0}, 400), ({"VCPU": -1}, 400), ({"VCPU": "1"}, 400),
                ({"VCPU": 2 ** 31}, 409), ({"VCPU": 10 ** 40}, 409), ({"vcpu": 1}, 400),
                ({"CUSTOM_NONE": 1}, 400), ({"VCPU": 3}, 409), ({"VCPU": 6}, 409),
                ({"VCPU": 10}, 409), ({"DISK_GB": 1}, 409)):
            before = self.before
            answer = self.send("PUT", f"/allocations/{base.new_uuid()}", {"allocations": [
                {"resource_provider": {"uuid": self.uuid}, "resources": resources}]})
            self.refused(status, answer)
            # A refused claim publishes an event.
            self.assertEqual({**before, "events": None}, {**self.tables(), "events": None})

    def test_whole_numbers_may_be_written_as_fractions(self):
        self.assertEqual(200, self.send("PUT", f"{self.one}/inventories", {
            "resource_provider_generation": 1.0,
            "inventories": {"VCPU": {"total": 8.0}}}).status_code)

    def test_content_types(self):
        for given_, status, says in (
                (None, 400, "content-type header required"), ("", 400, "content-type header"),
                ("text/plain", 415, "The media type text/plain is not supported"),
                ("application/xml", 415, "use application/json")):
            self.check(status, "POST", "/resource_providers", '{"name": "a"}', says,
                       Content_Type=given_)
        for given_ in ("application/json; charset=UTF-8", "application/json;"):
            self.assertEqual(201, self.send(
                "POST", "/resource_providers", {"name": given_},
                Content_Type=given_).status_code)

    def test_bodies_have_a_limit(self):
        self.check(413, "POST", "/resource_providers",
                   json.dumps({"name": "x" * 5_000_000}), "at most 4194304 bytes")
        self.check(413, "POST", "/resource_providers", "{}", "at most",
                   Content_Length="99999999999")

    def test_addresses_and_methods(self):
        for method, path, status in (
                ("GET", "/nothing", 404), ("GET", "/resource_providers/", 404),
                ("GET", f"{self.one}/", 404), ("GET", f"{self.one}/pony", 404),
                ("GET", "/resource_providers/pony", 404), ("GET", f"{self.one}%00", 404),
                ("GET", "/resource_providers/%ff%fe", 404), ("GET", f"/{'a' * 5000}", 404),
                ("GET", f"/resource_providers/{MISSING}", 404), ("GET", "/usages", 404),
                ("GET", f"{self.one}/inventories/vcpu", 404),
                ("GET", f"{self.one}/inventories/{'A' * 300}", 404),
                ("DELETE", "/allocations/pony", 404),
                ("DELETE", f"/allocations/{MISSING}", 404)):
            self.check(status, method, path)
        for method, path, allow in (
                ("PATCH", "/resource_providers", "GET, POST"),
                ("HEAD", self.one, "DELETE, GET, PUT"), ("OPTIONS", self.one, "DELETE, GET, PUT"),
                ("PONY", "/resource_providers", "GET, POST"),
                ("DELETE", f"{self.one}/inventories", "GET, POST, PUT"),
                ("POST", "/resource_providers/pony", "DELETE, GET, PUT"),
                ("POST", "/", "GET"), ("POST", "/events", "GET"),
                # The addresses of a later microversion are known.
                ("DELETE", "/usages", "GET"), ("PATCH", "/traits/CUSTOM_A", "DELETE, GET, PUT"),
                ("PATCH", f"{self.one}/inventories", "DELETE, GET, POST, PUT")):
            answer = self.send(method, path)
            self.assertEqual((405, allow), (answer.status_code, answer.headers["allow"]), method)

    def test_names_that_are_not_valid_are_not_found(self):
        for name in ("%20a", "%00", "x" * 201, "a%0a"):
            self.assertEqual({"resource_providers": []},
                             self.get(f"/resource_providers?name={name}"))
        # An empty name filters nothing.
        self.assertEqual([self.uuid], [
            each["uuid"] for each in self.get("/resource_providers?name=")["resource_providers"]])

    def test_a_refusal_is_short(self):
        answer = self.send("POST", "/resource_providers", json.dumps(["x" * 100_000] * 5))
        self.assertLess(len(self.refused(400, answer)["detail"]), 4001)

    def test_queries(self):
        path = "/resource_providers"
        for query, version in (
                ("pony=1", "1.4"), ("uuid=pony", "1.4"), ("uuid=", "1.4"), ("limit=1", "1.4"),
                (f"member_of={MISSING}", "1.2"), ("resources=VCPU:1", "1.3"),
                ("member_of=pony", "1.3"), ("member_of=in:", "1.3"),
                (f"member_of={MISSING},{MISSING}", "1.3"), ("resources=VCPU", "1.4"),
                ("resources=VCPU:0", "1.4"), ("resources=VCPU:x", "1.4"),
                ("resources=VCPU:1,", "1.4"), ("resources=PONY:1", "1.4"),
                ("resources=pony:1", "1.4"), ("resources=VCPU :1", "1.4"),
                ("resources=VCPU:99999999999999999999999", "1.4"), ("resources=", "1.4"),
                ("resources=VCPU:" + "9" * 5000, "1.4"), ("resources=VCPU:1:2", "1.4"),
                ("uuid=" + MISSING + "%0a", "1.4"), (f"member_of={MISSING}%0a", "1.3"),
                (f"in_tree={MISSING}", "1.13"), ("in_tree=pony", "1.14"), ("in_tree=", "1.14"),
                ("required=CUSTOM_A", "1.17"), ("required=", "1.18"), ("required=PONY", "1.18"),
                ("required=pony", "1.39"), ("required=%00", "1.39"), ("name=%ff", "1.4"),
                ("&".join(f"a{number}=1" for number in range(1001)), "1.4")):
            self.check(400, "GET", f"{path}?{query}", version=version)
        self.check(400, "POST", f"{path}?explain=1", {"name": "x"}, "unexpected")
        # What has no parameters ignores them, as OpenStack Placement does.
        self.get(f"{self.one}?pony=1")

    def test_versions(self):
        for given_, status, says in (
                ("placement 0.5", 406, "Unacceptable version header: 0.5"),
                ("placement 1.99", 406, "Unacceptable version header: 1.99"),
                ("placement 2.0", 406, "Unacceptable"),
                ("placement pony.horse", 400, "invalid version string: pony.horse"),
                ("placement 1", 400, "invalid version string"), ("placement 1.+4", 400, "1.+4"),
                ("placement 1_0.0", 400, "1_0.0"),
                ("placement 1." + "9" * 5000, 400, "")):
            for path in ("/", self.one):
                error = self.check(status, "GET", path, says=says,
                                   OpenStack_API_Version=given_).json["errors"][0]
                if status == 406:
                    self.assertEqual(("1.0", "1.39"), (error["min_version"], error["max_version"]))
        answer = self.send("GET", "/", OpenStack_API_Version="placement 0.5",
                           Accept="text/html")
        self.assertEqual((406, "text/html; charset=UTF-8"), (
            answer.status_code, answer.headers["content-type"]))

    def test_accept(self):
        for accept in ("text/plain", "text/html", "application/json;q=0"):
            self.assertEqual(406, self.send("GET", self.one, Accept=accept).status_code)
        for accept in ("*/*", "application/*", "text/html, application/json", "nonsense", "",
                       "APPLICATION/JSON", "Text/HTML, Application/Json;q=0.5"):
            self.assertEqual(200, self.send("GET", self.one, Accept=accept).status_code, accept)

    def test_texts_of_clients_are_escaped(self):
        answer = self.send("GET", "/", OpenStack_API_Version="placement <script>",
                           Accept="text/html")
        self.assertNotIn("<script>", answer.text)
        self.send("GET", "/resource_providers/a%0aFORGED", X_Openstack_Request_Id="req-\nFORGED")
        self.send("POST", "/resource_providers", '{"name": "\\nFORGED"}')
        self.assertNotIn("\nFORGED", self.log.output)

    def test_a_service_that_is_away(self):
        self.api.deadline = 0.3
        self.useFixture(placement_fixtures.FaultyCaller(self.api, ["lost"] * 1000))
        answer = self.send("GET", self.one)
        self.assertEqual("placement.service.unavailable", self.refused(503, answer)["code"])
        self.assertEqual("1", answer.headers["retry-after"])
        # The outcome of a change is unknown.
        error = self.refused(504, self.send("PUT", self.one, {"name": "x"},
                                            Idempotency_Key="mine"))
        self.assertIn("mine", error["detail"])

    def test_a_defect_says_where_to_look(self):
        self.facade.api = None
        error = self.refused(500, self.send("GET", self.one))
        self.assertIn(error["request_id"], error["detail"])
        self.assertIn(error["request_id"], self.log.output)
        self.assertNotIn("NoneType", json.dumps(error))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8)


_VERSIONS = st.sampled_from(["1.4", "1.12", "1.28", "1.39"])


class NoSurpriseTest(http.HTTPTest):
    """No input causes a 500, with any JSON, query or path, at any microversion."""

    def setUp(self):
        super().setUp()
        self.uuid = self.make(VCPU={"total": 8})
        self.paths = [
            ("POST", "/resource_providers"), ("POST", "/resource_providers?request"),
            ("POST", "/resource_providers?explain"), ("PUT", f"/resource_providers/{self.uuid}"),
            ("PUT", f"/resource_providers/{self.uuid}/inventories"),
            ("POST", f"/resource_providers/{self.uuid}/inventories"),
            ("PUT", f"/resource_providers/{self.uuid}/inventories/VCPU"),
            ("PUT", f"/resource_providers/{self.uuid}/aggregates"),
            ("PUT", f"/resource_providers/{self.uuid}/traits"),
            ("PUT", f"/allocations/{self.uuid}"), ("POST", "/allocations"),
            ("POST", "/reshaper"), ("POST", "/resource_classes"),
            ("PUT", "/resource_classes/CUSTOM_A")]

    def test_bodies(self):
        @settings(max_examples=base.examples(150), deadline=None, database=None,
                  suppress_health_check=list(HealthCheck))
        @given(st.integers(0, len(self.paths) - 1), _JSON, _VERSIONS)
        def send(number, body, version):
            method, path = self.paths[number]
            answer = self.send(method, path, json.dumps(body), version)
            self.assertLess(answer.status_code, 500, (path, body, version))

        send()

    def test_values_in_known_places(self):
        names = st.sampled_from(["name", "uuid", "total", "resources", "allocations", "limit",
                                 "inventories", "resource_provider_generation", "VCPU",
                                 "resource_provider", "member_of", "resource_class", "traits",
                                 "aggregates", "parent_provider_uuid", "consumer_generation",
                                 "consumer_type", "mappings", "project_id", self.uuid])

        @settings(max_examples=base.examples(150), deadline=None, database=None,
                  suppress_health_check=list(HealthCheck))
        @given(st.integers(0, len(self.paths) - 1), st.dictionaries(names, _JSON | st.dictionaries(
            names, _JSON, max_size=4), max_size=5), _VERSIONS)
        def send(number, body, version):
            method, path = self.paths[number]
            answer = self.send(method, path, json.dumps(body), version)
            self.assertLess(answer.status_code, 500, (path, body, version))

        send()

    def test_queries(self):
        @settings(max_examples=base.examples(100), deadline=None, database=None,
                  suppress_health_check=list(HealthCheck))
        @given(st.sampled_from(["name", "uuid", "member_of", "resources", "after", "limit",
                                "in_tree", "required", "associated", "consumer_type"]),
               st.text(st.characters(codec="ascii")), _VERSIONS)
        def send(name, value, version):
            for path in ("/resource_providers?", "/events?", "/traits?", "/usages?project_id=a&"):
                answer = self.send("GET", f"{path}{name}={parse.quote(value)}", version=version)
                self.assertLess(answer.status_code, 500, (path, name, value, version))

        send()
