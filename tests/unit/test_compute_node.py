# SPDX-License-Identifier: Apache-2.0
"""Compute nodes as nova serialized them in every version, and their inventories."""

import copy
import json
import types

from placement_rpc import conf as configuration
from placement_rpc import exception
from placement_rpc.nova.inventory import devices_by_class, inventories_of
from placement_rpc.objects.nova import numa
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.objects.nova.numa import NUMATopology
from placement_rpc.objects.nova.pci_device_pool import PciDevicePoolList
from tests import base
from tests.compute_nodes import independently, nodes


def _sorted_changes(value):
    """What was changed is a set, and written down in any order."""
    if isinstance(value, dict):
        return {key: sorted(item) if key == "nova_object.changes" else _sorted_changes(item)
                for key, item in value.items()}
    return [_sorted_changes(item) for item in value] if isinstance(value, list) else value


class ComputeNodeTest(base.TestCase):

    def test_every_node_is_answered_as_it_was_sent(self):
        for sent in nodes():
            version = sent["nova_object.version"]
            answer = json.loads(json.dumps(
                ComputeNode.read(sent).obj_to_primitive(target_version=version)))
            self.assertEqual(_sorted_changes(sent), _sorted_changes(answer))

    def test_an_older_receiver_is_sent_no_newer_field(self):
        newest = next(each for each in nodes() if each["nova_object.version"] == "1.19")
        node = ComputeNode.read(newest)
        for version, absent in (
                ("1.16", {"mapped"}), ("1.15", {"mapped", "disk_allocation_ratio"}),
                ("1.9", {"mapped", "disk_allocation_ratio", "uuid", "cpu_allocation_ratio",
                         "ram_allocation_ratio"})):
            data = node.obj_to_primitive(target_version=version)["nova_object.data"]
            self.assertEqual(absent, set(newest["nova_object.data"]) - set(data))

    def test_a_version_from_the_future_is_refused(self):
        for version in ("1.20", "2.0"):
            sent = {**nodes()[0], "nova_object.version": version}
            error = self.assertRaises(
                exception.IncompatibleObjectVersion, ComputeNode.read, sent)
            self.assertIn(version, error.text)

    def test_what_is_no_node_is_refused(self):
        good = nodes()[0]
        bad = [{}, {**good, "nova_object.name": "Instance"},
               {**good, "nova_object.data": None}, {**good, "nova_object.data": [1]},
               {**good, "nova_object.data": {**good["nova_object.data"], "vcpus": "many"}},
               {**good, "nova_object.namespace": "other"},
               good["nova_object.data"]["pci_device_pools"]]
        for sent in bad:
            self.assertRaises(exception.InvalidInput, ComputeNode.read, sent)


class LegacyFormTest(base.TestCase):

    def test_a_row_of_the_database(self):
        sent = nodes()[5]["nova_object.data"]
        row = {**{name: value for name, value in sent.items()
                  if name not in ("stats", "supported_hv_specs", "pci_device_pools")},
               "deleted": 0, "created_at": "2016-01-01",
               "stats": json.dumps(sent["stats"]),
               "supported_instances": '[["x86_64", "kvm", "hvm"]]',
               "pci_stats": json.dumps(sent["pci_device_pools"])}
        node = ComputeNode.of_row(row)
        self.assertEqual(sent["vcpus"], node.vcpus)
        self.assertEqual("kvm", node.supported_hv_specs[0].hv_type)
        self.assertEqual(len(sent["pci_device_pools"]["nova_object.data"]["objects"]),
                         len(node.pci_device_pools.objects))

    def test_pools_as_a_list_of_dicts(self):
        pools = PciDevicePoolList.of_stats([
            {"vendor_id": "8086", "product_id": "10ed", "count": 8, "dev_type": "type-VF",
             "physical_network": "physnet1"},
            {"vendor_id": "10de", "product_id": "20f1", "count": 2, "numa_node": 1}])
        self.assertEqual({"dev_type": "type-VF", "physical_network": "physnet1"},
                         pools.objects[0].tags)
        self.assertEqual([None, 1], [pool.numa_node for pool in pools.objects])

    def test_cells_as_dicts(self):
        topology = NUMATopology.of_text(json.dumps({"cells": [
            {"id": 0, "cpus": "0-3,8", "mem": {"total": 4096, "used": 512}, "cpu_usage": 2},
            {"id": 1, "cpus": [4, 5], "mem": 2048, "siblings": [[4, 5]]}]}))
        self.assertEqual([{0, 1, 2, 3, 8}, {4, 5}], [cell.threads for cell in topology.cells])
        self.assertEqual([5, 1], [cell.cores for cell in topology.cells])
        self.assertEqual([4096, 2048], [cell.memory for cell in topology.cells])

    def test_a_short_text_names_no_more_threads_than_a_machine_has(self):
        for cells in (
                [{"id": 0, "cpus": "0-65535,0-65535", "mem": 1}],
                [{"id": 0, "cpus": "0-32767,32768-65535,65536", "mem": 1}],
                [{"id": number, "cpus": "0-40000", "mem": 1} for number in range(2)]):
            error = self.assertRaises(
                exception.InvalidInput, numa.amounts, json.dumps({"cells": cells}))
            self.assertIn("more than 65536 threads", error.text)
        whole, = numa.amounts(json.dumps({"cells": [{"id": 0, "cpus": "0-65535", "mem": 1}]}))
        self.assertEqual(65536, whole.threads)

    def test_none_at_all(self):
        self.assertIsNone(NUMATopology.of_text(None))
        self.assertIsNone(NUMATopology.of_text("null"))
        self.assertIsNone(NUMATopology.of_text("{}"))
        self.assertEqual([], numa.amounts("{}"))
        self.assertEqual([], PciDevicePoolList.of_stats(None).objects)

    def test_broken_columns_name_the_node(self):
        row = {"id": 7, "host": "cmp7", "hypervisor_hostname": "cmp7.example.org", "vcpus": 4,
               "memory_mb": 1024, "local_gb": 10}
        for column, value in (
                ("pci_stats", "{broken"), ("pci_stats", "5"), ("pci_stats", 0),
                ("pci_stats", {}), ("pci_stats", False), ("stats", 0), ("stats", "[]"),
                ("supported_instances", 0), ("supported_instances", False), ("pci_stats", '["x"]'),
                ("pci_stats", '[{"count": "many"}]'), ("supported_instances", '["x"]'),
                ("stats", "["), ("vcpus", "four")):
            error = self.assertRaises(
                exception.InvalidInput, ComputeNode.of_row, {**row, column: value})
            self.assertIn("cmp7.example.org", error.text)
        options = configuration.new_config(config_files=[]).compute_nodes
        for text in ("", "0", "false", "[]", '""', "{broken", '{"cells": 5}', '{"cells": [{}]}',
                     "[1]", '{"cells": [{"id": 0, "cpus": "a-b", "mem": 5}]}', "[" * 100_000):
            node = ComputeNode.of_row({**row, "numa_topology": text})
            error = self.assertRaises(exception.InvalidInput, inventories_of, node, options)
            self.assertIn("cmp7.example.org", error.text)
        for column, value in (("vcpus", -1), ("memory_mb", -5), ("local_gb", None)):
            node = ComputeNode.of_row({**row, column: value})
            error = self.assertRaises(exception.InvalidInput, inventories_of, node, options)
            self.assertIn(column, error.text)


class InventoryTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.conf = configuration.new_config(config_files=[])

    def of(self, node, **how):
        return {name: types.SimpleNamespace(**values) for name, values in inventories_of(
            node, self.conf.compute_nodes, **how).items()}

    def test_all_nodes_have_the_values_of_the_specification(self):
        for sent in nodes():
            found = self.of(ComputeNode.read(sent))
            self.assertEqual(independently(sent), {
                name: (each.total, each.reserved, each.max_unit, each.allocation_ratio)
                for name, each in found.items()})
            for each in found.values():
                self.assertEqual((1, 1), (each.min_unit, each.step_size))

    def node(self, **values):
        return ComputeNode.of_row({
            "id": 1, "hypervisor_hostname": "cmp1", "vcpus": 8, "memory_mb": 4096,
            "local_gb": 100, **values})

    def test_the_example_of_the_specification(self):
        """255 virtual functions, of which a server may have eight."""
        self.conf.set_override("pci_max_units", {"PCI_SRIOV_VF": "8"}, group="compute_nodes")
        found = self.of(self.node(pci_stats=json.dumps([
            {"vendor_id": "8086", "product_id": "10ed", "count": 255, "dev_type": "type-VF"}])))
        virtual = found["SRIOV_NET_VF"]
        self.assertEqual((255, 1, 8, 1.0), (
            virtual.total, virtual.min_unit, virtual.max_unit, virtual.allocation_ratio))

    def test_devices_in_use_are_counted_and_an_adapter_is_not_counted_twice(self):
        pool = {"vendor_id": "8086", "product_id": "10ed", "numa_node": 0,
                "physical_network": "physnet1"}
        found = self.of(self.node(pci_stats=json.dumps([
            {**pool, "count": 60, "dev_type": "type-VF"},
            {**pool, "count": 1, "dev_type": "type-PF"},
            {**pool, "count": 1, "dev_type": "type-PF", "physical_network": "physnet2"}])),
            devices_in_use={"PCI_SRIOV_VF": 4, "PCI_GENERIC": 2})
        self.assertEqual({"SRIOV_NET_VF": 64, "CUSTOM_PCI_SRIOV_PF": 1, "PCI_DEVICE": 2}, {
            name: found[name].total for name in found if "PCI" in name or "VF" in name})

    def test_devices_of_a_kind_without_a_class_have_no_inventory(self):
        pool = {"vendor_id": "15b3", "product_id": "101e", "count": 4}
        found = self.of(self.node(pci_stats=json.dumps([
            {**pool, "dev_type": "vdpa"}, {**pool, "dev_type": "type-PF"}])),
            devices_in_use=devices_by_class({"vdpa": 2, "type-PF": 1}))
        self.assertEqual({"CUSTOM_PCI_SRIOV_PF": 5}, {
            name: found[name].total for name in found if "PCI" in name or "VF" in name})

    def test_shared_storage_and_nothing_at_all_make_no_row(self):
        self.assertNotIn("DISK_GB", self.of(self.node(), shares_disk=True))
        self.assertEqual({"VCPU", "MEMORY_MB"}, set(self.of(self.node(local_gb=0))))

    def test_reserved_amounts(self):
        for name, value in (("reserved_cpus", 2), ("reserved_memory_mb", 9999),
                            ("reserved_disk_mb", 1025)):
            self.conf.set_override(name, value, group="compute_nodes")
        found = self.of(self.node())
        self.assertEqual({"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 2}, {
            name: each.reserved for name, each in found.items()})

    def test_what_is_really_free_bounds_the_disk_of_one_server(self):
        for least, most in ((30, 100), (None, 100)):
            self.assertEqual(most, self.of(self.node(
                disk_available_least=least))["DISK_GB"].max_unit)
        self.conf.set_override(
            "disk_available_least_is_max_unit", True, group="compute_nodes")
        for least, most in ((30, 30), (500, 100), (-7, 1), (0, 1), (None, 100)):
            self.assertEqual(most, self.of(self.node(
                disk_available_least=least))["DISK_GB"].max_unit)

    def test_a_kind_of_device_that_is_not_known(self):
        node = self.node(pci_stats=json.dumps([
            {"vendor_id": "1", "product_id": "2", "count": 1, "dev_type": "type-X"}]))
        error = self.assertRaises(
            exception.InvalidInput, inventories_of, node, self.conf.compute_nodes)
        self.assertIn("cmp1", error.text)

    def test_a_node_is_left_as_it_was(self):
        node = ComputeNode.read(nodes()[9])
        before = copy.deepcopy(node.obj_to_primitive())
        self.of(node)
        self.assertEqual(before, node.obj_to_primitive())
