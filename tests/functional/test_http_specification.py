# SPDX-License-Identifier: Apache-2.0
"""The examples of generic-resource-pools, custom-resource-classes and get-by-request, as written
there, with the slips corrected that ``docs/source/http.rst`` lists."""

from placement_rpc.db.queries import events
from tests import base, http

RBD = "b6b065cc-fcd9-4342-a7b0-2aed2d146518"
NFS = "eaaf1c04-ced2-40e4-89a2-87edded06d64"
DISK = {"total": 2048, "reserved": 512, "min_unit": 10, "max_unit": 1024, "step_size": 10,
        "allocation_ratio": 1.0}
ADDRESSES = {"total": 256, "reserved": 2, "min_unit": 1, "max_unit": 1, "step_size": 1,
             "allocation_ratio": 1.0}


def links(uuid, collection="resource_providers"):
    """The links of the specifications, by their names."""
    path = f"/{collection}/{uuid}"
    return {"self": path, "inventories": f"{path}/inventories",
            "aggregates": f"{path}/aggregates", "usages": f"{path}/usages"}


class SpecificationTest(http.HTTPTest):

    def provider(self, uuid=NFS, name="Global NFS share", generation=0, **inventories):
        """A provider at a generation, which changes of its name raise."""
        self.api.create_provider(None, f"{name} to be", uuid)
        if inventories:
            self.api.set_inventory(None, uuid, [
                base.inventory(key, values) for key, values in inventories.items()])
        turn = 0
        while self.api.get_provider(None, uuid).generation < generation - 1:
            turn += 1
            self.api.update_provider(None, uuid, f"{name} {turn}")
        if generation:
            self.api.update_provider(None, uuid, name)
        return uuid

    def as_written(self, provider):
        """Return a provider with its links by name, since their order is irrelevant."""
        return {**provider, "links": {each["rel"]: each["href"] for each in provider["links"]}}


class ProvidersTest(SpecificationTest):

    def test_get_the_list(self):
        self.provider(RBD, "RBD volume group", generation=12)
        self.provider(generation=4)
        self.assertEqual(
            [{"uuid": RBD, "name": "RBD volume group", "generation": 12, "links": links(RBD)},
             {"uuid": NFS, "name": "Global NFS share", "generation": 4, "links": links(NFS)}],
            [self.as_written(each)
             for each in self.get("/resource_providers")["resource_providers"]])

    def test_post(self):
        answer = self.send(
            "POST", "/resource_providers", {"name": "Global NFS share", "uuid": NFS})
        self.assertEqual((201, "", f"http://falconframework.org/resource_providers/{NFS}"), (
            answer.status_code, answer.text, answer.headers["location"]))
        self.assertNotIn("content-type", answer.headers)
        other = self.send("POST", "/resource_providers", {"name": "Global NFS share"})
        self.assertEqual("placement.duplicate_name", self.refused(409, other)["code"])

    def test_get_one(self):
        self.provider(generation=4)
        self.assertEqual(
            {"uuid": NFS, "name": "Global NFS share", "generation": 4, "links": links(NFS)},
            self.as_written(self.get(f"/resource_providers/{NFS}")))
        self.get(f"/resource_providers/{RBD}", 404)

    def test_put_its_name(self):
        self.provider(RBD, "RBD volume group", generation=1)
        self.provider(generation=3)
        answer = self.send("PUT", f"/resource_providers/{NFS}", {"name": "Shared by all"})
        self.assertEqual(200, answer.status_code)
        self.assertEqual(self.get(f"/resource_providers/{NFS}"), answer.json)
        self.assertEqual(("Shared by all", 4), (
            answer.json["name"], answer.json["generation"]))
        for status, uuid, body in ((400, NFS, {"title": "x"}), (404, base.new_uuid(), None),
                                   (409, NFS, {"name": "RBD volume group"})):
            self.refused(status, self.send(
                "PUT", f"/resource_providers/{uuid}", body or {"name": "another"}))

    def test_delete(self):
        uuid = self.provider(DISK_GB=DISK)
        consumer = base.new_uuid()
        self.api.claim_allocations(None, base.claim({uuid: {"DISK_GB": 10}}, consumer))
        self.assertEqual("placement.resource_provider.inuse", self.refused(
            409, self.send("DELETE", f"/resource_providers/{uuid}"))["code"])
        self.api.release_allocations(None, consumer)
        answer = self.send("DELETE", f"/resource_providers/{uuid}")
        self.assertEqual((204, ""), (answer.status_code, answer.text))
        self.assertNotIn("content-type", answer.headers)
        self.refused(404, self.send("DELETE", f"/resource_providers/{uuid}"))


class InventoriesTest(SpecificationTest):

    def setUp(self):
        super().setUp()
        self.path = f"/resource_providers/{NFS}/inventories"

    def test_get_all(self):
        self.provider(generation=4, DISK_GB=DISK, IPV4_ADDRESS=ADDRESSES)
        self.assertEqual(
            {"resource_provider_generation": 4,
             "inventories": {"DISK_GB": DISK, "IPV4_ADDRESS": ADDRESSES}}, self.get(self.path))
        self.provider(RBD, "none")
        self.assertEqual({"resource_provider_generation": 0, "inventories": {}},
                         self.get(f"/resource_providers/{RBD}/inventories"))
        self.get(f"/resource_providers/{base.new_uuid()}/inventories", 404)

    def test_post_one(self):
        self.provider()
        answer = self.send("POST", self.path, {"resource_class": "DISK_GB", **DISK})
        self.assertEqual(201, answer.status_code)
        self.assertTrue(answer.headers["location"].endswith(f"{self.path}/DISK_GB"))
        self.assertEqual({"resource_provider_generation": 1, **DISK}, answer.json)
        self.assertEqual(answer.json, self.get(f"{self.path}/DISK_GB"))
        self.refused(409, self.send("POST", self.path, {"resource_class": "DISK_GB", **DISK}))
        self.refused(400, self.send("POST", self.path, {"resource_class": "NO_SUCH", **DISK}))
        self.refused(404, self.send(
            "POST", f"/resource_providers/{RBD}/inventories",
            {"resource_class": "DISK_GB", **DISK}))

    def test_put_all(self):
        self.provider(generation=1)
        answer = self.send("PUT", self.path, {
            "resource_provider_generation": 1, "inventories": {
                "DISK_GB": {"total": 2048}, "IPV4_ADDRESS": {"total": 255, "reserved": 2}}})
        self.assertEqual(200, answer.status_code, answer.text)
        self.assertEqual(self.get(self.path), answer.json)
        self.assertEqual(2, answer.json["resource_provider_generation"])
        self.assertEqual((2048, 0), tuple(
            answer.json["inventories"]["DISK_GB"][name] for name in ("total", "reserved")))
        self.assertEqual("placement.concurrent_update", self.refused(409, self.send(
            "PUT", self.path, {"resource_provider_generation": 1, "inventories": {}}))["code"])

    def test_capacity_below_what_is_used(self):
        uuid = self.provider(DISK_GB=DISK)
        self.api.claim_allocations(None, base.claim({uuid: {"DISK_GB": 500}}))
        for changed in ({"total": 900}, {"total": 2048, "reserved": 1600},
                        {"total": 2048, "allocation_ratio": 0.2}):
            for path, body in (
                    (self.path, {"inventories": {"DISK_GB": changed}}),
                    (f"{self.path}/DISK_GB", changed)):
                if changed.get("total") == 900:
                    changed["reserved"] = 512
                error = self.refused(409, self.send(
                    "PUT", path, {"resource_provider_generation": 2, **body}))
                self.assertEqual("placement.inventory.capacity_conflict", error["code"])
        self.refused(409, self.send("PUT", self.path, {
            "resource_provider_generation": 2, "inventories": {}}))

    def test_capacity_below_what_is_used_from_microversion_1_5_on(self):
        uuid = self.provider(DISK_GB=DISK)
        self.api.claim_allocations(None, base.claim({uuid: {"DISK_GB": 500}}))
        for generation, version, path, body in (
                (2, "1.5", self.path, {"inventories": {"DISK_GB": {"total": 400}}}),
                (3, "1.39", f"{self.path}/DISK_GB", {"total": 300})):
            answer = self.send("PUT", path, {
                "resource_provider_generation": generation, **body}, version)
            self.assertEqual(200, answer.status_code, answer.text)
        self.assertEqual({"DISK_GB": 500}, self.get(
            f"/resource_providers/{uuid}/usages")["usages"])

    def test_get_one(self):
        self.provider(generation=4, DISK_GB=DISK)
        self.assertEqual({"resource_provider_generation": 4, **DISK},
                         self.get(f"{self.path}/DISK_GB"))
        self.get(f"{self.path}/VCPU", 404)
        self.get(f"/resource_providers/{RBD}/inventories/DISK_GB", 404)

    def test_put_one(self):
        self.provider(generation=4, DISK_GB=DISK)
        wanted = {**DISK, "total": 1024}
        answer = self.send("PUT", f"{self.path}/DISK_GB",
                           {"resource_provider_generation": 4, **wanted})
        self.assertEqual(200, answer.status_code)
        self.assertEqual({"resource_provider_generation": 5, **wanted}, answer.json)
        # The class in a body is ignored.
        answer = self.send("PUT", f"{self.path}/DISK_GB", {
            "resource_provider_generation": 5, "resource_class": "VCPU", "total": 2000})
        self.assertEqual((200, 2000), (answer.status_code, answer.json["total"]))
        self.refused(409, self.send("PUT", f"{self.path}/DISK_GB",
                                    {"resource_provider_generation": 4, **wanted}))
        self.refused(400, self.send("PUT", f"{self.path}/VCPU",
                                    {"resource_provider_generation": 6, "total": 1}))
        self.refused(400, self.send("PUT", f"{self.path}/DISK_GB", {"total": 5}))

    def test_delete_one(self):
        uuid = self.provider(DISK_GB=DISK, VCPU={"total": 1})
        self.api.claim_allocations(None, base.claim({uuid: {"DISK_GB": 10}}))
        self.refused(409, self.send("DELETE", f"{self.path}/DISK_GB"))
        self.assertEqual(204, self.send("DELETE", f"{self.path}/VCPU").status_code)
        self.refused(404, self.send("DELETE", f"{self.path}/VCPU"))


class AllowedBelowUseTest(SpecificationTest):
    options = {"claims__allow_capacity_below_use": True}

    def test_the_option_lets_it_and_tells(self):
        uuid = self.provider(DISK_GB=DISK)
        self.api.claim_allocations(None, base.claim({uuid: {"DISK_GB": 500}}))
        answer = self.send("PUT", f"/resource_providers/{uuid}/inventories", {
            "resource_provider_generation": 2, "inventories": {"DISK_GB": {"total": 400}}})
        self.assertEqual(200, answer.status_code, answer.text)
        with self.database.reader() as tx:
            self.assertIn("inventory.capacity_exceeded",
                          [row.event_type for row in events.waiting(tx)])
        self.refused(409, self.send("PUT", f"/allocations/{base.new_uuid()}", {
            "allocations": [{"resource_provider": {"uuid": uuid},
                             "resources": {"DISK_GB": 10}}]}))


class OverFullTest(SpecificationTest):

    def test_what_is_over_full_may_become_less_so(self):
        uuid = self.provider(VCPU={"total": 10})
        self.api.claim_allocations(None, base.claim({uuid: {"VCPU": 10}}))
        path = f"/resource_providers/{uuid}/inventories/VCPU"
        self.refused(409, self.send("PUT", path, {
            "resource_provider_generation": 2, "total": 9}))
        self.api.update_inventory(
            None, uuid, base.inventory("VCPU", {"total": 5}), generation=2)
        for generation, total in ((3, 6), (4, 9)):
            self.assertEqual(200, self.send("PUT", path, {
                "resource_provider_generation": generation, "total": total}).status_code)
        self.refused(409, self.send("PUT", path, {
            "resource_provider_generation": 5, "total": 8}))


class SubresourcesTest(SpecificationTest):
    AGGREGATES = ["21d7c4aa-d0b6-41b1-8513-12a1eac17c0c", "7a2e7fd2-d1ec-4989-b530-5508c3582025"]

    def test_aggregates(self):
        path = f"/resource_providers/{self.provider()}/aggregates"
        self.api.set_aggregates(None, NFS, self.AGGREGATES)
        self.assertEqual({"aggregates": self.AGGREGATES}, self.get(path))
        wanted = [self.AGGREGATES[0], "b455ae1f-5f4e-4b19-9384-4989aff5fee9"]
        answer = self.send("PUT", path, wanted)
        self.assertEqual((200, {"aggregates": wanted}), (answer.status_code, answer.json))
        self.refused(400, self.send("PUT", path, ["pony"]))
        self.refused(404, self.send("PUT", f"/resource_providers/{RBD}/aggregates", wanted))
        self.get(f"/resource_providers/{RBD}/aggregates", 404)

    def test_usages(self):
        uuid = self.provider(DISK_GB=DISK, IPV4_ADDRESS=ADDRESSES)
        self.assertEqual({"DISK_GB": 0, "IPV4_ADDRESS": 0},
                         self.get(f"/resource_providers/{uuid}/usages")["usages"])
        for disk in (470, 10):
            self.api.claim_allocations(None, base.claim(
                {uuid: {"DISK_GB": disk, "IPV4_ADDRESS": 1}}))
        self.assertEqual({"resource_provider_generation": 3,
                          "usages": {"DISK_GB": 480, "IPV4_ADDRESS": 2}},
                         self.get(f"/resource_providers/{uuid}/usages"))
        self.get(f"/resource_providers/{RBD}/usages", 404)


class AllocationsTest(SpecificationTest):
    CONSUMER = "9a82ff67-26e2-4d0a-a7e1-746788a85646"
    STORAGE = "fa84d9e3-ab3b-4240-8eee-e8f1138b3423"
    NODE = "7dd1cd8a-4058-4f58-a24a-e38a5f4d563e"
    BODY = {"allocations": [
        {"resource_provider": {"uuid": STORAGE}, "resources": {"DISK_GB": 10}},
        {"resource_provider": {"uuid": NODE}, "resources": {"VCPU": 2, "MEMORY_MB": 1024}}]}

    def setUp(self):
        super().setUp()
        self.provider(self.STORAGE, "storage", DISK_GB=DISK)
        self.provider(self.NODE, "node", VCPU={"total": 8}, MEMORY_MB={"total": 4096})
        self.path = f"/allocations/{self.CONSUMER}"

    def test_put_get_delete(self):
        answer = self.send("PUT", self.path, self.BODY)
        self.assertEqual((204, ""), (answer.status_code, answer.text))
        self.assertEqual({"allocations": {
            self.STORAGE: {"generation": 2, "resources": {"DISK_GB": 10}},
            self.NODE: {"generation": 2, "resources": {"VCPU": 2, "MEMORY_MB": 1024}}}},
            self.get(self.path))
        self.assertEqual(
            {"resource_provider_generation": 2,
             "allocations": {self.CONSUMER: {"resources": {"DISK_GB": 10}}}},
            self.get(f"/resource_providers/{self.STORAGE}/allocations"))
        self.assertEqual(204, self.send("DELETE", self.path).status_code)
        self.assertEqual({"allocations": {}}, self.get(self.path))
        self.refused(404, self.send("DELETE", self.path))

    def test_a_put_replaces_all_of_it(self):
        self.send("PUT", self.path, self.BODY)
        self.assertEqual(204, self.send("PUT", self.path, {
            "allocations": self.BODY["allocations"][:1]}).status_code)
        self.assertEqual([self.STORAGE], list(self.get(self.path)["allocations"]))

    def test_what_does_not_fit_is_refused_whole(self):
        for resources in ({"VCPU": 9}, {"VCPU": 1, "DISK_GB": 1}):
            self.refused(409, self.send("PUT", self.path, {"allocations": [
                self.BODY["allocations"][0],
                {"resource_provider": {"uuid": self.NODE}, "resources": resources}]}))
            self.assertEqual({"allocations": {}}, self.get(self.path))

    def test_what_is_not_known_is_a_fault_of_the_body(self):
        for provider, resources in ((RBD, {"VCPU": 1}), (self.NODE, {"CUSTOM_PONY": 1})):
            self.refused(400, self.send("PUT", self.path, {"allocations": [
                {"resource_provider": {"uuid": provider}, "resources": resources}]}))

    def test_the_owner_of_a_consumer_stays(self):
        self.api.claim_allocations(None, base.claim(
            {self.NODE: {"VCPU": 1}}, self.CONSUMER, project_id="blue", user_id="ada"))
        self.send("PUT", self.path, self.BODY)
        self.assertEqual("blue", self.api.get_allocations(None, self.CONSUMER).consumer.project_id)
        other = base.new_uuid()
        self.send("PUT", f"/allocations/{other}", self.BODY)
        self.assertEqual("00000000-0000-0000-0000-000000000000",
                         self.api.get_allocations(None, other).consumer.project_id)


class ClassesTest(SpecificationTest):
    GOLD = "CUSTOM_BAREMETAL_GOLD"

    def test_the_life_of_a_class(self):
        answer = self.send("POST", "/resource_classes", {"name": self.GOLD})
        self.assertEqual((201, ""), (answer.status_code, answer.text))
        self.assertTrue(answer.headers["location"].endswith(f"/resource_classes/{self.GOLD}"))
        found = {each["name"]: each["links"] for each in
                 self.get("/resource_classes")["resource_classes"]}
        for name in ("VCPU", "MEMORY_MB", self.GOLD):
            self.assertEqual([{"rel": "self", "href": f"/resource_classes/{name}"}], found[name])
        self.assertEqual(
            {"name": self.GOLD, "links": found[self.GOLD]},
            self.get(f"/resource_classes/{self.GOLD}"))
        self.refused(409, self.send("POST", "/resource_classes", {"name": self.GOLD}))
        silver = "/resource_classes/CUSTOM_BAREMETAL_SILVER"
        answer = self.send("PUT", f"/resource_classes/{self.GOLD}",
                           {"name": "CUSTOM_BAREMETAL_SILVER"})
        self.assertEqual((200, self.get(silver)), (answer.status_code, answer.json))
        self.refused(404, self.send("DELETE", f"/resource_classes/{self.GOLD}"))
        answer = self.send("DELETE", silver)
        self.assertEqual((204, ""), (answer.status_code, answer.text))

    def test_what_is_refused(self):
        for method, path, body, status in (
                ("POST", "", {"name": "VCPU"}, 400), ("POST", "", {"name": "GOLD"}, 400),
                ("POST", "", {"name": "CUSTOM_"}, 400),
                ("POST", "", {"name": "CUSTOM_" + "A" * 249}, 400),
                ("PUT", "/VCPU", {"name": self.GOLD}, 400),
                ("PUT", f"/{self.GOLD}", {"name": "CUSTOM_B"}, 404),
                ("DELETE", "/VCPU", None, 400), ("DELETE", f"/{self.GOLD}", None, 404),
                ("GET", f"/{self.GOLD}", None, 404), ("GET", "/gold", None, 404)):
            self.refused(status, self.send(method, f"/resource_classes{path}", body))

    def test_one_that_is_used_stays(self):
        self.api.resource_class_create(None, self.GOLD)
        self.api.resource_class_create(None, "CUSTOM_B")
        self.make(**{self.GOLD: {"total": 1}})
        self.refused(409, self.send("DELETE", f"/resource_classes/{self.GOLD}"))
        self.refused(409, self.send("PUT", "/resource_classes/CUSTOM_B", {"name": self.GOLD}))


class ByRequestTest(SpecificationTest):

    def test_post_request(self):
        room = {"VCPU": {"total": 2}, "MEMORY_MB": {"total": 1024}}
        self.provider(RBD, "RBD volume group", generation=12, **room)
        self.provider(generation=4, **room)
        self.provider(base.new_uuid(), "too small", VCPU={"total": 2}, MEMORY_MB={"total": 512})
        answer = self.send("POST", "/resource_providers?request",
                           {"resources": {"VCPU": 2, "MEMORY_MB": 1024}})
        self.assertEqual(200, answer.status_code)
        # In random order, so that concurrent clients do not all take the first.
        self.assertEqual(
            [{"uuid": RBD, "name": "RBD volume group", "generation": 12, "links": links(RBD)},
             {"uuid": NFS, "name": "Global NFS share", "generation": 4, "links": links(NFS)}],
            sorted((self.as_written(each) for each in answer.json["resource_providers"]),
                   key=lambda each: each["name"], reverse=True))
        first = self.send("POST", "/resource_providers?request",
                          {"resources": {"VCPU": 2, "MEMORY_MB": 1024}, "limit": 1})
        self.assertIn([each["uuid"] for each in first.json["resource_providers"]], [[RBD], [NFS]])

    def test_an_unknown_class_is_a_bad_request(self):
        self.refused(400, self.send(
            "POST", "/resource_providers?request", {"resources": {"CUSTOM_PONY": 1}}))
