# SPDX-License-Identifier: Apache-2.0
"""Inventories: set, added, updated, deleted, and never shrunk below what is used."""

from placement_rpc import exception
from placement_rpc.objects.request import ResourceRequest
from tests import base

_ONE = ResourceRequest(resources={"VCPU": 1})


class InventoryTest(base.ContractTest):

    def inventories(self, provider):
        return {each.resource_class: each for each in (
            self.api.get_inventory(None, provider).objects)}

    def test_fields_that_are_not_given_have_their_defaults(self):
        uuid = self.provider(VCPU=8)
        read = self.inventories(uuid)["VCPU"]
        self.assertEqual(
            (8, 0, 1, 2 ** 31 - 1, 1, 1.0, 0),
            (read.total, read.reserved, read.min_unit, read.max_unit, read.step_size,
             read.allocation_ratio, read.used))

    def test_the_nfs_share_of_the_specification(self):
        uuid = self.provider("/mnt/nfs/row1racks0610/", DISK_GB={
            "total": 100000, "reserved": 1000, "min_unit": 50, "max_unit": 10000,
            "step_size": 10, "allocation_ratio": 1.0})
        self.assertEqual(
            [99000], [each.capacity for each in self.api.get_usages(None, uuid).objects])
        for amount, error in ((40, exception.ConstraintsViolated),
                              (10010, exception.ConstraintsViolated),
                              (55, exception.ConstraintsViolated)):
            self.assertRaises(error, self.claim, {uuid: {"DISK_GB": amount}})
        self.claim({uuid: {"DISK_GB": 10000}})

    def test_set_replaces_all_and_raises_the_generation(self):
        uuid = self.provider(VCPU=8, DISK_GB=100)
        done = self.api.set_inventory(None, uuid, [
            base.inventory("VCPU", 16), base.inventory("MEMORY_MB", 4096)])
        self.assertEqual(2, done.generation)
        self.assertEqual({"VCPU": 16, "MEMORY_MB": 4096}, {
            name: each.total for name, each in self.inventories(uuid).items()})

    def test_equal_inventories_change_nothing(self):
        uuid = self.provider(VCPU=8, MEMORY_MB=4096)
        done = self.api.set_inventory(None, uuid, [
            base.inventory("MEMORY_MB", 4096), base.inventory("VCPU", 8)])
        self.assertEqual(1, done.generation)
        self.assertEqual(1, self.generation(uuid))

    def test_a_stale_generation_is_refused_for_every_change(self):
        uuid = self.provider(VCPU=8)
        for call, *arguments in (
                (self.api.set_inventory, []), (self.api.delete_inventory, "VCPU"),
                (self.api.add_inventory, base.inventory("DISK_GB", 5)),
                (self.api.update_inventory, base.inventory("VCPU", 5))):
            self.assertRaises(exception.ConcurrentUpdate, call, None, uuid, *arguments,
                              generation=0)
        self.assertEqual(8, self.inventories(uuid)["VCPU"].total)

    def test_one_class_is_added_updated_and_deleted(self):
        uuid = self.provider(VCPU=8)
        self.api.add_inventory(None, uuid, base.inventory("DISK_GB", 100))
        self.assertRaises(exception.InventoryExists, self.api.add_inventory, None, uuid,
                          base.inventory("DISK_GB", 100))
        self.api.update_inventory(None, uuid, base.inventory("DISK_GB", 200))
        self.assertEqual(200, self.inventories(uuid)["DISK_GB"].total)
        left = self.api.delete_inventory(None, uuid, "DISK_GB")
        self.assertEqual(["VCPU"], [each.resource_class for each in left.objects])
        self.assertEqual(4, left.generation)
        for call, argument in ((self.api.delete_inventory, "DISK_GB"),
                               (self.api.update_inventory, base.inventory("DISK_GB", 5))):
            self.assertRaises(exception.InventoryNotFound, call, None, uuid, argument)

    def test_an_inventory_with_allocations_is_not_removed(self):
        uuid = self.provider(VCPU=8, DISK_GB=100)
        self.claim({uuid: {"VCPU": 2}})
        for call, *arguments in ((self.api.delete_inventory, "VCPU"),
                                 (self.api.set_inventory, [base.inventory("DISK_GB", 5)])):
            error = self.assertRaises(
                exception.InventoryInUse, call, None, uuid, *arguments)
            self.assertEqual(2, error.kwargs["used"])
        self.assertEqual({"VCPU", "DISK_GB"}, set(self.inventories(uuid)))
        self.assertEqual(100, self.inventories(uuid)["DISK_GB"].total)

    def test_an_unknown_class_is_refused_before_what_is_in_use(self):
        uuid = self.provider(VCPU=8)
        self.claim({uuid: {"VCPU": 2}})
        self.assertRaises(
            exception.ResourceClassNotFound, self.api.set_inventory, None, uuid,
            [base.inventory("CUSTOM_PONY", 5)])

    def test_capacity_does_not_shrink_below_what_is_used(self):
        uuid = self.provider(VCPU={"total": 8, "allocation_ratio": 2.0})
        self.claim({uuid: {"VCPU": 10}})
        for values in ({"total": 4, "allocation_ratio": 2.0}, {"total": 8},
                       {"total": 8, "allocation_ratio": 2.0, "reserved": 4}):
            error = self.assertRaises(
                exception.CapacityConflict, self.api.update_inventory, None, uuid,
                base.inventory("VCPU", values), allow_below_use=False)
            self.assertEqual(10, error.kwargs["used"])
        self.api.update_inventory(None, uuid, base.inventory(
            "VCPU", {"total": 5, "allocation_ratio": 2.0}))

    def test_a_capacity_below_what_is_used(self):
        """Hardware that has shrunk: nothing more can be claimed, and what is held stays."""
        uuid = self.provider(VCPU=8, DISK_GB=10)
        one, _ = self.claim({uuid: {"VCPU": 4}})
        two, _ = self.claim({uuid: {"VCPU": 4, "DISK_GB": 10}})
        found = self.api.set_inventory(
            None, uuid, [base.inventory("VCPU", 6), base.inventory("DISK_GB", 10)])
        self.assertEqual((4, 8), (found.generation, self.inventories(uuid)["VCPU"].used))
        self.assertEqual([(8, 6), (10, 10)], [
            (each.used, each.capacity) for each in self.api.get_usages(None, uuid).objects])
        found = self.api.update_inventory(None, uuid, base.inventory("VCPU", 5))
        self.assertEqual((5, 8), (found.generation, self.inventories(uuid)["VCPU"].used))
        error = self.assertRaises(exception.CapacityExceeded, self.claim, {uuid: {"VCPU": 1}})
        self.assertEqual((0, 5), (error.kwargs["free"], error.kwargs["capacity"]))
        self.assertEqual([], self.candidates())
        explained, = self.api.explain(None, _ONE).objects
        self.assertEqual([("capacity", 0, 1)], [
            (each["rule"], each["allowed"], each["by"]) for each in explained.reasons])
        # What frees is never refused, also if it stays over.
        self.claim({uuid: {"VCPU": 3}}, one)
        self.api.release_allocations(None, two)
        self.assertEqual([uuid], self.candidates())
        self.assertEqual({"VCPU": 3, "DISK_GB": 0}, self.used(uuid))
        self.assertEqual({}, self.api.verify_index(None)["differences"])

    def candidates(self):
        return [each.uuid for each in self.api.get_by_request(None, _ONE).objects]

    def test_values_must_not_contradict_each_other(self):
        uuid = self.provider()
        for values, word in (
                ({"total": 8, "reserved": 9}, "reserved"),
                ({"total": 8, "allocation_ratio": -1.0}, "-8")):
            error = self.assertRaises(
                exception.InvalidInventory, self.api.set_inventory, None, uuid,
                [base.inventory("VCPU", values)])
            self.assertIn(word, error.text)
        self.assertRaises(exception.InvalidInventory, self.api.set_inventory, None, uuid,
                          [base.inventory("VCPU", 1), base.inventory("VCPU", 2)])
        self.assertEqual(0, self.generation(uuid))

    def test_what_can_be_said_but_gives_nothing(self):
        """Nothing can be claimed of some of them, which is no contradiction."""
        uuid = self.provider()
        for values, capacity in (
                ({"total": 8, "reserved": 8}, 0), ({"total": 8, "allocation_ratio": 0.1}, 0),
                ({"total": 8, "allocation_ratio": 0.0}, 0),
                ({"total": 8, "min_unit": 5, "max_unit": 4}, 8),
                ({"total": 8, "min_unit": 9}, 8)):
            self.api.set_inventory(None, uuid, [base.inventory("VCPU", values)])
            usage, = self.api.get_usages(None, uuid).objects
            self.assertEqual(capacity, usage.capacity)
            self.assertRaises(exception.ClaimRefused, self.claim, {uuid: {"VCPU": 4}})

    def test_the_largest_ratio(self):
        uuid = self.provider(VCPU={"total": 2 ** 31 - 1, "allocation_ratio": 3.40282e38})
        usage, = self.api.get_usages(None, uuid).objects
        self.assertEqual(2 ** 63 - 1, usage.capacity)
        self.assertEqual(3.40282e38, self.inventories(uuid)["VCPU"].allocation_ratio)
        self.claim({uuid: {"VCPU": 2 ** 31 - 1}})
        self.assertEqual([uuid], self.candidates())
        self.assertRaises(exception.InvalidInput, base.inventory, "VCPU", {
            "total": 1, "allocation_ratio": 3.5e38})

    def test_a_class_that_exists_or_not(self):
        uuid = self.provider(VCPU=8)
        for name, error in (("MEMORY_MB", exception.InventoryNotFound),
                            ("CUSTOM_NOT_THERE", exception.ResourceClassNotFound)):
            self.assertRaises(error, self.api.update_inventory, None, uuid,
                              base.inventory(name, 5))
            self.assertRaises(error, self.api.delete_inventory, None, uuid, name)

    def test_the_time_of_the_last_change(self):
        uuid = self.provider(VCPU=8, DISK_GB=10)
        first = self.api.get_inventory(None, uuid).updated_at
        done = self.api.update_inventory(None, uuid, base.inventory("VCPU", 9))
        self.assertLess(first, done.updated_at)
        self.assertLess(first, self.api.get_inventory(None, uuid).updated_at)
        self.assertIsNone(self.api.set_inventory(None, uuid, []).updated_at)
        self.assertIsNone(self.api.get_inventory(None, uuid).updated_at)

    def test_the_error_names_a_class_that_does_not_exist(self):
        uuid = self.provider()
        error = self.assertRaises(
            exception.ResourceClassNotFound, self.api.set_inventory, None, uuid,
            [base.inventory("VCPU", 1), base.inventory("CUSTOM_NOT_THERE", 1)])
        self.assertIn("CUSTOM_NOT_THERE", error.text)
        self.assertEqual({}, self.inventories(uuid))

    def test_the_names_of_the_specifications_are_accepted(self):
        uuid = self.provider(PCI_GENERIC=4, PCI_SRIOV_VF=8, PCI_SRIOV_PF=2, NUMA_SOCKETS=2,
                             NUMA_CORES=8, NUMA_THREADS=16, NUMA_MEMORY=1024)
        self.assertEqual(
            {"PCI_DEVICE", "SRIOV_NET_VF", "CUSTOM_PCI_SRIOV_PF", "NUMA_SOCKET", "NUMA_CORE",
             "NUMA_THREAD", "NUMA_MEMORY_MB"}, set(self.inventories(uuid)))
        self.claim({uuid: {"PCI_GENERIC": 1, "NUMA_MEMORY": 512}})
        self.assertEqual([uuid], self.find({"PCI_GENERIC": 3}))
        self.assertEqual([], self.find({"PCI_GENERIC": 4}))
        self.assertEqual("PCI_DEVICE", self.api.resource_class_get(None, "PCI_GENERIC").name)
        self.api.delete_inventory(None, uuid, "PCI_SRIOV_PF")
