# SPDX-License-Identifier: Apache-2.0
"""Reshapes: inventories and allocations move together, or not at all."""

from placement_rpc import exception
from placement_rpc.accounting import batch
from placement_rpc.accounting.claims import ClaimChange, request_of_claim
from placement_rpc.accounting.idempotency import Request
from placement_rpc.accounting.reshape import ReshapeChange
from placement_rpc.api import InventoryList
from placement_rpc.endpoints.base import ManagerBase
from tests import base, stored_events


def inventories(provider, generation=None, **totals):
    """Return all inventories that a provider is to have, each a total or a dict of values."""
    given = {} if generation is None else {"generation": generation}
    return InventoryList(provider_uuid=provider, **given, objects=[
        base.inventory(name, values) for name, values in totals.items()])


class ReshapeTest(stored_events.StoredEvents, base.ContractTest):

    def setUp(self):
        super().setUp()
        self.root = self.provider("root", VCPU=8, VGPU={"total": 4, "max_unit": 4})
        self.child = self.api.create_provider(None, "child", parent_provider_uuid=self.root).uuid
        self.one, _ = self.claim({self.root: {"VCPU": 1, "VGPU": 2}})
        self.two, _ = self.claim({self.root: {"VCPU": 1, "VGPU": 1}})
        self.events()

    def to_child(self, consumer, vgpu, **values):
        return base.claim({self.root: {"VCPU": 1}, self.child: {"VGPU": vgpu}}, consumer, **{
            "consumer_generation": 1, **values})

    def move(self, *claims, root=3, child=0, request_id=None, **of_child):
        """Move the VGPUs of the root to its child, and the allocations of two consumers."""
        return self.api.reshape(
            None, [inventories(self.root, root, VCPU=8),
                   inventories(self.child, child, VGPU={"total": 4, **of_child})],
            claims or [self.to_child(self.one, 2), self.to_child(self.two, 1)],
            request_id=request_id)

    def check_nothing_has_changed(self):
        self.assertEqual({"VCPU": 2, "VGPU": 3}, self.used(self.root))
        self.assertEqual({}, self.used(self.child))
        self.assertEqual((3, 0), (self.generation(self.root), self.generation(self.child)))
        self.assertEqual({self.root: {"VCPU": 1, "VGPU": 2}}, self.held(self.one))
        self.assertEqual({}, self.api.verify_index(None)["differences"])

    def test_inventory_in_use_moves_to_a_child(self):
        done = self.move()
        # The root loses allocations and then an inventory; the child gets both.
        self.assertEqual({self.root: 5, self.child: 2}, done.generations)
        self.assertEqual({self.one: 2, self.two: 2}, done.consumer_generations)
        self.assertFalse(done.replayed)
        self.assertEqual({"VCPU": 2}, self.used(self.root))
        self.assertEqual({"VGPU": 3}, self.used(self.child))
        self.assertEqual({self.root: {"VCPU": 1}, self.child: {"VGPU": 2}}, self.held(self.one))
        self.assertEqual((5, 2), (self.generation(self.root), self.generation(self.child)))
        self.assertRaises(exception.CapacityExceeded, self.claim, {self.child: {"VGPU": 2}})
        self.claim({self.child: {"VGPU": 1}})
        self.assertEqual({}, self.api.verify_index(None)["differences"])

    def test_and_back_again(self):
        self.move()
        self.api.reshape(
            None, [inventories(self.child), inventories(self.root, VCPU=8, VGPU=3)],
            [base.claim({self.root: {"VCPU": 1, "VGPU": 2}}, self.one),
             base.claim({self.root: {"VCPU": 1, "VGPU": 1}}, self.two)])
        self.assertEqual({"VCPU": 2, "VGPU": 3}, self.used(self.root))
        self.assertEqual({}, self.used(self.child))

    def test_the_events_tell_each_step(self):
        self.move()
        steps = {self.root: [], self.child: []}
        for event_type, payload in self.events():
            found = payload.get("providers") or [{"placement_object.data": payload}]
            for each in found:
                data = each["placement_object.data"]
                steps[data["provider_uuid"]].append(
                    (event_type, data["previous_generation"], data["generation"]))
        self.assertEqual([("inventory.create", 0, 1), ("allocation.update", 1, 2),
                          ("allocation.update", 1, 2)], steps[self.child])
        self.assertEqual([("allocation.update", 3, 4), ("allocation.update", 3, 4),
                          ("inventory.delete", 4, 5)], steps[self.root])

    def test_the_same_request_again_has_its_first_outcome(self):
        first = self.move(request_id="move")
        again = self.move(request_id="move")
        self.assertEqual((first.generations, True), (again.generations, again.replayed))
        # Preconditions are no part of the request.
        self.assertTrue(self.move(root=77, child=5, request_id="move").replayed)
        self.assertRaises(exception.RequestIdReused, self.move, request_id="move", step_size=2)
        self.assertEqual({"VGPU": 3}, self.used(self.child))

    def test_the_order_of_checks(self):
        """As in OpenStack Placement: providers, consumers, providers of claims, classes, room."""
        nowhere, conflict = base.new_uuid(), self.to_child(self.one, 1, consumer_generation=7)
        unknown = inventories(self.root, 3, CUSTOM_NOT_THERE=1)
        lost = base.claim({nowhere: {"VGPU": 1}}, self.two)
        for error, given, claims in (
                (exception.ProviderNotFound, [
                    inventories(nowhere, 0), inventories(self.root, 9)], [conflict]),
                (exception.ConcurrentUpdate, [
                    inventories(self.root, 9, CUSTOM_NOT_THERE=1)], [conflict]),
                (exception.ConsumerConflict, [unknown], [lost, conflict]),
                (exception.ProviderNotFound, [unknown], [lost]),
                (exception.ResourceClassNotFound, [unknown], [self.to_child(self.one, 99)]),
                (exception.CapacityExceeded, [inventories(self.root, 3, VCPU=8)],
                 [self.to_child(self.one, 99)]),
                (exception.InventoryInUse, [inventories(self.root, 3, VCPU=8)], [])):
            self.assertRaises(error, self.api.reshape, None, given, claims)
            self.check_nothing_has_changed()

    def test_a_refusal_undoes_all_steps(self):
        """Each of them is refused by the last step that it reaches."""
        for error, claims, of_child in (
                (exception.CapacityExceeded, (), {"total": 2}),
                (exception.ConstraintsViolated, (), {"max_unit": 1}),
                (exception.InventoryInUse, [self.to_child(self.one, 2)], {})):
            self.assertRaises(error, self.move, *claims, **of_child)
            self.check_nothing_has_changed()
            self.assertEqual({"allocation.claim.refused"}, set(self.types()))

    def test_a_refusal_between_claims_of_the_same_transaction(self):
        consumers = [base.new_uuid() for _ in range(3)]
        wanted = [base.claim({self.root: amounts}, consumer) for consumer, amounts in zip(
            consumers, ({"VGPU": 1}, {"VGPU": 5}, {"VCPU": 1}), strict=True)]
        first, second, third = batch.settle(self.service.database, [
            ClaimChange(request_of_claim("first", wanted[0]), wanted[0]),
            ReshapeChange(
                Request.of("second", "reshape", {}),
                [inventories(self.root, VCPU=9, VGPU=9), inventories(self.child, VGPU=1)],
                [base.claim({}, self.one), base.claim({self.root: {"VGPU": 9}}, consumers[1])]),
            ClaimChange(request_of_claim("third", wanted[2]), wanted[2])])
        self.assertIsNone(first.error or third.error)
        self.assertEqual("placement.claim.capacity_exceeded", second.error.code)
        self.assertEqual({"VCPU": 3, "VGPU": 4}, self.used(self.root))
        self.assertEqual({"VCPU": 8, "VGPU": 4}, {
            each.resource_class: each.capacity
            for each in self.api.get_usages(None, self.root).objects})
        self.assertEqual(5, self.generation(self.root))
        self.assertEqual(["allocation.create", "allocation.claim.refused", "allocation.create"],
                         self.types())
        self.assertEqual({}, self.api.verify_index(None)["differences"])

    def test_amounts_that_stay_have_to_agree_with_the_new_inventories(self):
        self.assertRaises(
            exception.ConstraintsViolated, self.api.reshape, None,
            [inventories(self.root, 3, VCPU=8, VGPU={"total": 4, "max_unit": 1})],
            [base.claim({self.root: {"VCPU": 1, "VGPU": 2}}, self.one)])

    def test_two_deliveries_in_one_transaction(self):
        given = [inventories(self.root, VCPU=9, VGPU=4)]
        outcomes = batch.settle(self.service.database, [
            ReshapeChange(Request.of("one", "reshape", {}), given, []) for _ in range(2)])
        self.assertEqual([False, True], [
            each.replayed for each in [ManagerBase.answer(found) for found in outcomes]])

    def test_a_capacity_below_what_is_used(self):
        """Also one of 0, since more is reserved than there is."""
        done = self.api.reshape(None, [inventories(
            self.root, 3, VCPU=1, VGPU={"total": 4, "reserved": 9})])
        self.assertEqual({self.root: 4}, done.generations)
        self.assertEqual({"VCPU": (2, 1), "VGPU": (3, 0)}, {
            each.resource_class: (each.used, each.capacity)
            for each in self.api.get_usages(None, self.root).objects})
        self.assertEqual(["inventory.update", *["inventory.capacity_exceeded"] * 2], self.types())

    def test_a_capacity_that_is_enough_after_the_claims(self):
        """As when dedicated processors become a class of their own."""
        self.api.reshape(None, [inventories(self.root, VCPU=8, VGPU=1)],
                         [base.claim({self.root: {"VCPU": 1}}, self.one)])
        self.assertEqual({"VCPU": 2, "VGPU": 1}, self.used(self.root))
        self.assertEqual(["inventory.update", "allocation.update"], self.types())

    def test_a_claim_without_allocations_releases(self):
        done = self.api.reshape(
            None, [inventories(self.root, 3, VCPU=8)],
            [base.claim({}, self.one), base.claim({self.root: {"VCPU": 1}}, self.two)])
        self.assertEqual({self.one: 0, self.two: 2}, done.consumer_generations)
        self.assertEqual({}, self.held(self.one))
        self.assertEqual({"VCPU": 1}, self.used(self.root))

    def test_what_changes_nothing_raises_nothing(self):
        done = self.api.reshape(None, [inventories(
            self.root, 3, VCPU=8, VGPU={"total": 4, "max_unit": 4})])
        self.assertEqual({self.root: 3}, done.generations)
        self.assertEqual([], self.events())

    def test_input(self):
        for given, claims in (
                ([], []), ([inventories(self.root), inventories(self.root)], []),
                ([InventoryList(objects=[])], []),
                ([inventories(self.root, VCPU=8)], [self.to_child(self.one, 1)] * 2)):
            self.assertRaises(exception.InvalidInput, self.api.reshape, None, given, claims)
        self.assertRaises(exception.BatchTooLarge, self.api.reshape, None, [
            inventories(base.new_uuid()) for _ in range(
                self.service.conf.claims.max_batch + 1)])
