# SPDX-License-Identifier: Apache-2.0
"""Inventories at microversions 1.5 to 1.39."""

from tests import base, http


class InventoriesTest(http.HTTPTest):
    version = "1.39"

    def setUp(self):
        super().setUp()
        self.uuid = self.make(VCPU={"total": 8})
        self.path = f"/resource_providers/{self.uuid}/inventories"

    def put(self, generation, version=None, **inventories):
        return self.send("PUT", self.path, {
            "resource_provider_generation": generation, "inventories": inventories}, version)

    def put_one(self, name, version=None, generation=1, **values):
        return self.send("PUT", f"{self.path}/{name}", {
            "resource_provider_generation": generation, "total": 8, **values}, version)

    def add(self, version=None, **values):
        return self.send("POST", self.path, {"total": 8, **values}, version)

    def check_refused(self, status, code, words, answer):
        error = self.refused(status, answer)
        self.assertEqual(code, error["code"])
        self.assertIn(words, error["detail"])

    def test_all_of_the_total_may_be_reserved_from_1_26_on(self):
        for values in ({"reserved": 8}, {"allocation_ratio": 0.1}, {"allocation_ratio": 0}):
            for version, status in (("1.25", 400), ("1.26", 200)):
                generation = self.get(self.path)["resource_provider_generation"]
                answer = self.put(generation, version, VCPU={"total": 8, **values})
                self.assertEqual(status, answer.status_code, answer.text)
                answer = self.put_one("VCPU", version, self.get(self.path)[
                    "resource_provider_generation"], **values)
                self.assertEqual(status, answer.status_code, answer.text)
        self.check_refused(
            400, "placement.undefined_code", "greater than or equal to total",
            self.add("1.25", resource_class="DISK_GB", reserved=8))
        self.assertEqual(201, self.add(resource_class="DISK_GB", reserved=8).status_code)
        self.check_refused(
            400, "placement.undefined_code",
            f"Unable to create inventory for resource provider {self.uuid}",
            self.add(resource_class="MEMORY_MB", reserved=9))

    def test_a_provider_and_its_generation_come_before_values(self):
        nowhere = f"/resource_providers/{base.new_uuid()}"
        too_much, current = {"total": 8, "reserved": 9}, self.get(
            self.path)["resource_provider_generation"]
        for inventories in ({"VCPU": too_much}, {"vcpu": {"total": 8}}):
            for path, generation, status in (
                    (f"{nowhere}/inventories", 0, 404), (self.path, current + 1, 409),
                    (self.path, current, 400)):
                self.refused(status, self.send("PUT", path, {
                    "resource_provider_generation": generation, "inventories": inventories}))
        for version in ("1.25", "1.39"):
            self.refused(404, self.send("PUT", f"{nowhere}/inventories/VCPU", {
                "resource_provider_generation": 0, **too_much}, version))
            self.refused(404, self.send("POST", f"{nowhere}/inventories", {
                "resource_class": "VCPU", **too_much}, version))
        self.check_refused(
            409, "placement.concurrent_update", "", self.put_one(
                "VCPU", generation=current + 1, reserved=9))
        for path, generation, status in (
                (nowhere, 0, 404), (self.path.removesuffix("/inventories"), current + 1, 409),
                (self.path.removesuffix("/inventories"), current, 400)):
            self.refused(status, self.send("PUT", f"{path}/traits", {
                "resource_provider_generation": generation, "traits": ["a trait"]}))

    def test_values_without_rules_of_their_own(self):
        answer = self.put(1, VCPU={
            "total": 8.0, "min_unit": 9, "max_unit": 3, "allocation_ratio": 3.40282e+38})
        self.assertEqual(200, answer.status_code, answer.text)
        found = self.get(f"{self.path}/VCPU")
        self.assertEqual((8, 9, 3, 3.40282e+38), tuple(found[name] for name in (
            "total", "min_unit", "max_unit", "allocation_ratio")))
        for values in ({"total": True}, {"total": 8.5}, {"total": 2 ** 31},
                       {"total": 8, "allocation_ratio": 3.5e+38},
                       {"total": 8, "allocation_ratio": "1"}):
            self.refused(400, self.put(2, VCPU=values))
        self.refused(400, self.put(2, VCPU={"total": 8, "allocation_ratio": -1}))

    def test_a_new_inventory_is_based_on_no_generation(self):
        answer = self.add(resource_class="DISK_GB", resource_provider_generation=77)
        self.assertEqual((201, 2), (
            answer.status_code, answer.json["resource_provider_generation"]))
        self.check_refused(409, "placement.concurrent_update", "Update conflict",
                           self.add(resource_class="DISK_GB"))
        for answer in (self.put_one("VCPU"), self.put(1)):
            self.check_refused(409, "placement.concurrent_update", "at generation 2", answer)

    def test_a_generation_that_no_provider_can_have(self):
        for generation in (-1, 2 ** 63, 10 ** 40):
            for answer in (self.put(generation), self.put_one("VCPU", generation=generation)):
                self.check_refused(409, "placement.concurrent_update", "conflict", answer)
        # One inside a record is ignored.
        self.assertEqual(200, self.put(1, VCPU={
            "total": 9, "resource_provider_generation": 77}).status_code)

    def test_classes_that_do_not_exist(self):
        self.refused(404, self.put_one("CUSTOM_NOT_THERE"))
        self.refused(404, self.put_one("vcpu"))
        self.check_refused(400, "placement.undefined_code",
                           "No inventory record with resource class", self.put_one("DISK_GB"))
        for name in ("CUSTOM_NOT_THERE", "vcpu"):
            self.refused(400, self.put(1, **{name: {"total": 8}}))
            self.refused(400, self.add(resource_class=name))
        self.assertIn("No inventory of class DISK_GB for", self.refused(
            404, self.send("GET", f"{self.path}/DISK_GB"))["detail"])
        self.assertIn("No inventory of class DISK_GB found for delete", self.refused(
            404, self.send("DELETE", f"{self.path}/DISK_GB"))["detail"])

    def test_the_time_of_the_last_change_from_1_15_on(self):
        for answer in (self.put(1, VCPU={"total": 9}), self.put_one("VCPU", generation=2),
                       self.send("GET", self.path), self.send("GET", f"{self.path}/VCPU"),
                       self.add(resource_class="DISK_GB")):
            self.assertEqual("no-cache", answer.headers["cache-control"])
            self.assertIn("last-modified", answer.headers)
        # Nothing in it has a time.
        for answer in (self.put(4), self.send("GET", self.path)):
            self.assertEqual("no-cache", answer.headers["cache-control"])
            self.assertNotIn("last-modified", answer.headers)
        self.assertNotIn("cache-control", self.send("GET", self.path, version="1.14").headers)

    def test_a_used_inventory_is_removed(self):
        self.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}))
        self.check_refused(409, "placement.concurrent_update", "in use",
                           self.send("DELETE", f"{self.path}/VCPU"))
        self.check_refused(409, "placement.inventory.inuse", "in use",
                           self.send("DELETE", self.path))
        self.check_refused(409, "placement.inventory.inuse", "in use", self.put(2))
