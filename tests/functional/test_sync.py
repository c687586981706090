# SPDX-License-Identifier: Apache-2.0
"""sync_compute_node: one call for each cycle of a resource tracker."""

import copy
import time

import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.db import migration, models
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.objects.nova.pci_device_pool import PciDevicePoolList
from tests import base
from tests.functional.node_case import NodeTest, node


class SyncTest(NodeTest):

    def setUp(self):
        super().setUp()
        self.node = node(uuid=base.new_uuid())

    def sync(self, allocations=None, at=None, **how):
        """A cycle of the node's tracker, which looked just now, or some seconds ago."""
        return self.api.sync_compute_node(
            None, self.node, {
                consumer: {"project_id": "project", "user_id": "user", "resources": resources}
                for consumer, resources in (allocations or {}).items()},
            time.time() + 25 if at is None else at, **how)

    def written(self):
        """Everything that a cycle could write."""
        with self.database.reader() as tx:
            return [tx.execute(sa.select(table)).all() for table in (
                models.compute_nodes, models.resource_providers, models.inventories,
                models.consumers, models.allocations, models.requests)]

    def aged(self, consumer, seconds=3600):
        """What a consumer holds it has held for long."""
        self.database.write(lambda tx: tx.execute(sa.text(
            "UPDATE consumers SET updated_at = '2020-01-01' WHERE uuid = :uuid"),
            {"uuid": consumer}))
        return consumer

    def held_by(self, amounts, provider=None):
        consumer, _ = self.claim({provider or self.node.uuid: amounts})
        return self.aged(consumer)

    def share(self, total=1000):
        """The node's disk is another provider's, which is in its aggregate."""
        pool = self.provider("nfs", DISK_GB=total)
        aggregate = base.new_uuid()
        for uuid in (pool, self.node.uuid):
            self.api.set_aggregates(None, uuid, [aggregate])
        return pool


class NodeCycleTest(SyncTest):

    def test_a_new_node_is_created(self):
        done = self.sync()
        self.assertEqual((self.node.uuid, ["compute_node"], []), (
            done.provider_uuid, done.changed, done.disagreements))
        self.assertEqual(8, self.inventory(self.node.uuid)["VCPU"][0])

    def test_an_unchanged_cycle_writes_nothing(self):
        self.sync()
        consumer = self.held_by({"VCPU": 1, "MEMORY_MB": 512})
        self.events()
        before = self.written()
        for _ in range(3):
            done = self.sync({consumer: {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 0}}, heal=True)
            self.assertEqual(([], []), (done.changed, done.disagreements))
        self.assertEqual(before, self.written())
        self.assertEqual([], self.events())

    def test_it_tells_what_was_changed(self):
        self.sync()
        self.node.memory_mb, self.node.running_vms = 32768, 4
        self.assertEqual(["running_vms", "MEMORY_MB"], self.sync().changed)
        self.assertEqual(32768, self.inventory(self.node.uuid)["MEMORY_MB"][0])

    def test_a_node_of_old_without_a_uuid(self):
        self.node = node()
        first = self.sync()
        self.assertEqual(first.provider_uuid, self.sync().provider_uuid)
        self.assertEqual(first.provider_uuid, self.row("cmp1.example.org").uuid)

    def test_a_node_that_waits_in_its_columns_is_migrated(self):
        self.bring_in(self.node.obj_to_primitive())
        self.assertIn("inventory_migrated_at", self.sync().changed)
        self.assertEqual([], self.sync().changed)

    def test_while_the_gate_is_closed_both_places_are_written(self):
        with self.old_service(rpc_version="1.2"):
            self.sync()
            self.node.vcpus = 6
            self.assertEqual(["vcpus", "VCPU"], self.sync().changed)
            self.assertEqual([], self.sync().changed)
            self.assertEqual(6, self.row("cmp1.example.org").vcpus)
        self.assertEqual(["inventory_migrated_at"], self.sync().changed)

    def test_devices_in_use_are_of_the_node_too(self):
        pools = ComputeNode.of_row({"pci_stats": [
            {"vendor_id": "8086", "product_id": "10ed", "count": 6, "dev_type": "type-VF"}]})
        self.node.pci_device_pools = pools.pci_device_pools
        self.sync(devices_in_use={"PCI_SRIOV_VF": 2})
        self.assertEqual(8, self.inventory(self.node.uuid)["SRIOV_NET_VF"][0])
        self.assertEqual([], self.sync().changed)
        self.assertEqual(["pci_in_use", "SRIOV_NET_VF"], self.sync(devices_in_use={}).changed)

    def test_claimed_devices_are_counted_if_the_tracker_does_not_report_them(self):
        self.node.pci_device_pools = ComputeNode.of_row({"pci_stats": [
            {"vendor_id": "8086", "product_id": "10ed", "count": 8, "dev_type": "type-VF"}],
        }).pci_device_pools
        self.sync()
        consumer = self.held_by({"SRIOV_NET_VF": 3})
        # The tracker has not seen it yet.
        self.assertEqual([], self.sync().changed)
        self.assertEqual(8, self.inventory(self.node.uuid)["SRIOV_NET_VF"][0])
        self.node.pci_device_pools.objects[0].count = 5
        for said in ({consumer: {"SRIOV_NET_VF": 3}}, {}):
            self.assertIn(self.sync(said).changed, (["pci_in_use", "pci_stats"], []))
            self.assertEqual(8, self.inventory(self.node.uuid)["SRIOV_NET_VF"][0])
        self.api.release_allocations(None, consumer)
        self.node.pci_device_pools.objects[0].count = 8
        self.sync()
        self.assertEqual(8, self.inventory(self.node.uuid)["SRIOV_NET_VF"][0])

    def test_devices_of_consumers_that_have_left_the_node_are_not_counted(self):
        """They are in the pools again, before nova has released them or after."""
        self.node.pci_device_pools = ComputeNode.of_row({"pci_stats": [
            {"vendor_id": "8086", "product_id": "10ed", "count": 4, "dev_type": "type-VF"}],
        }).pci_device_pools
        self.sync()
        for heal in (False, True):
            gone, stays = self.held_by({"SRIOV_NET_VF": 2}), self.held_by({"VCPU": 1})
            self.node.pci_device_pools.objects[0].count = 2
            self.sync({gone: {"SRIOV_NET_VF": 2}, stays: {"VCPU": 1}})
            self.assertEqual(4, self.inventory(self.node.uuid)["SRIOV_NET_VF"][0])
            self.node.pci_device_pools.objects[0].count = 4
            self.sync({stays: {"VCPU": 1}}, heal=heal)
            self.assertEqual(4, self.inventory(self.node.uuid)["SRIOV_NET_VF"][0])
            if not heal:
                self.api.release_allocations(None, gone)
            self.sync({stays: {"VCPU": 1}})
            self.assertEqual(4, self.inventory(self.node.uuid)["SRIOV_NET_VF"][0])
            self.api.release_allocations(None, stays)

    def test_claimed_devices_are_still_counted_when_the_gate_opens(self):
        self.node.pci_device_pools = ComputeNode.of_row({"pci_stats": [
            {"vendor_id": "8086", "product_id": "10ed", "count": 8, "dev_type": "type-VF"}],
        }).pci_device_pools
        with self.old_service(rpc_version="1.2"):
            self.sync()
            consumer = self.held_by({"SRIOV_NET_VF": 6, "VCPU": 1})
            self.node.pci_device_pools.objects[0].count = 2
            self.sync({consumer: {"VCPU": 1}})
            self.assertEqual(8, self.inventory(self.node.uuid)["SRIOV_NET_VF"][0])
        self.assertEqual((1, []), (lambda done: (done.done, done.refused))(self.migrate()))
        self.assertEqual(8, self.inventory(self.node.uuid)["SRIOV_NET_VF"][0])

    def test_shared_storage_that_the_caller_tells_of(self):
        self.sync(shares_disk=True)
        self.assertNotIn("DISK_GB", self.inventory(self.node.uuid))
        self.assertEqual([], self.sync().changed)
        self.assertEqual(["shares_disk", "DISK_GB"], self.sync(shares_disk=False).changed)

    def test_another_node_under_the_same_name(self):
        self.sync()
        self.node = node(uuid=base.new_uuid())
        self.assertRaises(exception.ComputeNodeExists, self.sync)

    def test_a_uuid_has_one_spelling_and_what_is_none_is_refused(self):
        canonical = self.node.uuid
        self.node = node(uuid=canonical.upper())
        self.assertEqual(canonical, self.sync().provider_uuid)
        self.assertEqual([], self.sync().changed)
        primitive = self.node.obj_to_primitive()
        for value in ("not-a-uuid", "x" * 60, 5, ""):
            primitive["nova_object.data"]["uuid"] = value
            self.node = copy.deepcopy(primitive)
            self.assertRaises(exception.InvalidInput, self.sync)
        self.assertEqual(1, len(self.api.list_providers(None).objects))

    def test_reported_amounts_are_checked(self):
        consumer = base.new_uuid()
        for resources in ({"VCPU": False}, {"VCPU": 0.0}, {"VCPU": -1}, {"no class!": 0},
                          {"VCPU": "1"}):
            self.assertRaises(exception.InvalidInput, self.sync, {consumer: resources})
        self.assertRaises(exception.InvalidInput, self.sync, {
            "abcdef01-2345-6789-abcd-ef0123456789": {"VCPU": 1},
            "ABCDEF01-2345-6789-ABCD-EF0123456789": {"VCPU": 3}})
        self.assertEqual([], self.api.list_providers(None).objects)
        self.sync({consumer: {"VCPU": 0}})

    def test_what_is_wrong_in_the_store_the_tracker_repairs(self):
        self.bring_in({**node().obj_to_primitive(), **self.node.obj_to_primitive()})
        with self.database.writer() as tx:
            tx.execute(sa.update(models.compute_nodes).values(
                vcpus=-4, memory_mb=None, numa_topology="{broken", pci_stats="[{"))
        self.node.numa_topology = None
        self.node.pci_device_pools = PciDevicePoolList(objects=[])
        self.assertIn("inventory_migrated_at", self.sync().changed)
        self.assertEqual(8, self.inventory(self.node.uuid)["VCPU"][0])

    def test_a_deleted_provider_is_created_again(self):
        self.sync()
        self.api.delete_provider(None, self.node.uuid)
        self.assertEqual(["provider"], self.sync().changed)
        self.assertEqual(8, self.inventory(self.node.uuid)["VCPU"][0])
        self.assertEqual([], self.sync().changed)

    def test_after_the_contraction_an_old_service_closes_no_gate(self):
        self.sync()
        migration.contract(self.database)
        with self.old_service(rpc_version="1.2"):
            self.assertEqual([], self.sync().changed)
            self.node = node("cmp2", uuid=base.new_uuid(), host="cmp2")
            self.assertEqual(["compute_node"], self.sync().changed)

    def test_bad_input_leaves_nothing_behind(self):
        before = self.written()
        good = {"project_id": "p", "user_id": "u", "resources": {"VCPU": 1}}
        for allocations in (None, 5, [], {"x": good}, {base.new_uuid(): 5},
                            {base.new_uuid(): {}}, {base.new_uuid(): {**good, "resources": 5}},
                            {base.new_uuid(): {**good, "resources": {"VCPU": -1}}},
                            {base.new_uuid(): {**good, "user_id": ""}},
                            {base.new_uuid(): {**good, "colour": "red"}}):
            self.assertRaises(exception.InvalidInput, self.api.sync_compute_node, None,
                              self.node, allocations, time.time())
        for at in (None, "now", time.time() + 3600, float("inf"), True):
            self.assertRaises(exception.InvalidInput, self.sync, at=at if at is not None else "")
        for how in ({"heal": 5}, {"shares_disk": "yes"}, {"devices_in_use": [1]},
                    {"devices_in_use": {"VCPU": 1}}, {"devices_in_use": {"PCI_GENERIC": -1}}):
            self.assertRaises(exception.InvalidInput, self.sync, **how)
        for bad in (node(vcpus=-1), node(numa_topology="{"), node(name="x" * 201),
                    node(memory_mb=2 ** 70), node(cpu_info="\x00"), node(cpu_info="\ud800"),
                    node(host="\x00"), node(host="\ud800"),
                    node(mapped=2 ** 40), node(cpu_allocation_ratio=float("nan")),
                    node(numa_topology='{"cells": [{"id": 0, "cpus": "0-99999999999", "mem": 5}]}')
                    ):
            self.node = bad
            self.assertIn(bad.label[:50], self.assertRaises(
                exception.InvalidInput, self.sync).text)
        self.node = "a node"
        self.assertRaises(exception.InvalidInput, self.sync)
        self.assertEqual(before[:-1], self.written()[:-1])
