# SPDX-License-Identifier: Apache-2.0
"""Compute nodes: before, during and after the migration of their columns to inventories."""

import itertools
import json
import threading

import fixtures
import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.db import models
from placement_rpc.db.queries import bulk
from placement_rpc.nova import migration
from placement_rpc.objects.nova.compute_node import ComputeNode, ComputeNodeList
from tests import base
from tests.compute_nodes import independently, nodes, store_rows
from tests.functional.node_case import NodeTest, node


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

    def test_a_node_that_cannot_be_migrated_is_reported_and_others_are_migrated(self):
        good = node("good.example.org", host="good").obj_to_primitive()
        bad = {"host": "bad", "vcpus": 1, "memory_mb": 1, "local_gb": 1}
        self.api.create_provider(None, "taken.example.org")
        store_rows(
            self.database, {**bad, "hypervisor_hostname": "negative.example.org", "vcpus": -4},
            {**bad, "hypervisor_hostname": "absent.example.org", "memory_mb": None},
            {**bad, "hypervisor_hostname": "numa.example.org", "numa_topology": "{broken"},
            {**bad, "hypervisor_hostname": "taken.example.org"},
            {**bad, "hypervisor_hostname": "twice.example.org", "host": "one"},
            {**bad, "hypervisor_hostname": "twice.example.org", "host": "two"},
            {**bad, "hypervisor_hostname": None})
        self.bring_in(good)
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

    def test_rows_that_cannot_be_migrated_are_not_in_the_way_of_others(self):
        store_rows(self.database, *(
            {"host": f"bad{number}", "hypervisor_hostname": f"bad{number}", "vcpus": -1,
             "memory_mb": 1, "local_gb": 1} for number in range(3)))
        self.bring_in(node().obj_to_primitive())
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

    def test_batches_that_are_migrated_at_the_same_time(self):
        self.useFixture(fixtures.MonkeyPatch("placement_rpc.upgrade.online.BATCH", 5))
        store_rows(self.database, *(
            {"host": f"host{number}", "hypervisor_hostname": f"node{number // 2}", "vcpus": 1,
             "memory_mb": 1, "local_gb": 1} for number in range(9, 41)))
        done = self.migrate(limit=12)
        self.assertEqual(12, done.done)
        # The first and the last row have names of their own, and each other name has two rows.
        self.assertEqual(17 - 12, self.migrate().done)
        again = self.migrate()
        self.assertEqual((15, 0, 15), (again.found, again.done, len(again.refused)))
        self.assertEqual({exception.NameInUse}, {type(error) for _, error in again.refused})
        self.assertEqual(17, len(self.api.list_providers(None).objects))

    def test_the_database_goes_away_between_batches(self):
        self.useFixture(fixtures.MonkeyPatch("placement_rpc.upgrade.online.BATCH", 10))
        self.bring_in(*nodes())
        migrate, calls = migration.migrate, itertools.count()

        def fail_at_last(*arguments):
            if next(calls) >= 3:
                raise exception.StoreUnavailable(reason="for the test")
            return migrate(*arguments)

        reports = []
        with fixtures.MonkeyPatch("placement_rpc.nova.migration.migrate", fail_at_last):
            self.assertRaises(exception.StoreUnavailable, self.migrate, report=lambda progress: (
                reports.append(progress.done)))
        self.assertEqual(30, reports[-1])
        self.assertEqual(30, len(self.api.list_providers(None).objects))
        self.assertEqual(90, self.migrate().done)

    def test_what_is_under_way_when_it_is_interrupted_is_completed_and_reported(self):
        self.useFixture(fixtures.MonkeyPatch("placement_rpc.upgrade.online.BATCH", 10))
        self.bring_in(*nodes())
        reports = []

        def interrupt(progress):
            reports.append(progress.done)
            if len(reports) == 1:
                raise KeyboardInterrupt

        self.assertRaises(KeyboardInterrupt, self.migrate, report=interrupt)
        self.assertEqual(reports[-1], len(self.api.list_providers(None).objects))
        self.assertEqual(120 - reports[-1], self.migrate().done)


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
    """A crash at any statement leaves no partial change."""

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
        """Migrate, and crash at the n-th statement that writes; return whether it was reached."""
        options = self.service.conf.compute_nodes

        def change(tx):
            dying, outbox = _Dying(tx, number), Outbox()
            done, refused = migration.migrate(
                dying, outbox, [1, 2], options, ComputeNode.of_columns)
            outbox.write(dying)
            self.assertEqual((2, {}), (done, refused))

        try:
            self.database.write(change)
        except _Crash:
            return True
        return False
