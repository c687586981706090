# SPDX-License-Identifier: Apache-2.0
"""Events in the outbox: one in the transaction of each change, and none without a change."""

import datetime

import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.db import models
from placement_rpc.notifications.event import Event
from placement_rpc.notifications.usage import UsageAccount
from placement_rpc.objects.codec import without_envelopes
from placement_rpc.objects.request import ResourceRequest
from tests import base, stored_events


class EventTest(stored_events.StoredEvents, base.ContractTest):

    def only(self, event_type):
        (found, data), = self.events()
        self.assertEqual(event_type, found)
        return data

    def test_a_provider_from_beginning_to_end(self):
        uuid = self.api.create_provider(None, "old", request_id="one").uuid
        created = self.only("resource_provider.create")
        self.assertEqual((uuid, 0, None, "old", "one"), tuple(created[name] for name in (
            "provider_uuid", "generation", "previous_generation", "name", "request_id")))
        self.api.update_provider(None, uuid, "new")
        updated = self.only("resource_provider.update")
        self.assertEqual(("old", "new", 0, 1), tuple(updated[name] for name in (
            "previous_name", "name", "previous_generation", "generation")))
        self.api.delete_provider(None, uuid)
        self.assertEqual(uuid, self.only("resource_provider.delete")["provider_uuid"])

    def test_aggregates(self):
        uuid, first, second = self.provider(), base.new_uuid(), base.new_uuid()
        self.events()
        self.api.set_aggregates(None, uuid, [first])
        self.assertEqual([first], self.only(
            "resource_provider.aggregate.associate")["aggregates"])
        self.api.set_aggregates(None, uuid, [second])
        self.assertEqual(["resource_provider.aggregate.disassociate",
                          "resource_provider.aggregate.associate"], self.types())

    def test_inventories_before_and_after(self):
        uuid = self.provider(VCPU=8, DISK_GB=10)
        self.events()
        self.api.set_inventory(None, uuid, [
            base.inventory("VCPU", 16), base.inventory("MEMORY_MB", 512)])
        found = dict(self.events())
        self.assertEqual({"inventory.delete", "inventory.update", "inventory.create"}, set(found))
        change, = found["inventory.update"]["inventories"]
        before, after = (change["placement_object.data"][name]["placement_object.data"]["total"]
                         for name in ("before", "after"))
        self.assertEqual((8, 16), (before, after))
        self.assertEqual({(1, 2)}, {(each["previous_generation"], each["generation"])
                                    for each in found.values()})

    def test_a_capacity_below_what_is_used(self):
        uuid = self.provider(VCPU=8)
        self.claim({uuid: {"VCPU": 8}})
        self.events()
        for generation, total in ((3, 2), (4, 4)):
            self.api.update_inventory(None, uuid, base.inventory("VCPU", total))
            (first, _), (second, payload) = self.events()
            self.assertEqual(
                ("inventory.update", "inventory.capacity_exceeded"), (first, second))
            self.assertEqual((uuid, generation, "VCPU", total, 8), tuple(
                payload[name] for name in (
                    "provider_uuid", "generation", "resource_class", "capacity", "used")))
        self.api.update_inventory(None, uuid, base.inventory("VCPU", 8))
        self.assertEqual(["inventory.update"], self.types())

    def test_a_consumer_from_beginning_to_end(self):
        one, two = self.provider(VCPU=8), self.provider(VCPU=8)
        self.events()
        consumer, _ = self.claim({one: {"VCPU": 1}}, project_id="blue", request_id="claim")
        created = self.only("allocation.create")
        self.assertEqual(
            (consumer, 1, 0, "blue", "user", None, "claim"), tuple(created[name] for name in (
                "consumer_uuid", "consumer_generation", "previous_consumer_generation",
                "project_id", "user_id", "previous_project_id", "request_id")))
        self.claim({two: {"VCPU": 2}}, consumer, project_id="red")
        (first, updated), (second, changed) = self.events()
        self.assertEqual(("allocation.update", "consumer.update"), (first, second))
        self.assertEqual(("red", "blue"), (updated["project_id"], updated["previous_project_id"]))
        self.assertEqual(
            {(one, 2, 3, (("VCPU", 1),), ()), (two, 1, 2, (), (("VCPU", 2),))},
            {self._provider(each) for each in updated["providers"]})
        self.assertEqual({**updated, **changed}, {**changed, **updated} | {
            name: changed[name] for name in ("event_id", "occurred_at")})
        self.api.release_allocations(None, consumer)
        deleted = self.only("allocation.delete")
        self.assertEqual(0, deleted["consumer_generation"])
        self.assertEqual({(two, 2, 3, (("VCPU", 2),), ())},
                         {self._provider(each) for each in deleted["providers"]})

    def test_a_change_of_type_is_one_of_the_consumer(self):
        uuid = self.provider(VCPU=8)
        consumer, _ = self.claim({uuid: {"VCPU": 1}})
        self.events()
        for before, after, generation in ((None, "INSTANCE", 2), ("INSTANCE", "MIGRATION", 3)):
            self.claim({uuid: {"VCPU": 1}}, consumer, consumer_type=after)
            found = self.events()
            self.assertEqual(["allocation.update", "consumer.update"], [each for each, _ in found])
            for _, data in found:
                self.assertEqual((before, after, generation - 1, generation), tuple(
                    data[name] for name in (
                        "previous_consumer_type", "consumer_type", "previous_consumer_generation",
                        "consumer_generation")))
        self.claim({uuid: {"VCPU": 2}}, consumer)
        self.assertEqual("MIGRATION", self.only("allocation.update")["consumer_type"])

    def test_the_mappings_of_a_claim_are_kept_with_its_event(self):
        uuid = self.provider(VCPU=8)
        mappings = {"": [uuid], "_net-1": [uuid, base.new_uuid()]}
        consumer, _ = self.claim({uuid: {"VCPU": 1}}, mappings=mappings)
        self.assertEqual(mappings, self.events()[-1][1]["mappings"])
        self.claim({uuid: {"VCPU": 2}}, consumer)
        self.assertIsNone(self.only("allocation.update")["mappings"])

    def test_a_set_of_claims_is_a_step_of_each_provider(self):
        one, two = self.provider(VCPU=8), self.provider(VCPU=8)
        old, _ = self.claim({one: {"VCPU": 8}, two: {"VCPU": 1}}, project_id="blue")
        self.events()
        new = base.claim({one: {"VCPU": 8}})
        self.api.set_allocations(None, [
            base.claim({two: {"VCPU": 1}}, old, project_id="red"), new], request_id="set")
        found = self.events()
        self.assertEqual({"set"}, {data["request_id"] for _, data in found})
        by_consumer = {(event_type, data["consumer_uuid"]): data for event_type, data in found}
        self.assertEqual({("allocation.update", old), ("consumer.update", old),
                          ("allocation.create", new.consumer_uuid)}, by_consumer.keys())
        self.assertEqual(
            {(one, 2, 3, (("VCPU", 8),), ()), (two, 2, 2, (("VCPU", 1),), (("VCPU", 1),))},
            {self._provider(each) for each in by_consumer["allocation.update", old]["providers"]})
        self.assertEqual({(one, 2, 3, (), (("VCPU", 8),))}, {self._provider(each) for each in (
            by_consumer["allocation.create", new.consumer_uuid]["providers"])})

    def test_what_a_consumer_had_before_it_changed_hands_is_billed_to_its_owner_then(self):
        begin = datetime.datetime.now(datetime.UTC)
        uuid = self.provider(VCPU=8)
        consumer, _ = self.claim({uuid: {"VCPU": 2}}, project_id="blue")
        self.api.set_allocations(None, [base.claim(
            {uuid: {"VCPU": 2}}, consumer, project_id="red", consumer_type="INSTANCE")])
        account = UsageAccount(begin, datetime.datetime.now(datetime.UTC))
        for position, (event_type, data) in enumerate(self.events(), 1):
            account.apply(Event(data["event_id"], event_type, position, data["occurred_at"],
                                without_envelopes(data)))
        self.assertTrue(account.complete)
        self.assertEqual({"blue": (0, True), "red": (2, True)}, {
            line.project_id: (line.held, line.resource_hours > 0) for line in account.lines()})

    def test_a_refused_set_says_so_for_each_claim(self):
        uuid = self.provider(VCPU=8)
        self.claim({uuid: {"VCPU": 8}})
        self.events()
        wanted = [base.claim({uuid: {"VCPU": amount}}) for amount in (1, 2)]
        self.assertRaises(exception.CapacityExceeded, self.api.set_allocations, None, [
            *wanted, base.claim({}, base.new_uuid())])
        found = self.events()
        self.assertEqual(["allocation.claim.refused"] * 2, [each for each, _ in found])
        self.assertEqual({each.consumer_uuid: each.allocations for each in wanted},
                         {data["consumer_uuid"]: data["allocations"] for _, data in found})

    @staticmethod
    def _provider(each):
        data = each["placement_object.data"]
        return (data["provider_uuid"], data["previous_generation"], data["generation"],
                tuple(data["before"].items()), tuple(data["after"].items()))

    def test_a_move_is_two_changes_of_two_generations(self):
        uuid = self.provider(VCPU=8)
        consumer, _ = self.claim({uuid: {"VCPU": 1}})
        self.events()
        self.api.move_allocations(None, consumer, base.new_uuid())
        found = self.events()
        self.assertEqual(["allocation.delete", "allocation.create"],
                         [event_type for event_type, _ in found])
        self.assertEqual([(2, 3), (3, 4)], [
            self._provider(data["providers"][0])[1:3] for _, data in found])

    def test_a_refusal_says_why(self):
        uuid = self.provider(VCPU=1)
        self.events()
        self.assertRaises(exception.CapacityExceeded, self.claim, {uuid: {"VCPU": 2}})
        refused = self.only("allocation.claim.refused")
        self.assertEqual({uuid: {"VCPU": 2}}, refused["allocations"])
        self.assertEqual("placement.claim.capacity_exceeded", refused["error"]["code"])
        wanted = base.claim(None)
        del wanted.allocations
        self.assertRaises(exception.NoCandidates, self.api.claim_by_request, None,
                          ResourceRequest(resources={"VCPU": 2}), wanted)
        self.only("allocation.claim.refused")

    def test_resource_classes(self):
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        self.api.resource_class_rename(None, "CUSTOM_GOLD", "CUSTOM_SILVER")
        self.api.resource_class_delete(None, "CUSTOM_SILVER")
        self.assertEqual(["resource_class.create", "resource_class.update",
                          "resource_class.delete"], self.types())

    def test_a_custom_class_is_named_though_the_request_did_not(self):
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        uuid = self.provider(CUSTOM_GOLD=4, VCPU=4)
        consumer, _ = self.claim({uuid: {"CUSTOM_GOLD": 1}})
        self.events()
        self.claim({uuid: {"VCPU": 1}}, consumer)
        self.assertEqual({(uuid, 2, 3, (("CUSTOM_GOLD", 1),), (("VCPU", 1),))}, {
            self._provider(each) for each in self.only("allocation.update")["providers"]})

    def test_what_changes_nothing_is_no_event(self):
        uuid = self.provider(VCPU=8)
        consumer, _ = self.claim({uuid: {"VCPU": 1}}, request_id="one")
        self.events()
        self.api.update_provider(None, uuid, self.api.get_provider(None, uuid).name)
        self.api.set_inventory(None, uuid, [base.inventory("VCPU", 8)])
        self.api.set_aggregates(None, uuid, [])
        self.claim({uuid: {"VCPU": 1}}, consumer)
        self.claim({uuid: {"VCPU": 1}}, consumer, request_id="one")
        self.assertRaises(exception.ProviderInUse, self.api.delete_provider, None, uuid)
        self.assertRaises(exception.ConsumerNotFound, self.api.release_allocations, None,
                          base.new_uuid())
        self.assertEqual([], self.types())

    def test_a_release_is_an_event_whatever_the_generation(self):
        """Stores into which an older release brought Placement's have generation 0."""
        provider = self.provider(VCPU=8)
        consumer, _ = self.claim({provider: {"VCPU": 3}})
        with self.service.database.writer() as tx:
            tx.execute(sa.update(models.consumers).values(generation=0))
        self.api.release_allocations(None, consumer)
        self.assertEqual("allocation.delete", self.types()[-1])
        self.assertEqual([provider], [each.uuid for each in self.api.get_by_request(
            None, ResourceRequest(resources={"VCPU": 8})).objects])
