# SPDX-License-Identifier: Apache-2.0
"""Microversions 1.5 to 1.7: all inventories deleted at once, traits, classes confirmed."""

from placement_rpc.http.preconditions import tag
from tests import base, http


class InventoriesTest(http.HTTPTest):
    version = "1.5"

    def test_all_inventories_are_deleted(self):
        uuid = self.make(VCPU={"total": 8}, DISK_GB={"total": 9})
        path = f"/resource_providers/{uuid}/inventories"
        self.refused(405, self.send("DELETE", path, version="1.4"))
        self.assertEqual((204, ""), _told(self.send("DELETE", path)))
        self.assertEqual({}, self.get(path)["inventories"])
        self.assertEqual(204, self.send("DELETE", path).status_code)
        self.refused(404, self.send(
            "DELETE", f"/resource_providers/{base.new_uuid()}/inventories"))

    def test_what_is_allocated_stays(self):
        uuid = self.make(VCPU={"total": 8}, DISK_GB={"total": 9})
        self.api.claim_allocations(None, base.claim({uuid: {"VCPU": 1}}))
        path = f"/resource_providers/{uuid}/inventories"
        error = self.refused(409, self.send("DELETE", path))
        self.assertEqual("placement.inventory.inuse", error["code"])
        self.assertEqual({"VCPU", "DISK_GB"}, set(self.get(path)["inventories"]))


class ClassesTest(http.HTTPTest):
    version = "1.7"

    def test_a_class_is_created_or_confirmed(self):
        path = "/resource_classes/CUSTOM_GPU"
        for status in (201, 204, 204):
            answer = self.send("PUT", path)
            self.assertEqual((status, ""), _told(answer))
            self.assertTrue(answer.headers["location"].endswith(path))
        self.get(path)
        # One that exists from the start, which nova makes sure of, too.
        name = "CUSTOM_PCI_SRIOV_PF"
        self.assertEqual(204, self.send("PUT", f"/resource_classes/{name}").status_code)
        self.refused(409, self.send("POST", "/resource_classes", {"name": name}))
        # Without a body, and so without a content type before 1.7.
        self.refused(415, self.send("PUT", path, version="1.6"))

    def test_names_that_no_custom_class_can_have(self):
        for name in ("VCPU", "gpu", "CUSTOM_", "CUSTOM_a", "CUSTOM_A%0A"):
            self.refused(400, self.send("PUT", f"/resource_classes/{name}"))


class ConditionTest(http.HTTPTest):
    version = "1.7"

    def test_what_has_to_exist_is_not_created(self):
        for path in ("/resource_classes/CUSTOM_A", "/traits/CUSTOM_A"):
            self.refused(412, self.send("PUT", path, If_Match="*"))
            self.refused(404, self.send("GET", path))
            self.assertEqual(201, self.send("PUT", path).status_code)
            self.assertEqual(204, self.send("PUT", path, If_Match="*").status_code)
            # They have no entity tag.
            self.refused(412, self.send("PUT", path, If_Match='"a"'))


class TraitsTest(http.HTTPTest):
    version = "1.6"

    def names(self, query=""):
        return self.get(f"/traits{query}")["traits"]

    def test_before_microversion_1_6_there_is_none(self):
        uuid = self.make()
        for path in ("/traits", "/traits/CUSTOM_A", f"/resource_providers/{uuid}/traits"):
            self.refused(404, self.send("GET", path, version="1.5"))
        self.assertNotIn("traits", _links(self.get(f"/resource_providers/{uuid}", version="1.5")))
        self.assertIn("traits", _links(self.get(f"/resource_providers/{uuid}")))

    def test_created_confirmed_shown_deleted(self):
        path = "/traits/CUSTOM_GPU"
        self.refused(404, self.send("GET", path))
        for status in (201, 204):
            answer = self.send("PUT", path)
            self.assertEqual((status, ""), _told(answer))
            self.assertTrue(answer.headers["location"].endswith(path))
        self.assertEqual((204, ""), _told(self.send("GET", path)))
        self.assertEqual((204, ""), _told(self.send("DELETE", path)))
        self.refused(404, self.send("DELETE", path))

    def test_a_repeated_request_has_the_first_answer(self):
        for _ in range(2):
            self.assertEqual(201, self.send(
                "PUT", "/traits/CUSTOM_GPU", Idempotency_Key="once").status_code)

    def test_what_cannot_be_created_or_deleted(self):
        standard = "HW_CPU_X86_VMX"
        self.assertEqual(204, self.send("GET", f"/traits/{standard}").status_code)
        for name in (standard, "GPU", "CUSTOM_", "CUSTOM_a", "CUSTOM_A%0A", "CUSTOM_A%00",
                     "%FF%FE", "CUSTOM_" + "A" * 249):
            self.refused(400, self.send("PUT", f"/traits/{name}"))
        self.refused(400, self.send("DELETE", f"/traits/{standard}"))
        self.refused(404, self.send("DELETE", "/traits/custom_a"))
        self.refused(404, self.send("GET", "/traits/custom_a"))
        for method in ("POST", "PUT", "DELETE"):
            self.refused(405, self.send(method, "/traits"))

    def test_lists(self):
        uuid = self.make()
        for name in ("CUSTOM_A", "CUSTOM_B"):
            self.send("PUT", f"/traits/{name}")
        self.api.set_provider_traits(None, uuid, ["CUSTOM_B"])
        self.assertEqual(["CUSTOM_A", "CUSTOM_B"], self.names("?name=startswith:CUSTOM_"))
        self.assertEqual(["CUSTOM_A"], self.names("?name=in:CUSTOM_A,,no,CUSTOM_C"))
        self.assertEqual([], self.names("?name=in:"))
        for query in ("?name=startswith:CUSTOM%25", "?name=startswith:%C3%84"):
            self.assertEqual([], self.names(query))
        # Another operator is ignored, as OpenStack Placement does.
        self.assertEqual(self.names(), self.names("?name=like:CUSTOM"))
        self.assertEqual(["CUSTOM_B"], self.names("?associated=True"))
        self.assertEqual(
            ["CUSTOM_A"], self.names("?associated=false&name=in:CUSTOM_A,CUSTOM_B"))
        # Of a parameter that is given twice, the last value counts.
        self.assertEqual(["CUSTOM_B"], self.names("?name=in:CUSTOM_A&name=in:CUSTOM_B"))
        for query in ("?name=", "?name=CUSTOM_A", "?associated=yes", "?associated=", "?other=1"):
            self.refused(400, self.send("GET", f"/traits{query}"))


class ProviderTraitsTest(http.HTTPTest):
    version = "1.6"

    def setUp(self):
        super().setUp()
        self.uuid = self.make()
        self.path = f"/resource_providers/{self.uuid}/traits"
        for name in ("CUSTOM_A", "CUSTOM_B"):
            self.api.create_trait(None, name)

    def put(self, traits, generation, **headers):
        return self.send("PUT", self.path, {
            "traits": traits, "resource_provider_generation": generation}, **headers)

    def tags(self, *generations):
        return ", ".join(tag(self.uuid, each) for each in generations)

    def test_replaced_and_cleared(self):
        self.assertEqual({"traits": [], "resource_provider_generation": 0}, self.get(self.path))
        answer = self.put(["CUSTOM_B", "CUSTOM_A", "CUSTOM_B"], 0)
        self.assertEqual({"traits": ["CUSTOM_A", "CUSTOM_B"], "resource_provider_generation": 1},
                         answer.json)
        self.assertEqual(tag(self.uuid, 1), answer.headers["etag"])
        self.assertEqual(answer.json, self.put(["CUSTOM_A", "CUSTOM_B"], 1).json)
        self.refused(409, self.send("DELETE", "/traits/CUSTOM_A"))
        for _ in range(2):
            self.assertEqual((204, ""), _told(self.send("DELETE", self.path)))
        self.assertEqual({"traits": [], "resource_provider_generation": 2}, self.get(self.path))

    def test_what_is_refused(self):
        self.assertEqual("placement.concurrent_update",
                         self.refused(409, self.put(["CUSTOM_A"], 1))["code"])
        self.assertIn("CUSTOM_NONE", self.refused(400, self.put(["CUSTOM_NONE"], 0))["detail"])
        for body in ({"traits": []}, {"resource_provider_generation": 0}, [], "text",
                     {"traits": "CUSTOM_A", "resource_provider_generation": 0},
                     {"traits": ["a"], "resource_provider_generation": 0},
                     {"traits": [], "resource_provider_generation": True},
                     {"traits": [], "resource_provider_generation": 0, "other": 1}):
            self.refused(400, self.send("PUT", self.path, body))
        # Generations that no provider has.
        for generation in (-1, 2 ** 63):
            self.refused(409, self.put([], generation))
        unknown = f"/resource_providers/{base.new_uuid()}/traits"
        self.refused(404, self.send("GET", unknown))
        self.refused(404, self.send("DELETE", unknown))
        self.refused(404, self.send(
            "PUT", unknown, {"traits": [], "resource_provider_generation": 0}))
        self.assertEqual({"traits": [], "resource_provider_generation": 0}, self.get(self.path))

    def test_a_repeated_request_with_tags_has_the_first_answer(self):
        first = self.put(["CUSTOM_A"], 0, If_Match=self.tags(0, 7), Idempotency_Key="once")
        for generation, if_match in ((0, self.tags(0, 7)), (0, self.tags(0)), (0, None),
                                     (1, self.tags(1, 0)), (1, self.tags(1))):
            again = self.put(
                ["CUSTOM_A"], generation, If_Match=if_match, Idempotency_Key="once")
            self.assertEqual((200, first.json), (again.status_code, again.json))
        for _ in range(2):
            self.assertEqual(204, self.send(
                "DELETE", self.path, If_Match=self.tags(1, 7), Idempotency_Key="d").status_code)
        self.assertEqual(2, self.get(self.path)["resource_provider_generation"])

    def test_tags_that_are_not_current(self):
        self.put(["CUSTOM_A"], 0)
        self.refused(412, self.put([], 1, If_Match=self.tags(0)))
        self.refused(412, self.put([], 0, If_Match=self.tags(0, 7)))
        self.refused(412, self.put([], 1, If_Match=tag(base.new_uuid(), 1)))
        self.refused(412, self.send("DELETE", self.path, If_Match=self.tags(0, 7)))
        # The tag is current, and the generation in the body is not.
        self.refused(409, self.put([], 0, If_Match=self.tags(1)))
        self.refused(409, self.put([], 0, If_Match=self.tags(0, 1)))
        self.refused(409, self.put([], 9, If_Match=self.tags(0, 1)))
        self.assertEqual(["CUSTOM_A"], self.get(self.path)["traits"])
        self.assertEqual(200, self.put([], 1, If_Match=self.tags(0, 1)).status_code)


def _told(answer):
    return answer.status_code, answer.text


def _links(provider):
    return {each["rel"] for each in provider["links"]}
