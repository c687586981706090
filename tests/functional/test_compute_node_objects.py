# SPDX-License-Identifier: Apache-2.0
"""nova's ComputeNode on a compute host without a database: read and saved in every version."""

import time

from placement_rpc import exception
from placement_rpc.context import RequestContext
from placement_rpc.objects.codec import plain
from placement_rpc.objects.nova.compute_node import ComputeNode, ComputeNodeList
from tests import base, statements
from tests.compute_nodes import nodes, without_id
from tests.functional.node_case import NodeTest, node


class ContextTest(NodeTest):

    def test_none_is_needed(self):
        created = node()
        created._context = None
        created.create()
        read = ComputeNode.get_by_uuid(None, created.uuid)
        read.vcpus = 20
        read.save()
        self.assertEqual(20, ComputeNode.get_by_uuid(None, created.uuid).vcpus)
        read.destroy()
        self.assertEqual([], ComputeNodeList.get_all(None).objects)


class ReadingTest(NodeTest):

    def test_capacity_is_read_from_inventories(self):
        self.stored()
        uuid = self.row("cmp1.example.org").uuid
        self.assertIsNone(self.row("cmp1.example.org").vcpus)
        self.api.update_inventory(None, uuid, base.inventory(
            "VCPU", {"total": 10, "allocation_ratio": 2.0, "max_unit": 10}))
        read = ComputeNode.get_by_uuid(self.context, uuid)
        self.assertEqual((10, 2.0, 16384, 1.5, 200, 1.0), (
            read.vcpus, read.cpu_allocation_ratio, read.memory_mb, read.ram_allocation_ratio,
            read.local_gb, read.disk_allocation_ratio))

    def test_what_is_free_and_used_is_derived(self):
        new = self.stored()
        self.claim({new.uuid: {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 50}})
        read = ComputeNode.get_by_uuid(self.context, new.uuid)
        self.assertEqual((2, 4096 + 512, 16384 - 4096 - 512, 50, 150), (
            read.vcpus_used, read.memory_mb_used, read.free_ram_mb, read.local_gb_used,
            read.free_disk_gb))

    def test_one_query_over_inventories_for_a_list_too(self):
        self.bring_in(*nodes())
        self.migrate()
        with statements.recorded(self.service.manager.database) as sent:
            found = ComputeNodeList.get_all(self.context)
        self.assertEqual((120, 1), (
            len(found), len([each for each in sent if "inventories" in each])))
        sent = {each["nova_object.data"]["hypervisor_hostname"]: each["nova_object.data"]
                for each in nodes()}
        for each in found:
            self.assertEqual(
                tuple(sent[each.hypervisor_hostname][name] for name in (
                    "vcpus", "memory_mb", "local_gb", "hypervisor_version", "stats", "host")),
                (each.vcpus, each.memory_mb, each.local_gb, each.hypervisor_version, each.stats,
                 each.host))

    def test_the_ways_to_find_nodes(self):
        first = self.stored()
        second = self.stored(hypervisor_hostname="cmp2.example.org")
        third = self.stored(hypervisor_hostname="cmp3.example.org", host="cmp3")
        self.assertEqual(first.uuid, ComputeNode.get_by_id(self.context, first.id).uuid)
        for found, wanted in (
                (ComputeNodeList.get_all(self.context), [first, second, third]),
                (ComputeNodeList.get_all_by_host(self.context, "cmp1"), [first, second]),
                (ComputeNodeList.get_all_by_uuids(self.context, [third.uuid]), [third]),
                (ComputeNodeList.get_by_pagination(self.context, 1, first.id), [second]),
                (ComputeNodeList.get_by_hypervisor(self.context, "mp2.ex"), [second]),
                (ComputeNodeList.get_by_hypervisor(self.context, "%"), []),
                (ComputeNodeList.get_all_by_not_mapped(self.context, 1),
                 [first, second, third]),
                (ComputeNodeList.get_all_by_not_mapped(self.context, 0), []),
                ([ComputeNode.get_by_nodename(self.context, "cmp3.example.org")], [third]),
                ([ComputeNode.get_first_node_by_host_for_old_compat(self.context, "cmp1")],
                 [first])):
            self.assertEqual([each.uuid for each in wanted], [each.uuid for each in found])
        for wrong in (lambda: ComputeNode.get_by_uuid(self.context, base.new_uuid()),
                      lambda: ComputeNode.get_by_id(self.context, 9999),
                      lambda: ComputeNode.get_by_host_and_nodename(self.context, "a", "b")):
            self.assertRaises(exception.ComputeNodeNotFound, wrong)
        for wrong in (lambda: ComputeNode.get_by_uuid(self.context, "x"),
                      lambda: ComputeNode.get_by_id(self.context, "x"),
                      lambda: ComputeNode.get_by_host_and_nodename(self.context, 5, "b")):
            self.assertRaises(exception.InvalidInput, wrong)


class SavingTest(NodeTest):

    def test_names_that_no_column_can_have_are_refused(self):
        for text in ("\x00", "\ud800", "x" * 300):
            unknown = node(host=text)
            unknown._context = self.context
            for change in (unknown.save, unknown.destroy):
                self.assertIn("host", self.assertRaises(exception.InvalidInput, change).text)

    def test_only_what_changed_is_written(self):
        new = self.stored()
        self.events()
        generation = self.generation(new.uuid)
        new.cpu_allocation_ratio = 8.0
        new.save()
        self.assertEqual(["inventory.update"], self.types())
        self.assertEqual((8, 0, 8, 8.0), self.inventory(new.uuid)["VCPU"])
        self.assertEqual(generation + 1, self.generation(new.uuid))

    def test_where_nothing_changed_nothing_is_written(self):
        new = self.stored()
        self.events()
        before = self.generation(new.uuid), self.row("cmp1.example.org")
        new.vcpus, new.memory_mb, new.vcpus_used, new.free_ram_mb = 8, 16384, 3, 5
        new.ram_allocation_ratio, new.stats = None, {"io": "0"}
        new.save()
        self.assertEqual(before, (self.generation(new.uuid), self.row("cmp1.example.org")))
        self.assertEqual([], self.types())
        self.assertEqual(0, new.vcpus_used)

    def test_what_is_no_capacity_stays_in_its_columns(self):
        new = self.stored()
        self.events()
        new.running_vms, new.stats = 3, {"io": "7"}
        new.save()
        self.assertEqual([], self.types())
        read = ComputeNode.get_by_uuid(self.context, new.uuid)
        self.assertEqual((3, {"io": "7"}), (read.running_vms, read.stats))

    def test_the_most_that_one_server_may_have_follows(self):
        self.service.conf.set_override(
            "disk_available_least_is_max_unit", True, group="compute_nodes")
        new = self.stored(disk_available_least=120)
        self.assertEqual(120, self.inventory(new.uuid)["DISK_GB"][2])
        new.disk_available_least = 60
        new.save()
        self.assertEqual(60, self.inventory(new.uuid)["DISK_GB"][2])

    def test_nothing_less_than_what_is_used(self):
        new = self.stored()
        self.claim({new.uuid: {"VCPU": 8}})
        new.vcpus, new.cpu_allocation_ratio = 1, 1.0
        self.assertRaises(exception.CapacityConflict, new.save)
        self.assertEqual(8, self.inventory(new.uuid)["VCPU"][0])

    def test_inventories_that_were_not_spoken_of_stay_as_an_operator_set_them(self):
        new = self.stored()
        self.api.update_inventory(None, new.uuid, base.inventory("VCPU", {
            "total": 8, "reserved": 2, "max_unit": 4, "step_size": 2, "allocation_ratio": 4.0}))
        self.events()
        new.running_vms = 3
        new.save()
        self.assertEqual((8, 2, 4, 4.0), self.inventory(new.uuid)["VCPU"])
        self.assertEqual([], self.types())

    def test_a_number_of_novas_own_is_no_other_node(self):
        first = self.stored()
        second = self.stored(hypervisor_hostname="cmp2", host="cmp2")
        stranger = ComputeNode(self.context, id=second.id, host=first.host,
                               hypervisor_hostname=first.hypervisor_hostname)
        stranger.obj_reset_changes()
        stranger.vcpus = 16
        stranger.save()
        self.assertEqual([16, 8], [self.inventory(each.uuid)["VCPU"][0]
                                   for each in (first, second)])
        gone = ComputeNode(self.context, id=first.id, uuid=base.new_uuid())
        self.assertRaises(exception.ComputeNodeNotFound, gone.destroy)

    def test_the_host_and_name_of_another_node(self):
        self.stored()
        second = self.stored(hypervisor_hostname="cmp2")
        second.hypervisor_hostname = "cmp1.example.org"
        self.assertRaises(exception.ComputeNodeExists, second.save)

    def test_another_name(self):
        new = self.stored()
        new.hypervisor_hostname = "renamed.example.org"
        new.save()
        self.assertEqual("renamed.example.org", self.api.get_provider(None, new.uuid).name)

    def test_the_same_node_twice(self):
        self.stored()
        for again in (node(context=self.context), node(
                "other", context=self.context, uuid=self.row("cmp1.example.org").uuid)):
            error = self.assertRaises(exception.ComputeNodeExists, again.create)
            self.assertIn(again.hypervisor_hostname, error.text)

    def test_destroying_takes_the_provider_along(self):
        new = self.stored()
        consumer, _ = self.claim({new.uuid: {"VCPU": 1}})
        self.assertRaises(exception.ProviderInUse, new.destroy)
        self.assertEqual(new.uuid, self.row("cmp1.example.org").uuid)
        self.api.release_allocations(None, consumer)
        new.destroy()
        self.assertRaises(exception.ProviderNotFound, self.api.get_provider, None, new.uuid)
        self.assertRaises(exception.ComputeNodeNotFound, new.save)

    def test_a_save_that_is_delivered_twice_is_done_once(self):
        new = self.stored()
        self.events()
        new.vcpus = 9
        request_id = "req-save-once"
        first = plain(self.api.object_action(
            None, new, "save", (), {}, request_id=request_id))
        self.api.update_inventory(None, new.uuid, base.inventory("VCPU", 33))
        self.assertEqual(first, plain(self.api.object_action(
            None, new, "save", (), {}, request_id=request_id)))
        self.assertEqual(33, self.inventory(new.uuid)["VCPU"][0])


class OldCallerTest(NodeTest):

    def test_a_compute_host_of_each_release_is_answered_at_its_version(self):
        for sent in nodes()[::7]:
            version, data = sent["nova_object.version"], sent["nova_object.data"]
            created = ComputeNode.read(without_id(sent), self.context)
            created.create()
            answer = self.api.sender.call(
                self.own_context(), "object_class_action_versions", {
                    "objname": "ComputeNode", "objmethod": "get_by_host_and_nodename",
                    "object_versions": {"ComputeNode": version, "PciDevicePoolList": "1.1",
                                        "PciDevicePool": "1.1", "HVSpec": "1.2"},
                    "args": [data["host"], data["hypervisor_hostname"]], "kwargs": {}}, 20)
            sent_fields = set(data) - {"id"}
            self.assertEqual(set(), {"uuid", "cpu_allocation_ratio", "mapped"} & {
                name for name in answer.fields if answer.obj_attr_is_set(name)} - sent_fields)

    def own_context(self):
        return RequestContext(deadline=time.time() + 20)

    def test_what_is_not_remotable_is_refused(self):
        new = node(uuid=base.new_uuid())
        for method in ("_refresh", "obj_clone", "of_row", "no_such", "get_by_uuid", None):
            self.assertRaises(
                exception.UnsupportedCall, self.api.object_action, None, new, method, (), {})
        for name, method in (("ComputeNode", "read"), ("ComputeNode", "save"),
                             ("Inventory", "get"), ("Nothing", "get_all"), (5, "get_all")):
            self.assertRaises(
                exception.UnsupportedCall, self.api.object_class_action_versions, None, name,
                method, {"ComputeNode": "1.19"}, (), {})
        self.assertRaises(
            exception.UnsupportedCall, self.api.object_class_action_versions, None,
            "ComputeNode", "get_by_uuid", {}, ("a", "b", "c"), {})

    def test_a_newer_object_than_the_caller_knows_is_backported(self):
        new = node(uuid=base.new_uuid(), mapped=1)
        old = self.api.object_backport_versions(
            None, new.obj_to_primitive(), {"ComputeNode": "1.14"})
        self.assertIsInstance(old, ComputeNode)
        self.assertFalse(old.obj_attr_is_set("mapped") or old.obj_attr_is_set("uuid"))

    def test_an_object_from_the_future_is_refused(self):
        primitive = {**node().obj_to_primitive(), "nova_object.version": "1.20"}
        self.assertRaises(
            exception.IncompatibleObjectVersion, self.api.sync_compute_node, None,
            primitive, {}, time.time())
