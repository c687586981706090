# SPDX-License-Identifier: Apache-2.0
"""How many more requests fit, over the contract."""

from placement_rpc import exception
from placement_rpc.api import CandidateGroup, CandidatesRequest, ResourceRequest
from tests import base


def request(*groups, **more):
    """Return a request with groups, each a dict of the values of a group."""
    return CandidatesRequest(groups=[CandidateGroup(**each) for each in groups], **more)


class HeadroomTest(base.ContractTest):
    """Headroom over the contract, for fleets whose numbers can be seen at a glance."""

    def setUp(self):
        super().setUp()
        self.zone, self.other = base.new_uuid(), base.new_uuid()

    def provider(self, inventories, aggregates=(), traits=(), parent=None):
        found = self.api.create_provider(
            None, base.new_uuid(), parent_provider_uuid=parent)
        if inventories:
            self.api.set_inventory(None, found.uuid, [
                base.inventory(name, values) for name, values in inventories.items()])
        if aggregates:
            self.api.set_aggregates(None, found.uuid, list(aggregates))
        if traits:
            generation = self.api.get_provider(None, found.uuid).generation
            self.api.set_provider_traits(None, found.uuid, list(traits), generation)
        return found.uuid

    def fleet(self):
        """Two nodes in a zone, of which one has no memory left, and one outside."""
        self.provider({"VCPU": 8, "MEMORY_MB": 2048}, [self.zone], ["HW_CPU_X86_AVX2"])
        full = self.provider({"VCPU": 8, "MEMORY_MB": 4096}, [self.zone])
        self.api.claim_allocations(None, base.claim({full: {"MEMORY_MB": 4000}}))
        self.provider({"VCPU": 2, "MEMORY_MB": 65536}, [self.other], ["HW_CPU_X86_AVX2"])

    def parts(self, wanted, by):
        found = self.api.get_headroom(None, wanted, by=by)
        self.assertTrue(found.is_exact)
        return found.count, {part["name"]: part["count"] for part in found.parts}

    def claimed(self, wanted):
        """Claim until nothing fits; return how often that was possible."""
        for number in range(100):
            try:
                self.api.claim_by_request(None, wanted, base.claim(None))
            except exception.NoCandidates:
                return number
        raise AssertionError("it never ended")

    def test_it_is_what_can_be_claimed(self):
        for wanted in (ResourceRequest(resources={"VCPU": 2, "MEMORY_MB": 500}),
                       request({"resources": {"VCPU": 1, "MEMORY_MB": 600}})):
            self.fleet()
            found = self.api.get_headroom(None, wanted)
            claimed = self.claimed(wanted)
            self.assertEqual((claimed, claimed), (found.count, found.at_most))
            self.assertGreater(claimed, 2)
            self.assertEqual(0, self.api.get_headroom(None, wanted).count)

    def test_parts(self):
        self.fleet()
        wanted = request({"resources": {"VCPU": 2, "MEMORY_MB": 500}})
        self.assertEqual((5, {self.zone: 4, self.other: 1}), self.parts(wanted, "aggregate"))
        self.assertEqual((5, {"HW_CPU_X86_AVX2": 5}), self.parts(wanted, "trait"))
        self.assertEqual((5, {"VCPU": 9, "MEMORY_MB": 135}), self.parts(wanted, "class-limit"))

    def test_which_class_binds_first(self):
        self.fleet()
        found = self.api.get_headroom(
            None, request({"resources": {"VCPU": 2, "MEMORY_MB": 500}}), by="aggregate")
        # The first node has 8 / 2 and 2048 / 500, which are both four.
        self.assertEqual({"VCPU": 2, "MEMORY_MB": 2}, {
            each["resource_class"]: each["trees"] for each in found.limits})
        self.assertEqual({self.zone: {"VCPU": 1, "MEMORY_MB": 2}, self.other: {"VCPU": 1}}, {
            part["name"]: part["limits"] for part in found.parts})
        found = self.api.get_headroom(
            None, ResourceRequest(resources={"VCPU": 2, "MEMORY_MB": 500}), by="class-limit")
        self.assertEqual([("VCPU", [""], 8), ("MEMORY_MB", [""], 65180)], [
            (part["name"], part["groups"], part["left"]) for part in found.parts])

    def test_rules_of_units(self):
        self.provider({"VCPU": {"total": 10, "min_unit": 2, "max_unit": 4, "step_size": 2}})
        self.assertEqual([0, 5, 0, 2, 0], [
            self.api.get_headroom(None, ResourceRequest(resources={"VCPU": amount})).count
            for amount in (1, 2, 3, 4, 6)])

    def test_shared_disk_limits_the_sum(self):
        for _ in range(3):
            self.provider({"VCPU": 10}, [self.zone])
        self.provider({"DISK_GB": 100}, [self.zone], ["MISC_SHARES_VIA_AGGREGATE"])
        wanted = request({"resources": {"VCPU": 1, "DISK_GB": 5}})
        found = self.api.get_headroom(None, wanted)
        self.assertEqual((20, 20), (found.count, found.at_most))
        self.assertEqual({"VCPU": 0, "DISK_GB": 3}, {
            each["resource_class"]: each["trees"] for each in found.limits})
        found = self.api.get_headroom(None, request({"resources": {"VCPU": 1, "DISK_GB": 1}}))
        self.assertEqual(30, found.count)

    def test_equal_groups(self):
        node = self.provider({"VCPU": 100})
        for size in (1, 1, 2, 6):
            self.provider({"VGPU": size}, parent=node)
        groups = [{"suffix": f"{number}", "resources": {"VGPU": 1}} for number in range(3)]
        some = {"resources": {"VCPU": 4}}
        self.assertEqual([3, 2], [
            self.api.get_headroom(None, request(some, *groups, group_policy=policy)).count
            for policy in ("none", "isolate")])

    def test_bounds_are_said(self):
        # More choices than are gone through: two unequal groups on many devices of many trees.
        node = self.provider({"VCPU": 1000})
        for number in range(60):
            self.provider({"VGPU": 40 + number % 7}, parent=node)
        found = self.api.get_headroom(None, request(*(
            {"suffix": f"{amount}", "resources": {"VGPU": amount}} for amount in (2, 3, 5)),
            group_policy="isolate"))
        self.assertFalse(found.is_exact)
        self.assertGreater(found.count, 0)
        self.assertEqual(sum(40 + number % 7 for number in range(60)) // 10, found.at_most)

    def test_large_numbers(self):
        self.provider({"VCPU": {"total": 2 ** 31 - 1, "allocation_ratio": 3e38}})
        found = self.api.get_headroom(None, ResourceRequest(resources={"VCPU": 1}))
        self.assertEqual(2 ** 63 - 1, found.count)

    def test_nothing_can_serve_it(self):
        self.fleet()
        for wanted in (ResourceRequest(resources={"PGPU": 1}),
                       request({"resources": {"VCPU": 1}, "in_tree": base.new_uuid()}),
                       request({"resources": {"VCPU": 1}}, root_required=["HW_CPU_X86_AVX"])):
            for by in (None, "aggregate", "trait", "class-limit"):
                found = self.api.get_headroom(None, wanted, by=by)
                self.assertEqual((0, 0), (found.count, found.at_most))

    def test_bad_requests(self):
        self.assertRaises(exception.ResourceClassNotFound, self.api.get_headroom, None,
                          ResourceRequest(resources={"CUSTOM_NONE": 1}))
        self.assertRaises(exception.TraitNotFound, self.api.get_headroom, None, request(
            {"resources": {"VCPU": 1}, "required": [["CUSTOM_NONE"]]}))
        self.assertRaises(exception.InvalidInput, self.api.get_headroom, None,
                          ResourceRequest(resources={"VCPU": 1}), by="colour")
        self.assertRaises(exception.InvalidInput, self.api.get_headroom, None, request())
