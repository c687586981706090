# SPDX-License-Identifier: Apache-2.0
"""The gate: compute nodes while an old service is alive, whose columns it still needs."""

import datetime

import sqlalchemy as sa

import placement_rpc
from placement_rpc import exception
from placement_rpc.db import models
from placement_rpc.db.queries import bulk
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.upgrade import gate
from tests.functional.node_case import NodeTest, node


class GateTest(NodeTest):

    def test_while_an_old_service_is_alive_both_places_are_written(self):
        self.bring_in(node("old.example.org", host="old").obj_to_primitive())
        with self.old_service():
            self.assertEqual((1, 0), (self.migrate().found, self.migrate().done))
            new = self.stored()
            row = self.row(new.hypervisor_hostname)
            self.assertEqual((8, None), (row.vcpus, row.inventory_migrated_at))
            self.assertEqual(8, self.inventory(new.uuid)["VCPU"][0])
            new.vcpus, new.vcpus_used = 16, 3
            new.save()
            row = self.row(new.hypervisor_hostname)
            self.assertEqual((16, 3), (row.vcpus, row.vcpus_used))
            self.assertEqual(16, self.inventory(new.uuid)["VCPU"][0])
            read = ComputeNode.get_by_host_and_nodename(self.context, "old", "old.example.org")
            self.assertEqual((8, 4.0), (read.vcpus, read.cpu_allocation_ratio))
            self.assertIsNone(self.row("old.example.org").inventory_migrated_at)
            read.vcpus = 12
            read.save()
            self.assertEqual(12, self.row("old.example.org").vcpus)
            self.assertRaises(exception.ProviderNotFound, self.api.get_provider, None, read.uuid)
        self.assertEqual((2, 2), (lambda done: (done.found, done.done))(self.migrate()))
        self.assertEqual(12, self.inventory(read.uuid)["VCPU"][0])

    def test_a_positive_answer_is_kept_for_an_interval_and_a_negative_one_is_not(self):
        now = [1000.0]
        opened = gate.InventoryGate(self.service.conf, self.database, lambda: now[0])
        with self.old_service():
            self.assertFalse(opened.is_open())
            self.assertEqual(["placement-rpc-conductor 3 on old.example.org (version 0.1.0)"],
                             [gate.name(row) for row in opened.holders()])
        self.assertTrue(opened.is_open())
        with self.old_service():
            self.assertTrue(opened.is_open())
            self.assertFalse(gate.InventoryGate(self.service.conf, self.database).is_open())
            now[0] += self.service.conf.conductor.report_interval
            self.assertFalse(opened.is_open())

    def test_it_closes_again_when_a_service_that_looked_dead_is_alive(self):
        now = [1000.0]
        opened = gate.InventoryGate(self.service.conf, self.database, lambda: now[0])
        with self.old_service():
            self.last_seen(seconds=90)
            self.assertTrue(opened.is_open())
            self.last_seen(seconds=0)
            now[0] += self.service.conf.conductor.report_interval
            self.assertFalse(opened.is_open())

    def last_seen(self, seconds):
        """Have the heartbeat of the old service be so many seconds old."""
        self.database.write(lambda tx: tx.execute(sa.update(models.services).where(
            models.services.c.host == "old.example.org").values(
                last_seen_at=bulk.now() - datetime.timedelta(seconds=seconds))))

    def test_a_service_that_is_down_does_not_hold_it(self):
        with self.old_service():
            self.last_seen(seconds=90)
            self.assertTrue(gate.InventoryGate(self.service.conf, self.database).is_open())

    def test_an_operator_has_the_last_word(self):
        with self.old_service():
            for mode, is_open in (("always", True), ("auto", False), ("never", False)):
                self.service.conf.set_override(
                    "inventory_migration", mode, group="compute_nodes")
                self.assertEqual(is_open, gate.InventoryGate(
                    self.service.conf, self.database).is_open())
        self.assertEqual("never", self.service.conf.compute_nodes.inventory_migration)
        self.assertFalse(gate.InventoryGate(self.service.conf, self.database).is_open())

    def test_this_release_does_not_hold_it(self):
        with self.old_service(placement_rpc.__version__, "1.2"):
            self.assertTrue(gate.InventoryGate(self.service.conf, self.database).is_open())
        for version in ("0.1.9", "nonsense", ""):
            with self.old_service(version, "1.2"):
                self.assertFalse(gate.InventoryGate(
                    self.service.conf, self.database).is_open())
