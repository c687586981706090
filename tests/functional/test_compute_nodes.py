# SPDX-License-Identifier: Apache-2.0
"""Compute nodes: in their columns, on their way into inventories, and there."""

import contextlib
import copy
import datetime
import json
import threading
import time

import sqlalchemy as sa

import placement_rpc
from placement_rpc import exception
from placement_rpc.context import RequestContext
from placement_rpc.db import models
from placement_rpc.db.queries import bulk, services
from placement_rpc.objects import node_import, node_migration
from placement_rpc.objects.compute_node import ComputeNode, ComputeNodeList
from placement_rpc.objects.journal import Journal
from placement_rpc.objects.nova.base import NovaObject
from placement_rpc.objects.plain import plain
from placement_rpc.upgrade import gate, online
from tests import base
from tests.compute_nodes import independently, nodes

_CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")


class NodeTest(base.ContractTest):
    """A test with nodes, which it deals with as a compute host does: through the bus."""

    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, NovaObject, "indirection_api", None)
        NovaObject.indirection_api = self.api
        self.context = RequestContext()
        self.database = self.service.database

    def bring_in(self, *lines):
        done = node_import.bring_in(self.database, [
            (f"line {number}", line) for number, line in enumerate(lines)], set())
        self.assertEqual([], done.refused)

    def migrate(self, limit=None):
        settings = gate.InventoryGate(self.service.conf, self.database).settings
        return online.compute_node_inventories(self.database, settings, limit)

    def rows(self, query):
        with self.database.reader() as tx:
            return tx.execute(query).all()

    def row(self, name):
        found, = self.rows(sa.select(models.compute_nodes).where(
            models.compute_nodes.c.hypervisor_hostname == name))
        return found

    def events(self):
        """The events since the last look, as (type, data)."""
        found = self.rows(sa.select(models.events).where(
            models.events.c.id > getattr(self, "seen", 0)).order_by(models.events.c.id))
        self.seen = found[-1].id if found else getattr(self, "seen", 0)
        return [(row.event_type, json.loads(row.payload)["placement_object.data"])
                for row in found]

    def types(self):
        return [event_type for event_type, _ in self.events()]

    def inventory(self, uuid):
        return {each.resource_class: (each.total, each.reserved, each.max_unit,
                                      each.allocation_ratio)
                for each in self.api.get_inventory(None, uuid).objects}

    def stored(self, **values):
        """A node, created from a compute host."""
        new = node(uuid=base.new_uuid(), **values)
        new._context = self.context
        new.create()
        return new

    @contextlib.contextmanager
    def old_service(self, version="0.1.0", rpc_version="1.0"):
        """A conductor of the release before is alive."""
        identity = {"binary": "placement-rpc-conductor", "host": "old.example.org", "worker": 3}
        self.database.write(lambda tx: services.beat(
            tx, identity, {"version": version, "rpc_version": rpc_version}, True))
        yield
        self.database.write(lambda tx: services.remove(tx, identity))


def node(name="cmp1.example.org", **values):
    """A node, small enough to look at."""
    return ComputeNode(**{
        "host": "cmp1", "hypervisor_hostname": name, "hypervisor_type": "QEMU",
        "hypervisor_version": 6002000, "vcpus": 8, "memory_mb": 16384, "local_gb": 200,
        "vcpus_used": 0, "memory_mb_used": 512, "local_gb_used": 0, "cpu_allocation_ratio": 4.0,
        "ram_allocation_ratio": 0.0, "disk_allocation_ratio": None, "stats": {"io": "0"},
        **values})


class MigrationTest(NodeTest):

    def test_all_nodes_have_the_values_of_the_specification(self):
        sent = nodes()
        self.bring_in(*sent)
        done = self.migrate()
        self.assertEqual((120, 120, []), (done.found, done.done, done.refused))
        for each in sent:
            name = each["nova_object.data"]["hypervisor_hostname"]
            row = self.row(name)
            self.assertEqual(each["nova_object.data"].get("uuid", row.uuid), row.uuid)
            provider, = self.api.list_providers(None, name=name).objects
            self.assertEqual((row.uuid, 1), (provider.uuid, provider.generation))
            self.assertEqual(independently(each), self.inventory(row.uuid))
        self.assertEqual((0, 0), (self.migrate().found, self.migrate().done))

    def test_its_events(self):
        self.bring_in(node().obj_to_primitive())
        self.assertEqual([], self.events())
        self.migrate()
        created, inventories, migrated = self.events()
        row = self.row("cmp1.example.org")
        self.assertEqual(
            ["resource_provider.create", "inventory.create", "compute_node.inventory_migrated"],
            [created[0], inventories[0], migrated[0]])
        self.assertEqual({row.uuid}, {data["provider_uuid"] for _, data in (
            created, inventories, migrated)})
        self.assertEqual((row.id, "cmp1", 1), tuple(migrated[1][name] for name in (
            "compute_node_id", "host", "generation")))

    def test_reading_one_migrates_it(self):
        self.bring_in(nodes()[0])
        name = nodes()[0]["nova_object.data"]["hypervisor_hostname"]
        host = nodes()[0]["nova_object.data"]["host"]
        found = ComputeNode.get_by_host_and_nodename(self.context, host, name)
        self.assertIsNotNone(self.row(name).inventory_migrated_at)
        self.assertEqual(self.row(name).uuid, found.uuid)
        self.assertEqual(set(independently(nodes()[0])), set(self.inventory(found.uuid)))

    def test_two_workers_at_once_make_the_same_rows(self):
        self.bring_in(*nodes())
        done, threads = [], [threading.Thread(target=lambda: done.append(self.migrate()))
                             for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(120, sum(each.done for each in done))
        self.assertEqual([[], []], [each.refused for each in done])
        self.assertEqual(120, len(self.api.list_providers(None).objects))
        self.assertEqual(120, self.types().count("compute_node.inventory_migrated"))
        for sent in nodes():
            self.assertEqual(independently(sent), self.inventory(
                self.row(sent["nova_object.data"]["hypervisor_hostname"]).uuid))

    def test_two_readers_make_one_uuid(self):
        sent = next(each for each in nodes() if "uuid" not in each["nova_object.data"])
        data = sent["nova_object.data"]
        self.bring_in(sent)
        found, barrier = [], threading.Barrier(4)

        def read():
            barrier.wait()
            found.append(ComputeNode.get_by_host_and_nodename(
                self.context, data["host"], data["hypervisor_hostname"]).uuid)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(4, len(found))
        self.assertEqual({self.row(data["hypervisor_hostname"]).uuid}, set(found))

    def test_what_can_not_be_migrated_is_told_of_and_the_others_go_on(self):
        good = node("good.example.org", host="good").obj_to_primitive()
        bad = {"host": "bad", "vcpus": 1, "memory_mb": 1, "local_gb": 1}
        self.api.create_provider(None, "taken.example.org")
        self.bring_in(
            {**bad, "hypervisor_hostname": "negative.example.org", "vcpus": -4},
            {**bad, "hypervisor_hostname": "absent.example.org", "memory_mb": None},
            {**bad, "hypervisor_hostname": "numa.example.org", "numa_topology": "{broken"},
            {**bad, "hypervisor_hostname": "taken.example.org"},
            {**bad, "hypervisor_hostname": "twice.example.org", "host": "one"},
            {**bad, "hypervisor_hostname": "twice.example.org", "host": "two"},
            {**bad, "hypervisor_hostname": None}, good)
        with self.database.writer() as tx:
            tx.execute(sa.insert(models.compute_nodes), {
                "host": "pools", "hypervisor_hostname": "pools.example.org", "vcpus": 1,
                "memory_mb": 1, "local_gb": 1, "pci_stats": "[{", "created_at": bulk.now(),
                "updated_at": bulk.now()})
        done = self.migrate()
        self.assertEqual((9, 2), (done.found, done.done))
        refused = {label: str(error) for label, error in done.refused}
        self.assertEqual(7, len(done.refused))
        for name, reason in (
                ("negative", "-4 is negative"), ("absent", "memory_mb"), ("numa", "numa_topology"),
                ("taken", "taken.example.org"), ("twice", "twice.example.org"),
                ("pools", "pools.example.org")):
            self.assertIn(reason, refused[f"compute node {name}.example.org"])
        self.assertEqual(2, len(self.rows(sa.select(models.compute_nodes.c.id).where(
            models.compute_nodes.c.inventory_migrated_at.is_not(None)))))
        self.assertEqual(3, len(self.api.list_providers(None).objects))
        listed = {each.hypervisor_hostname for each in ComputeNodeList.get_all(self.context)}
        self.assertIn("negative.example.org", listed)
        self.assertNotIn("pools.example.org", listed)
        error = self.assertRaises(
            exception.InvalidInput, ComputeNode.get_by_host_and_nodename, self.context, "pools",
            "pools.example.org")
        self.assertIn("pools.example.org", error.text)

    def test_rows_that_are_broken_in_every_way(self):
        nova = "nova_object"

        def wrapped(name, data, version="1.2"):
            return {f"{nova}.name": name, f"{nova}.namespace": "nova",
                    f"{nova}.version": version, f"{nova}.data": data}

        pool = wrapped("PciDevicePool", {"vendor_id": "1", "product_id": "2"}, "1.1")
        broken = [
            {"numa_topology": json.dumps(wrapped("NUMATopology", {}))},
            {"numa_topology": json.dumps(wrapped("NUMATopology", {"cells": [
                wrapped("NUMACell", {"id": 0, "cpuset": [1]}, "1.5")]}))},
            {"numa_topology": json.dumps(wrapped("NUMATopology", {"cells": 5}))},
            {"numa_topology": json.dumps(wrapped("NUMATopology", {"cells": []}, "1.9"))},
            {"numa_topology": '{"cells": [{"id": 0, "cpus": "0", "mem": 1e999}]}'},
            {"numa_topology": '{"cells": [{"id": 0, "cpus": "0-9999999999", "mem": 1}]}'},
            {"pci_stats": json.dumps(wrapped("PciDevicePoolList", {"objects": [pool]}, "1.1"))},
            {"pci_stats": '[{"vendor_id": "1", "product_id": "2"}]'},
            {"pci_stats": '[{"vendor_id": "1", "product_id": "2", "count": Infinity}]'},
            {"pci_stats": "[" * 5000}, {"pci_in_use": '{"SRIOV_NET_VF": "x"}'},
            {"pci_in_use": "[1]"}, {"pci_in_use": "{"}, {"stats": "[1]"},
            {"supported_instances": '["x"]'}]
        with self.database.writer() as tx:
            for number, values in enumerate(broken):
                tx.execute(sa.insert(models.compute_nodes), {
                    "host": f"broken{number}", "hypervisor_hostname": f"broken{number}",
                    "vcpus": 1, "memory_mb": 1, "local_gb": 1, "created_at": bulk.now(),
                    "updated_at": bulk.now(), **values})
        self.bring_in(node().obj_to_primitive())
        done = self.migrate()
        self.assertEqual((len(broken) + 1, 1, len(broken)),
                         (done.found, done.done, len(done.refused)))
        for label, error in done.refused:
            self.assertIn(label.removeprefix("compute node "), str(error))
        self.assertIn("cmp1.example.org", {
            each.hypervisor_hostname for each in ComputeNodeList.get_all(self.context)})

    def test_two_rows_of_one_uuid(self):
        uuid = base.new_uuid()
        self.bring_in(node(uuid=uuid).obj_to_primitive(),
                      node("cmp2", host="cmp2").obj_to_primitive())
        with self.database.writer() as tx:
            tx.execute(sa.update(models.compute_nodes).values(uuid=uuid))
        self.assertEqual((1, 1), (lambda done: (done.done, len(done.refused)))(self.migrate()))

    def test_rows_that_can_not_be_migrated_are_not_in_the_way_of_others(self):
        self.bring_in(*({"host": f"bad{number}", "hypervisor_hostname": f"bad{number}",
                         "vcpus": -1, "memory_mb": 1, "local_gb": 1} for number in range(3)),
                      node().obj_to_primitive())
        self.assertEqual(1, self.migrate(2).done)

    def test_a_provider_that_has_the_uuid_already_is_the_nodes(self):
        uuid = self.api.create_provider(None, "cmp1.example.org").uuid
        self.api.set_inventory(None, uuid, [
            base.inventory("VCPU", 1), base.inventory("IPV4_ADDRESS", 9)])
        self.bring_in(node(uuid=uuid).obj_to_primitive())
        self.assertEqual(1, self.migrate().done)
        found = self.inventory(uuid)
        self.assertEqual((8, 9), (found["VCPU"][0], found["IPV4_ADDRESS"][0]))

    def test_batches(self):
        self.bring_in(*nodes())
        counts = [(each.found, each.done) for each in (
            self.migrate(70), self.migrate(70), self.migrate(70))]
        self.assertEqual([(70, 70), (50, 50), (0, 0)], counts)


class _Crash(Exception):
    """The process is gone."""


class _Dying:
    """A connection whose process dies with the n-th statement that writes."""

    def __init__(self, tx, number):
        self._tx = tx
        self.left = number

    def __getattr__(self, name):
        return getattr(self._tx, name)

    def execute(self, statement, *parameters):
        result = self._tx.execute(statement, *parameters)
        if not getattr(statement, "is_select", False):
            self.left -= 1
            if not self.left:
                raise _Crash
        return result


class CrashTest(NodeTest):
    """Whatever statement is the last, nothing is half done."""

    def test_after_each_statement(self):
        self.bring_in(nodes()[0], node().obj_to_primitive())
        before, number = self.everything(), 1
        while self.crash_after(number):
            self.assertEqual(before, self.everything())
            number += 1
        self.assertGreater(number, 5)
        self.assertEqual(2, len(self.api.list_providers(None).objects))

    def everything(self):
        with self.database.reader() as tx:
            return {table.name: tx.execute(sa.select(table)).all()
                    for table in models.metadata.sorted_tables
                    if table.name not in ("services", "leases", "relay_state")}

    def crash_after(self, number):
        """Migrate, and crash with the n-th statement that writes; whether it came so far."""
        options = self.service.conf.compute_nodes

        def change(tx):
            dying, journal = _Dying(tx, number), Journal()
            done, refused = node_migration.migrate(
                dying, journal, [1, 2], options, ComputeNode.of_columns)
            journal.write(dying)
            self.assertEqual((2, {}), (done, refused))

        try:
            self.database.write(change)
        except _Crash:
            return True
        return False


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

    def test_a_positive_answer_is_kept_and_a_negative_one_is_not(self):
        opened = gate.InventoryGate(self.service.conf, self.database)
        with self.old_service():
            self.assertFalse(opened.is_open())
            self.assertEqual(["placement-rpc-conductor 3 on old.example.org (version 0.1.0)"],
                             [gate.name(row) for row in opened.holders()])
        self.assertTrue(opened.is_open())
        with self.old_service():
            self.assertTrue(opened.is_open())
            self.assertFalse(gate.InventoryGate(self.service.conf, self.database).is_open())

    def test_a_service_that_is_down_does_not_hold_it(self):
        with self.old_service():
            self.database.write(lambda tx: tx.execute(sa.update(models.services).where(
                models.services.c.host == "old.example.org").values(
                    last_seen_at=bulk.now() - datetime.timedelta(seconds=90))))
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
        statements = []

        def note(connection, cursor, statement, *_):
            if "inventories" in statement:
                statements.append(statement)

        engine = (self.service.conductor or self.service).database.engine
        sa.event.listen(engine, "before_cursor_execute", note)
        try:
            found = ComputeNodeList.get_all(self.context)
        finally:
            sa.event.remove(engine, "before_cursor_execute", note)
        self.assertEqual((120, 1), (len(found), len(statements)))
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
                (ComputeNodeList.get_by_pagination(self.context, 1, first.id), [second])):
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
        stranger = ComputeNode(id=second.id, host=first.host,
                               hypervisor_hostname=first.hypervisor_hostname)
        stranger._context = self.context
        stranger.obj_reset_changes()
        stranger.vcpus = 16
        stranger.save()
        self.assertEqual([16, 8], [self.inventory(each.uuid)["VCPU"][0]
                                   for each in (first, second)])
        gone = ComputeNode(id=first.id, uuid=base.new_uuid())
        gone._context = self.context
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
        for again in (node(), node("other", uuid=self.row("cmp1.example.org").uuid)):
            again._context = self.context
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
            created = ComputeNode.read(copy.deepcopy(sent))
            del created._obj_id
            created._changed_fields.discard("id")
            created._context = self.context
            created.create()
            answer = self.api._caller.call(
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
