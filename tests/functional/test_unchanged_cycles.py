# SPDX-License-Identifier: Apache-2.0
"""A tracker's cycle that is like its last one is answered from memory, and never wrongly."""

import time
import types

import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.db import models
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.db.queries import providers, services
from placement_rpc.nova.unchanged import UnchangedCycles
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, statements
from tests.functional.node_case import node


class UnchangedCycleTest(base.TestCase):
    """Two services on one store; the first remembers the tracker's cycle."""

    def new_database(self):
        """Return the URL of a database; None for a new one of SQLite."""

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(placement_fixtures.RunningService(
            "local", database_url=self.new_database()))
        self.api = self.service.api
        self.other = self.useFixture(placement_fixtures.RunningService(
            "local", database_url=self.service.conf.database.connection)).api
        self.node = node(uuid=base.new_uuid())
        # The first creates the node, and the second changes nothing.
        self.assertEqual([["compute_node"], []], [self.sync().changed for _ in range(2)])
        self.remembered()

    def sync(self, allocations=None, api=None, at=None, **how):
        return (api or self.api).sync_compute_node(None, self.node, {
            consumer: {"project_id": "project", "user_id": "user", "resources": resources}
            for consumer, resources in (allocations or {}).items()},
            time.time() + 25 if at is None else at, **how)

    def statements(self, **how):
        """Return how many SELECTs a cycle takes."""
        with statements.recorded(self.service.database) as found:
            self.assertEqual([], self.sync(**how).changed)
        return statements.reads(found)

    def remembered(self, **how):
        self.assertEqual(1, self.statements(**how))

    def compared(self, **how):
        """A cycle is compared with the store, and remembered then."""
        self.assertGreater(self.statements(**how), 1)
        self.remembered(**how)

    def capacity(self):
        return {each.resource_class: each.total
                for each in self.api.get_inventory(None, self.node.uuid).objects}

    def test_the_answer_is_that_of_a_cycle_that_is_compared(self):
        for _ in range(2):
            ours, others = self.sync(), self.sync(api=self.other)
            self.assertEqual(base.without_order(others.obj_to_primitive()),
                             base.without_order(ours.obj_to_primitive()))

    def test_another_snapshot_and_healing_make_no_difference(self):
        self.remembered(at=time.time() - 60, heal=True)

    def test_what_another_service_wrote_meanwhile_is_written_back(self):
        self.node.running_vms = 7
        self.assertEqual(["running_vms"], self.sync(api=self.other).changed)
        self.node.running_vms = 0
        self.assertEqual(["running_vms"], self.sync().changed)
        self.compared()

    def test_an_inventory_that_somebody_changed_is_repaired(self):
        before = self.capacity()
        self.other.set_inventory(None, self.node.uuid, [
            base.inventory("VCPU", 1), base.inventory("MEMORY_MB", 1)])
        self.assertIn("VCPU", self.sync().changed)
        self.assertEqual(before, self.capacity())
        self.compared()

    def test_a_claim_that_the_tracker_does_not_know_is_told(self):
        consumer = base.new_uuid()
        self.other.claim_allocations(None, base.claim(
            {self.node.uuid: {"VCPU": 1}}, consumer=consumer))
        # It may be too new for this snapshot: then it is told by a later one.
        self.assertEqual([], self.sync(at=time.time()).disagreements)
        self.age(consumer)
        told, = self.sync().disagreements
        self.assertEqual((consumer, "orphaned"), (told.consumer_uuid, told.kind))
        self.compared(allocations={consumer: {"VCPU": 1}})
        self.other.release_allocations(None, consumer)
        told, = self.sync({consumer: {"VCPU": 1}}).disagreements
        self.assertEqual("missing", told.kind)

    def age(self, consumer):
        self.service.database.write(lambda tx: tx.execute(
            sa.update(models.consumers).where(models.consumers.c.uuid == consumer).values(
                updated_at=sa.text("'2020-01-01 00:00:00.000000'"))))

    def test_a_disk_that_the_node_shares_from_now_on_is_told(self):
        disk, aggregate = self.other.create_provider(None, "nfs").uuid, base.new_uuid()
        self.other.set_inventory(None, disk, [base.inventory("DISK_GB", 1000)])
        self.other.set_aggregates(None, self.node.uuid, [aggregate])
        self.compared()
        # It raises the generation of the disk's provider only.
        self.other.set_aggregates(None, disk, [aggregate])
        self.assertEqual(disk, self.sync().shared_disk_uuid)
        self.assertEqual(disk, self.sync().shared_disk_uuid)
        # What is shared is compared each time.
        self.assertGreater(self.statements(), 1)
        self.assertGreater(self.statements(), 1)

    def test_a_ratio_that_is_not_reported_is_not_one_that_is_reported_as_none(self):
        """The first leaves what is stored, the second stands for the option of the service."""
        del self.node.cpu_allocation_ratio
        self.compared()
        self.node.cpu_allocation_ratio = None
        self.assertEqual(["VCPU"], self.sync().changed)

    def test_while_older_services_are_alive_nothing_is_remembered(self):
        identity = {"binary": "placement-rpc-conductor", "host": "old", "worker": 0}
        self.service.database.write(lambda tx: services.beat(
            tx, identity, {"version": "0.1.0", "rpc_version": "1.0"}, True))
        # One that began before looks for older services only now and then.
        self.service = self.useFixture(placement_fixtures.RunningService(
            "local", database_url=self.service.conf.database.connection))
        self.api = self.service.api
        # It writes the old columns, too.
        self.assertIn("vcpus", self.sync().changed)
        self.assertGreater(self.statements(), 1)
        self.assertGreater(self.statements(), 1)

    def test_two_nodes_of_one_uuid_are_compared_each_time(self):
        self.service.database.write(lambda tx: queries.insert(tx, {
            "uuid": self.node.uuid, "host": "other", "hypervisor_hostname": "other"}))
        self.assertGreater(self.statements(), 1)
        self.assertGreater(self.statements(), 1)

    def test_what_is_wrong_is_refused_as_ever(self):
        for wrong in ({"request_id": "#"}, {"heal": "yes"}, {"allow_below_use": 3},
                      {"at": time.time() + 3600}, {"at": "now"}):
            self.assertRaises(exception.InvalidInput, self.sync, **wrong)

    def test_the_id_of_another_request_is_refused(self):
        request_id = base.new_uuid()
        self.other.create_provider(None, "another", request_id=request_id)
        self.assertRaises(exception.RequestIdReused, self.sync, request_id=request_id)

    def test_nodes_in_one_aggregate_share_nothing(self):
        aggregate, other = base.new_uuid(), node(
            uuid=base.new_uuid(), hypervisor_hostname="another.example.org")
        self.other.sync_compute_node(None, other, {}, time.time())
        for uuid in (self.node.uuid, other.uuid):
            self.other.set_aggregates(None, uuid, [aggregate])
        self.compared()

    def test_a_provider_that_was_deleted_is_made_again(self):
        self.other.delete_provider(None, self.node.uuid)
        self.assertIn("provider", self.sync().changed)
        self.compared()

    def test_a_request_that_was_settled_is_answered_with_its_outcome(self):
        self.node.memory_mb += 1024
        request_id, at = base.new_uuid(), time.time()
        first = self.sync(request_id=request_id, at=at)
        self.assertEqual(["MEMORY_MB"], first.changed)
        self.compared()
        again = self.sync(request_id=request_id, at=at)
        self.assertEqual(base.without_order(first.obj_to_primitive()),
                         base.without_order(again.obj_to_primitive()))

    def find(self, cycles, *asked):
        """Return whether each of some nodes and request ids is found."""
        return [result is not None for result in cycles.find(self.service.database, [
            types.SimpleNamespace(node_uuid=uuid, request_id=request_id, fingerprint="said")
            for uuid, request_id in asked])]

    def test_several_that_are_looked_for_together(self):
        cycles, others = UnchangedCycles(), [node(
            uuid=base.new_uuid(), hypervisor_hostname=f"{number}.example.org")
            for number in range(3)]
        for each in others:
            self.api.sync_compute_node(None, each, {}, time.time())
        uuids = [each.uuid for each in others]
        with self.service.database.reader() as tx:
            rows = queries.of_uuids(tx, uuids)
            for row in rows:
                cycles.remember("said", row, providers.get(tx, row.uuid))
        first, second, third = uuids
        new = base.new_uuid()
        self.assertEqual([True] * 5, self.find(
            cycles, (first, "1"), (second, "2"), (first, "3"), (third, "4"), (second, "2")))
        self.assertEqual([True, False, True], self.find(
            cycles, (first, "1"), (new, "2"), (third, "3")))
        # Two nodes have the uuid of the second.
        self.service.database.write(lambda tx: queries.insert(tx, {
            "uuid": second, "host": "other", "hypervisor_hostname": "other"}))
        self.assertEqual([True, False, True], self.find(
            cycles, (first, "1"), (second, "2"), (third, "3")))
        # Another service changes the third.
        self.other.set_inventory(None, third, [
            base.inventory("VCPU", 1), base.inventory("MEMORY_MB", 1)])
        self.assertEqual([True, False, False], self.find(
            cycles, (first, "1"), (second, "2"), (third, "3")))
        # One request was settled: none is answered from memory.
        request_id = base.new_uuid()
        self.other.create_provider(None, "another", request_id=request_id)
        self.assertEqual([False, False], self.find(cycles, (first, "1"), (third, request_id)))
        self.assertEqual([False], self.find(cycles, (third, "1")))


class ForgottenTest(base.TestCase):

    def test_those_that_were_heard_least_recently_are_forgotten(self):
        service = self.useFixture(placement_fixtures.RunningService("local"))
        database, cycles = service.database, UnchangedCycles(limit=2)
        nodes = [node(uuid=base.new_uuid(), hypervisor_hostname=f"{number}.example.org")
                 for number in range(3)]
        for each in nodes:
            service.api.sync_compute_node(None, each, {}, time.time())

        def find(number):
            return cycles.find(database, [types.SimpleNamespace(
                node_uuid=nodes[number].uuid, request_id="request", fingerprint="said")])[0]

        def remember(number):
            with database.reader() as tx:
                cycles.remember("said", queries.of_uuids(tx, [nodes[number].uuid])[0],
                                providers.get(tx, nodes[number].uuid))

        remember(0), remember(1)
        self.assertIsNotNone(find(0))
        remember(2)
        self.assertEqual([True, False, True], [find(number) is not None for number in range(3)])
