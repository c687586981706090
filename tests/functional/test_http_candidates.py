# SPDX-License-Identifier: Apache-2.0
"""GET /allocation_candidates."""

import json
import types

from placement_rpc.db.queries import events
from placement_rpc.http import bodies, microversion, routes
from tests import base, http

ADDRESS = "/allocation_candidates"


class InputTest(http.HTTPTest):
    """What is refused, at once and with the reason."""

    version = "1.39"

    def setUp(self):
        super().setUp()
        self.make(VCPU={"total": 8})

    def refuse(self, query, says, status=400, **how):
        answer = self.send("GET", f"{ADDRESS}?{query}", **how)
        error = self.refused(status, answer)
        self.assertIn(says, error["detail"])
        self.assertLess(len(answer.text), 10_000)
        return error

    def test_the_address_is_new_in_1_10(self):
        for version in ("1.0", "1.9"):
            self.refuse("resources=VCPU:1", "could not be found", 404, version=version)
        self.get(f"{ADDRESS}?resources=VCPU:1", version="1.10")

    def test_other_methods(self):
        for method in ("POST", "PUT", "DELETE", "PATCH", "HEAD"):
            answer = self.send(method, ADDRESS)
            self.assertEqual((405, "GET"), (answer.status_code, answer.headers["allow"]))

    def test_the_rule(self):
        self.refuse("resources=VCPU:1", "Policy does not allow "
                    "placement:allocation_candidates:list to be performed.", 403, token="someone")
        self.refuse("resources=VCPU:1", "Authentication", 401, token=None)
        self.get(f"{ADDRESS}?resources=VCPU:1", token="someone", X_Roles="service")

    def test_conditions(self):
        self.refuse("resources=VCPU:1", "no ETag", 412, If_Match='"x"')

    def test_codes(self):
        for query, code in (
                ("required=A", "placement.query.missing_value"),
                ("resources=VCPU:1&same_subtree=_A", "placement.query.bad_value"),
                ("resources=VCPU:1&root_required=A&root_required=B",
                 "placement.query.duplicate_key"),
                ("resources=VCPU:0", "placement.undefined_code"),
                ("resources=CUSTOM_NONE:1", "placement.undefined_code"),
                ("resources=VCPU:1&required=CUSTOM_NONE", "placement.undefined_code")):
            self.assertEqual(code, self.refuse(query, "")["code"])

    def test_unknown_names(self):
        for query, says in (
                ("resources=CUSTOM_NONE:1", "Invalid resource class in resources parameter: "
                 "No such resource class CUSTOM_NONE"),
                ("resources=vcpu:1", "Invalid resource class in resources parameter: "
                 "No such resource class vcpu"),
                ("resources=VCPU:1&required=CUSTOM_NONE", "No such trait(s): CUSTOM_NONE"),
                ("resources=VCPU:1&required=!CUSTOM_NONE", "No such trait(s): CUSTOM_NONE"),
                ("resources=VCPU:1&required=none", "No such trait(s): none"),
                ("resources=VCPU:1&root_required=CUSTOM_NONE", "No such trait(s): CUSTOM_NONE")):
            self.refuse(query, says)

    def test_large_numbers(self):
        self.refuse(f"resources=VCPU:{2 ** 63}", "requires amount <= 9223372036854775807")
        self.refuse("resources=VCPU:" + "9" * 100_000, "expected positive integer amount")
        for query in (f"resources=VCPU:{2 ** 63 - 1}", f"resources=VCPU:{2 ** 31}",
                      "resources=VCPU:9&limit=" + "9" * 100_000):
            self.assertEqual([], self.get(f"{ADDRESS}?{query}")["allocation_requests"])

    def test_many_groups(self):
        for number, says in ((101, "it has 101 groups, and 100 are allowed"),
                             (900, "it has 900 groups"), (1001, "there are more than 1000")):
            self.refuse("group_policy=none&" + "&".join(
                f"resources_{each}=VCPU:1" for each in range(number)), says)

    def test_long_values(self):
        names = ",".join(f"CUSTOM_{number}" for number in range(100_000))
        for query, says in (
                (f"resources={names}", "Badly formed"), (f"resources={'A' * 1_000_000}:1", "AAA"),
                (f"resources={names.replace(',', ':1,')}:1", "No such resource class CUSTOM_0"),
                (f"resources=VCPU:1&required={names}", "required has 100000 values"),
                (f"resources=VCPU:1&required=in:{names}", "has 100000 values"),
                (f"resources=VCPU:1&required={names},!{names.replace(',', ',!')}",
                 "Conflicting required and forbidden traits"),
                (f"resources=VCPU:1&required={names},!A{names.replace(',', ',!A')}",
                 "required has 100000 values"),
                (f"resources=VCPU:1&member_of=in:{names}", "CUSTOM_"),
                (f"resources=VCPU:1&in_tree={names}", "in_tree"),
                (f"resources=VCPU:1&same_subtree={names}", "CUSTOM_0"),
                (f"resources=VCPU:1&root_required={names}", "has 100000 values"),
                (f"resources=VCPU:1&{'A' * 1_000_000}=1", "AAA")):
            self.refuse(query, says)

    def test_characters(self):
        for query in ("resources=VCPU%00:1", "resources=VCPU:1&required=%00",
                      "resources%00=VCPU:1", "resources=VCPU:%FF", "resources=%ED%A0%80:1",
                      "resources=VCPU:1&required=%C3%84"):
            self.refuse(query, "")


class _Cloud(http.HTTPTest):
    """A compute node with two GPUs, a storage that it shares, and the requests for all of it."""

    def setUp(self):
        super().setUp()
        self.host = self.make("host", VCPU={"total": 8, "allocation_ratio": 2.0},
                              MEMORY_MB={"total": 4096})
        self.gpus = [self.child(name, VGPU={"total": 2}) for name in ("left", "right")]
        self.storage = self.make("storage", DISK_GB={"total": 1000, "reserved": 100})
        aggregate = base.new_uuid()
        for uuid in (self.host, self.storage):
            self.api.set_aggregates(None, uuid, [aggregate])
        self.api.set_provider_traits(None, self.storage, ["MISC_SHARES_VIA_AGGREGATE"])
        self.api.set_provider_traits(None, self.host, ["HW_CPU_X86_AVX2"])
        self.used = base.new_uuid()
        self.api.claim_allocations(None, base.claim({self.host: {"VCPU": 2}}, self.used))

    def child(self, name, **inventories):
        uuid = self.make(name, **inventories)
        self.api.update_provider(None, uuid, name, parent_provider_uuid=self.host)
        return uuid

    def ask(self, query, minor):
        return self.get(f"{ADDRESS}?{query}", version=f"1.{minor}")


class ShapeTest(_Cloud):
    """What each microversion answers."""

    #: the resources of a compute node, of a shared disk, and of one of two children
    flat, nested = "resources=VCPU:1,DISK_GB:10", "resources=VCPU:1&resources1=VGPU:1"

    def test_each_answer_is_as_its_schema_says(self):
        route, = (each for each in routes.ROUTES if each.path == ADDRESS)
        for minor in range(10, 40):
            schema = bodies.compiled(microversion.schema_at(route.answer, (1, minor)))
            found = self.ask(self.flat if minor < 25 else self.nested, minor)
            schema.validate(found)
            self.assertEqual(1 if minor < 25 else 0 if minor < 29 else 2,
                             len(found["allocation_requests"]), minor)

    def test_the_allocations_are_a_list_and_then_a_dict(self):
        expected = {self.host: {"VCPU": 1}, self.storage: {"DISK_GB": 10}}
        for minor in (10, 11):
            found, = self.ask(self.flat, minor)["allocation_requests"]
            self.assertEqual({"allocations"}, found.keys())
            self.assertEqual(expected, {
                each["resource_provider"]["uuid"]: each["resources"]
                for each in found["allocations"]})
        for minor in (12, 33, 34, 39):
            found, = self.ask(self.flat, minor)["allocation_requests"]
            self.assertEqual(expected, {
                uuid: each["resources"] for uuid, each in found["allocations"].items()})
            mappings = found.get("mappings")
            if minor < 34:
                self.assertIsNone(mappings)
            else:
                self.assertEqual([""], list(mappings))
                self.assertEqual({self.host, self.storage}, set(mappings[""]))

    def test_the_groups_of_the_mappings(self):
        found = self.ask(f"{self.nested}&required_A=HW_CPU_X86_AVX2&same_subtree=1,_A"
                         "&group_policy=none", 39)["allocation_requests"]
        self.assertEqual(
            sorted([{"": [self.host], "1": [gpu], "_A": [self.host]} for gpu in self.gpus],
                   key=str), sorted((each["mappings"] for each in found), key=str))
        for each in found:
            self.assertEqual({self.host, *each["mappings"]["1"]}, each["allocations"].keys())

    def test_summaries(self):
        cpu, memory = {"capacity": 16, "used": 2}, {"capacity": 4096, "used": 0}
        gpu, disk = {"capacity": 2, "used": 0}, {"capacity": 900, "used": 0}
        flat = {self.host: {"VCPU": cpu}, self.storage: {"DISK_GB": disk}}
        whole = {**flat, self.host: {"VCPU": cpu, "MEMORY_MB": memory}}
        tree = {**whole, **{uuid: {"VGPU": gpu} for uuid in self.gpus}}
        for minor, expected in ((10, flat), (26, flat), (27, whole), (28, whole), (29, tree),
                                (39, tree)):
            found = self.ask(self.flat, minor)["provider_summaries"]
            self.assertEqual(expected, {
                uuid: each["resources"] for uuid, each in found.items()}, minor)
            self.assertEqual(minor < 17, "traits" not in found[self.host])
            self.assertEqual(minor < 29, "root_provider_uuid" not in found[self.host])
        self.assertEqual((["HW_CPU_X86_AVX2"], None, self.host), tuple(
            found[self.host][name] for name in (
                "traits", "parent_provider_uuid", "root_provider_uuid")))
        for uuid in self.gpus:
            self.assertEqual(([], self.host, self.host), tuple(found[uuid][name] for name in (
                "traits", "parent_provider_uuid", "root_provider_uuid")))

    def test_nothing_is_found(self):
        for minor in (10, 12, 17, 29, 39):
            self.assertEqual({"allocation_requests": [], "provider_summaries": {}},
                             self.ask("resources=VCPU:99", minor))

    def test_a_limit(self):
        for limit, number in ((1, 1), (2, 2), (3, 2)):
            self.assertEqual(number, len(self.ask(
                f"{self.nested}&limit={limit}", 39)["allocation_requests"]))

    def test_headers(self):
        path = f"{ADDRESS}?{self.flat}"
        for minor in (10, 14, 15, 39):
            answer = self.send("GET", path, version=f"1.{minor}")
            headers = answer.headers
            self.assertEqual("application/json", headers["content-type"])
            self.assertEqual((minor >= 15, "no-cache" if minor >= 15 else None), (
                "last-modified" in headers, headers.get("cache-control")))
            self.assertEqual((f"placement 1.{minor}", None), (
                headers["openstack-api-version"], headers.get("etag")))
            self.assertEqual(self.api.get_event_positions(None).last,
                             int(headers["placement-position"]))

    def test_the_answer_is_passed_on_as_it_is(self):
        def answer(_context, wanted, microversion):
            self.assertEqual(({"VCPU": 1}, "1.39"), (wanted.groups[0].resources, microversion))
            return types.SimpleNamespace(
                chunks=lambda: iter((b'{"not ', b'decoded": [')), position=7)

        self.patch(self.api, "get_allocation_candidates", answer)
        found = self.send("GET", f"{ADDRESS}?resources=VCPU:1", version="1.39")
        self.assertEqual((200, '{"not decoded": [', "7"), (
            found.status_code, found.text, found.headers["placement-position"]))


class ClaimTest(_Cloud):
    """What is answered can be sent as a claim, as nova does."""

    def claim(self, request, minor, consumer=None):
        consumer = consumer or base.new_uuid()
        body = {**request, "project_id": "ada", "user_id": "anna"}
        if minor >= 28:
            body["consumer_generation"] = None
        if minor >= 38:
            body["consumer_type"] = "INSTANCE"
        answer = self.send("PUT", f"/allocations/{consumer}", body, version=f"1.{minor}")
        self.assertEqual(204, answer.status_code, answer.text)
        return self.get(f"/allocations/{consumer}", version="1.39")["allocations"]

    def test_of_an_older_microversion(self):
        found, = self.ask(ShapeTest.flat, 10)["allocation_requests"]
        held = self.claim(found, 10)
        self.assertEqual({self.host: {"VCPU": 1}, self.storage: {"DISK_GB": 10}}, {
            uuid: each["resources"] for uuid, each in held.items()})
        summary = self.ask(ShapeTest.flat, 10)["provider_summaries"]
        self.assertEqual((3, 10), (summary[self.host]["resources"]["VCPU"]["used"],
                                   summary[self.storage]["resources"]["DISK_GB"]["used"]))

    def test_of_each_shape(self):
        for minor, query in (
                (12, ShapeTest.flat), (34, ShapeTest.nested), (36, ShapeTest.nested),
                (39, f"{ShapeTest.nested}&required_A=HW_CPU_X86_AVX2&same_subtree=_A,1"
                 "&group_policy=none")):
            requests = self.ask(query, minor)["allocation_requests"]
            used = self.amounts()
            self.assertEqual(requests[0]["allocations"], {
                uuid: {"resources": each["resources"]}
                for uuid, each in self.claim(requests[0], minor).items()})
            for uuid, each in requests[0]["allocations"].items():
                for name, amount in each["resources"].items():
                    self.assertEqual(used[uuid, name] + amount, self.amounts()[uuid, name])

    def amounts(self):
        """Return what is used, by provider and class, as the next answer has it."""
        found = self.ask("resources=VCPU:1,DISK_GB:1", 39)["provider_summaries"]
        return {(uuid, name): amounts["used"] for uuid, each in found.items()
                for name, amounts in each["resources"].items()}

    def test_until_nothing_fits(self):
        for _ in range(4):
            self.claim(self.ask(ShapeTest.nested, 39)["allocation_requests"][0], 39)
        self.assertEqual([], self.ask(ShapeTest.nested, 39)["allocation_requests"])

    def test_its_mappings_are_in_the_event(self):
        found = self.ask(ShapeTest.nested, 36)["allocation_requests"][0]
        self.claim(found, 36)
        with self.database.reader() as tx:
            created = [json.loads(row.payload)["placement_object.data"]
                       for row in events.waiting(tx) if row.event_type == "allocation.create"]
        self.assertEqual(found["mappings"], created[-1]["mappings"])
