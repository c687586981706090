# SPDX-License-Identifier: Apache-2.0
"""sync_compute_node: differences between what a tracker reports and what the store has."""

import time
import uuid as uuid_module

import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.db import models
from placement_rpc.objects.nova.compute_node import ComputeNode
from tests import base
from tests.functional.node_case import node
from tests.functional.test_sync import SyncTest


class DisagreementTest(SyncTest):

    def kinds(self, done):
        return [(each.consumer_uuid, each.kind, each.healed) for each in done.disagreements]

    def test_a_consumer_that_the_tracker_does_not_know(self):
        self.sync()
        orphan = self.held_by({"VCPU": 2})
        done = self.sync()
        self.assertEqual([(orphan, "orphaned", False)], self.kinds(done))
        self.assertEqual({self.node.uuid: {"VCPU": 2}}, done.disagreements[0].held)
        self.assertEqual({self.node.uuid: {"VCPU": 2}}, self.held(orphan))
        self.assertEqual([(orphan, "orphaned", True)], self.kinds(self.sync(heal=True)))
        self.assertEqual({}, self.held(orphan))
        self.assertEqual([], self.kinds(self.sync(heal=True)))

    def test_a_consumer_that_is_younger_than_what_the_tracker_saw_is_left_alone(self):
        self.sync()
        looked = time.time()
        young, _ = self.claim({self.node.uuid: {"VCPU": 2}})
        done = self.sync(at=looked, heal=True)
        self.assertEqual([], self.kinds(done))
        self.assertEqual({self.node.uuid: {"VCPU": 2}}, self.held(young))

    def test_a_consumer_that_the_store_does_not_know(self):
        self.sync()
        missing = base.new_uuid()
        done = self.sync({missing: {"VCPU": 2, "DISK_GB": 20}})
        self.assertEqual([(missing, "missing", False)], self.kinds(done))
        done = self.sync({missing: {"VCPU": 2, "DISK_GB": 20}}, heal=True)
        self.assertEqual([(missing, "missing", True)], self.kinds(done))
        self.assertEqual({self.node.uuid: {"VCPU": 2, "DISK_GB": 20}}, self.held(missing))

    def test_what_was_given_back_after_the_tracker_looked_does_not_come_back(self):
        self.sync()
        gone = self.held_by({"VCPU": 2})
        looked = time.time()
        self.api.release_allocations(None, gone)
        done = self.sync({gone: {"VCPU": 2}}, at=looked, heal=True)
        self.assertEqual([(gone, "missing", False)], self.kinds(done))
        self.assertIn("released after", done.disagreements[0].reason)
        self.assertEqual({}, self.held(gone))

    def test_a_release_that_an_older_conductor_recorded_counts_too(self):
        self.sync()
        gone = self.held_by({"VCPU": 2})
        looked = time.time()
        self.api.release_allocations(None, gone)
        with self.database.writer() as tx:
            changed = tx.execute(sa.update(models.events).where(
                models.events.c.released_consumer == gone).values(released_consumer=None))
            self.assertEqual(1, changed.rowcount)
        done = self.sync({gone: {"VCPU": 2}}, at=looked, heal=True)
        self.assertEqual([(gone, "missing", False)], self.kinds(done))
        self.assertIn("released after", done.disagreements[0].reason)

    def test_an_old_snapshot_heals_nothing(self):
        self.sync()
        orphan = self.held_by({"VCPU": 2})
        missing = base.new_uuid()
        done = self.sync({missing: {"VCPU": 2}}, at=time.time() - 7200, heal=True)
        self.assertEqual({(orphan, "orphaned", False), (missing, "missing", False)},
                         set(self.kinds(done)))
        self.assertEqual({"the tracker's snapshot is too old"},
                         {each.reason for each in done.disagreements})

    def test_the_parts_of_a_request_have_different_ids(self):
        """Two consumers whose uuids have the same remainder had the same part of a request."""
        self.sync()
        first = uuid_module.UUID(int=(4 << 76) + (2 << 62))
        consumers = [str(first), str(uuid_module.UUID(int=first.int + 999_999_999))]
        done = self.sync({each: {"VCPU": 1} for each in consumers}, heal=True)
        self.assertEqual({(each, "missing", True) for each in consumers}, set(self.kinds(done)))
        for each in consumers:
            self.assertEqual({self.node.uuid: {"VCPU": 1}}, self.held(each))

    def test_other_amounts(self):
        self.sync()
        consumer = self.held_by({"VCPU": 2, "MEMORY_MB": 1024})
        done = self.sync({consumer: {"VCPU": 4, "MEMORY_MB": 1024}}, heal=True)
        self.assertEqual([(consumer, "different", True)], self.kinds(done))
        self.assertEqual({self.node.uuid: {"VCPU": 4, "MEMORY_MB": 1024}}, self.held(consumer))

    def test_classes_that_no_node_has_are_no_business_of_its_tracker(self):
        self.sync()
        self.api.add_inventory(None, self.node.uuid, base.inventory("IPV4_ADDRESS", 9))
        reported = self.held_by({"IPV4_ADDRESS": 1, "VCPU": 1})
        self.assertEqual([], self.sync({reported: {"IPV4_ADDRESS": 3, "VCPU": 1}}).disagreements)
        self.api.release_allocations(None, reported)
        only, both = self.held_by({"IPV4_ADDRESS": 1}), self.held_by(
            {"IPV4_ADDRESS": 1, "VCPU": 1})
        done = self.sync(heal=True)
        self.assertEqual([(both, "orphaned", True)], self.kinds(done))
        for consumer in (only, both):
            self.assertEqual({self.node.uuid: {"IPV4_ADDRESS": 1}}, self.held(consumer))

    def test_a_consumer_that_was_created_again_is_left_alone(self):
        self.sync()
        orphan = self.held_by({"VCPU": 2})
        settle = self.manager().group_commit.settle

        def later(pending):
            self.manager().group_commit.settle = settle
            self.api.release_allocations(None, orphan)
            self.claim({self.node.uuid: {"VCPU": 2}}, orphan)
            return settle(pending)

        self.manager().group_commit.settle = later
        done = self.sync(heal=True)
        self.assertEqual([(orphan, "orphaned", False)], self.kinds(done))
        self.assertIn("changed since", done.disagreements[0].reason)
        self.assertEqual({self.node.uuid: {"VCPU": 2}}, self.held(orphan))

    def test_a_cycle_that_broke_off_is_finished_by_the_same_again(self):
        self.sync()
        orphans = [self.held_by({"VCPU": 1}) for _ in range(3)]
        settle, calls = self.manager().group_commit.settle, []

        def busy(pending):
            calls.append(pending)
            if len(calls) == 2:
                raise exception.StoreBusy(method="claim", attempts=1)
            return settle(pending)

        self.manager().group_commit.settle = busy
        done = self.sync(heal=True)
        self.assertTrue(all(each.healed for each in done.disagreements))
        self.assertEqual([{}, {}, {}], [self.held(each) for each in orphans])

    def manager(self):
        return self.service.manager

    def test_orphans_make_room_for_a_node_that_shrinks(self):
        self.sync()
        orphan = self.held_by({"VCPU": 8})
        self.node.vcpus = 1
        self.assertRaises(exception.CapacityConflict, self.sync, allow_below_use=False)
        done = self.sync(heal=True, allow_below_use=False)
        self.assertEqual((["VCPU"], [(orphan, "orphaned", True)]),
                         (done.changed, self.kinds(done)))

    def test_a_node_may_shrink_below_what_is_used(self):
        """Hardware that has shrunk is a fact; nothing more is claimed until enough is free."""
        self.sync()
        instance = self.held_by({"VCPU": 8})
        self.node.vcpus, self.node.cpu_allocation_ratio = 1, 1.0
        for allow in (None, True):
            done = self.sync({instance: {"VCPU": 8}}, allow_below_use=allow)
            self.assertEqual([], self.kinds(done))
        usage = self.api.get_usages(None, self.node.uuid).objects[0]
        self.assertEqual((8, 1), (usage.used, usage.capacity))
        with self.database.reader() as tx:
            types = tx.execute(sa.select(models.events.c.event_type)).scalars().all()
        self.assertEqual(1, types.count("inventory.capacity_exceeded"))
        self.assertRaises(exception.CapacityExceeded, self.claim, {self.node.uuid: {"VCPU": 1}})
        self.api.release_allocations(None, instance)
        self.claim({self.node.uuid: {"VCPU": 1}})

    def test_an_allocation_that_does_not_fit_is_reported(self):
        self.sync()
        missing = base.new_uuid()
        done = self.sync({missing: {"VCPU": 999}}, heal=True)
        self.assertEqual([(missing, "missing", False)], self.kinds(done))
        self.assertIn("999", done.disagreements[0].reason)

    def test_what_it_holds_elsewhere_stays(self):
        self.sync()
        other = self.provider(VCPU=8)
        consumer, _ = self.claim({self.node.uuid: {"VCPU": 2}, other: {"VCPU": 2}})
        self.aged(consumer)
        self.sync(heal=True)
        self.assertEqual({other: {"VCPU": 2}}, self.held(consumer))
        self.aged(consumer)
        self.sync({consumer: {"VCPU": 1}}, heal=True)
        self.assertEqual({other: {"VCPU": 2}, self.node.uuid: {"VCPU": 1}}, self.held(consumer))

    def test_too_old_a_view_heals_nothing(self):
        self.sync()
        orphan = self.held_by({"VCPU": 2})
        done = self.sync(at=time.time() - 7200, heal=True)
        self.assertEqual([(orphan, "orphaned", False)], self.kinds(done))
        self.assertEqual({self.node.uuid: {"VCPU": 2}}, self.held(orphan))

    def test_a_cycle_that_is_delivered_twice_is_answered_once(self):
        self.sync()
        self.held_by({"VCPU": 2})
        at = time.time()
        first = self.sync(at=at, heal=True, request_id="req-cycle")
        again = self.sync(at=at, heal=True, request_id="req-cycle")
        self.assertEqual(self.kinds(first), self.kinds(again))
        self.assertEqual(1, len(again.disagreements))
        self.node.vcpus = 4
        self.assertRaises(
            exception.RequestIdReused, self.sync, at=at, heal=True, request_id="req-cycle")


class SharedDiskTest(SyncTest):

    def test_the_disk_is_claimed_from_the_provider_that_has_it(self):
        self.sync()
        pool = self.share()
        done = self.sync()
        self.assertEqual(["DISK_GB"], done.changed)
        self.assertEqual(pool, done.shared_disk_uuid)
        self.assertNotIn("DISK_GB", self.inventory(self.node.uuid))
        consumer = base.new_uuid()
        said = {consumer: {"VCPU": 1, "DISK_GB": 40}}
        self.assertTrue(self.sync(said, heal=True).disagreements[0].healed)
        self.assertEqual({self.node.uuid: {"VCPU": 1}, pool: {"DISK_GB": 40}},
                         self.held(consumer))
        self.assertEqual([], self.sync(said).disagreements)
        self.aged(consumer)
        self.sync({}, heal=True)
        self.assertEqual({}, self.held(consumer))

    def test_what_was_claimed_of_the_nodes_own_disk_moves_to_the_pool(self):
        self.sync()
        consumer = self.held_by({"VCPU": 1, "DISK_GB": 40})
        pool = self.share()
        said = {consumer: {"VCPU": 1, "DISK_GB": 40}}
        done = self.sync(said, heal=True)
        self.assertEqual([True], [each.healed for each in done.disagreements])
        self.assertEqual({self.node.uuid: {"VCPU": 1}, pool: {"DISK_GB": 40}},
                         self.held(consumer))
        self.assertEqual(["DISK_GB"], self.sync(said).changed)
        self.assertNotIn("DISK_GB", self.inventory(self.node.uuid))

    def test_with_two_pools_a_disk_is_claimed_once(self):
        self.sync()
        first = self.share(total=100)
        second = self.provider("nfs 2", DISK_GB=90)
        self.api.set_aggregates(
            None, second, self.api.get_aggregates(None, first).aggregates)
        consumer = base.new_uuid()
        said = {consumer: {"VCPU": 1, "DISK_GB": 40}}
        self.sync(said, heal=True)
        self.aged(consumer)
        self.assertEqual([], self.sync(said, heal=True).disagreements)
        self.assertEqual({self.node.uuid: {"VCPU": 1}, first: {"DISK_GB": 40}},
                         self.held(consumer))

    def test_the_disk_of_another_node_in_the_aggregate_is_not_shared(self):
        self.sync()
        second = node("cmp2.example.org", uuid=base.new_uuid(), host="cmp2")
        first, self.node = self.node, second
        self.sync()
        aggregate = base.new_uuid()
        for each in (first, second):
            self.api.set_aggregates(None, each.uuid, [aggregate])
        self.assertEqual(([], None), (self.sync().changed, self.sync().shared_disk_uuid))

    def test_consumers_of_the_pool_on_other_nodes_are_no_business_of_this_one(self):
        self.sync()
        pool = self.share()
        self.sync()
        other = self.provider(VCPU=8)
        consumer, _ = self.claim({other: {"VCPU": 1}, pool: {"DISK_GB": 10}})
        self.aged(consumer)
        self.assertEqual([], self.sync(heal=True).disagreements)

    def test_what_is_read_of_the_disk_is_the_pools(self):
        self.sync()
        pool = self.share(total=1000)
        self.sync()
        self.claim({pool: {"DISK_GB": 300}})
        read = ComputeNode.get_by_uuid(self.context, self.node.uuid)
        self.assertEqual((1000, 300, 700), (
            read.local_gb, read.local_gb_used, read.free_disk_gb))
