# SPDX-License-Identifier: Apache-2.0
"""The programs with which an operator imports and corrects compute nodes."""

import json

import sqlalchemy as sa

from placement_rpc import api, manager
from placement_rpc.context import RequestContext
from placement_rpc.db import models
from placement_rpc.nova.compute_node import ComputeNodeStore
from placement_rpc.objects.nova.compute_node import ComputeNode, ComputeNodeList
from tests import base
from tests.compute_nodes import nodes, store_rows
from tests.functional.test_upgrade_programs import ProgramTest


class ImportTest(ProgramTest):

    def test_a_refused_node_is_reported_and_others_are_imported(self):
        good = {"host": "a", "hypervisor_hostname": "a.example.org", "vcpus": 1, "memory_mb": 1,
                "local_gb": 1}
        future = {**nodes()[0], "nova_object.version": "1.20"}
        half = nodes()[1]
        del half["nova_object.data"]["supported_hv_specs"][0]["nova_object.data"]["arch"]
        path = self.directory / "nodes.jsonl"
        path.write_text("\n".join([
            json.dumps(good), "{broken", "[1]", "", json.dumps({**good, "vcpus": "many"}),
            json.dumps(good), json.dumps(future), json.dumps({**good, "host": "b" * 256}),
            json.dumps({**good, "host": "b", "pci_in_use": {"type-X": 1}}),
            json.dumps({**good, "host": "c", "memory_mb": 2 ** 70}),
            json.dumps({**good, "host": "d", "uuid": "nonsense"}), json.dumps(half)]))
        code, out, err = self.manage("compute-nodes", "import", str(path))
        self.assertEqual((1, [self.counts(imported=1, refused=10)]),
                         (code, json.loads(out)), err)
        for words in ("line 2", "line 3", "line 5", "line 6: Compute node a.example.org",
                      "1.20", "line 8", "type-X", "memory_mb", "line 11",
                      "line 12: Invalid compute node", "supported_hv_specs"):
            self.assertIn(words, err)
        self.assertEqual(1, self.count(models.compute_nodes))

    def test_a_line_that_is_not_in_utf_8(self):
        good = {"host": "a", "hypervisor_hostname": "a.example.org", "vcpus": 1, "memory_mb": 1,
                "local_gb": 1}
        path = self.directory / "nodes.jsonl"
        path.write_bytes(json.dumps({**good, "host": "\u00e9"}, ensure_ascii=False).encode(
            "latin-1") + b"\n" + json.dumps(good).encode())
        code, out, err = self.manage("compute-nodes", "import", str(path))
        self.assertEqual((1, [self.counts(imported=1, refused=1)]), (code, json.loads(out)), err)
        self.assertIn(f"{path}, line 1", err)
        self.assertIn("utf-8", err)

    def test_a_file_that_is_not_there(self):
        code, _, err = self.manage("compute-nodes", "import", "/no/such/file")
        self.assertEqual(1, code)
        self.assertIn("/no/such/file", err)

    def test_from_novas_own_database(self):
        nova = f"sqlite:///{self.directory}/nova.sqlite"
        self.make_nova(nova)
        code, out, err = self.manage("compute-nodes", "import", "--from-database", nova)
        self.assertEqual((0, [self.counts(imported=2, deleted=1)]),
                         (code, json.loads(out)), err)
        self.assertEqual(0, self.manage("db", "online_data_migrations")[0])
        context = RequestContext(database=self.store.database)
        context.nodes = ComputeNodeStore(
            manager.Manager(self.store.conf, self.store.database).gate.settings)
        first, _ = ComputeNodeList.get_all(context)
        self.assertEqual((8, 4.0), (first.vcpus, first.cpu_allocation_ratio))
        with self.store.database.reader() as tx:
            rows = tx.execute(sa.text(
                "SELECT p.uuid, c.name, i.total FROM inventories i JOIN resource_providers p ON "
                "p.id = i.resource_provider_id JOIN resource_classes c ON "
                "c.id = i.resource_class_id WHERE c.name LIKE '%VF'")).all()
        # Six are free, one is claimed and one allocated; one is deleted.
        self.assertEqual([(first.uuid, "SRIOV_NET_VF", 8)], [tuple(row) for row in rows])

    @staticmethod
    def make_nova(url):
        engine = sa.create_engine(url)
        with engine.begin() as tx:
            tx.exec_driver_sql(
                "CREATE TABLE compute_nodes (id INTEGER PRIMARY KEY, created_at DATETIME, "
                "service_id INTEGER, host TEXT, hypervisor_hostname TEXT, uuid TEXT, "
                "vcpus INTEGER, memory_mb INTEGER, local_gb INTEGER, hypervisor_type TEXT, "
                "hypervisor_version INTEGER, cpu_allocation_ratio FLOAT, pci_stats TEXT, "
                "supported_instances TEXT, host_ip TEXT, mapped INTEGER, deleted INTEGER)")
            tx.exec_driver_sql(
                "CREATE TABLE pci_devices (id INTEGER PRIMARY KEY, compute_node_id INTEGER, "
                "dev_type TEXT, status TEXT, deleted INTEGER)")
            stats = json.dumps([{"vendor_id": "8086", "product_id": "10ed", "count": 6,
                                 "dev_type": "type-VF"}])
            for number, deleted in ((1, 0), (2, 0), (3, 3)):
                tx.execute(sa.text(
                    "INSERT INTO compute_nodes VALUES (:id, '2016-01-01', 1, :host, :name, NULL, "
                    "8, 1024, 10, 'QEMU', 2, 4.0, :stats, '[[\"x86_64\", \"kvm\", \"hvm\"]]', "
                    "'10.0.0.1', 1, :deleted)"), {
                    "id": number, "host": f"cmp{number}", "name": f"cmp{number}.example.org",
                    "deleted": deleted, "stats": stats if number == 1 else None})
            for status_, deleted in (("claimed", 0), ("allocated", 0), ("available", 0),
                                     ("allocated", 4)):
                tx.execute(sa.text(
                    "INSERT INTO pci_devices (compute_node_id, dev_type, status, deleted) "
                    "VALUES (1, 'type-VF', :status, :deleted)"),
                    {"status": status_, "deleted": deleted})
        engine.dispose()

    def test_a_database_that_is_none(self):
        for url in ("sqlite:///:memory:", "nonsense", "sqlite:////no/such/directory/x"):
            code, _, err = self.manage("compute-nodes", "import", "--from-database", url)
            self.assertEqual(1, code, url)
            self.assertNotIn("Traceback", err)


class CorrectionTest(ProgramTest):
    """Nodes that contradict others, or that the migration cannot take."""

    def line(self, name="a", host=None, **values):
        return {"host": host or name, "hypervisor_hostname": f"{name}.example.org", "vcpus": 4,
                "memory_mb": 1024, "local_gb": 10, **values}

    def nodes(self, *arguments):
        code, out, err = self.manage("compute-nodes", *arguments)
        return code, out, err

    def listed(self, *arguments):
        code, out, _ = self.nodes("list", *arguments)
        self.assertEqual(0, code)
        return json.loads(out)

    def test_a_node_that_contradicts_a_stored_one_is_refused_and_both_are_named(self):
        one, two = base.new_uuid(), base.new_uuid()
        self.assertEqual(0, self.bring_in(
            self.line("a", uuid=one), self.line("b"))[0])
        stored = self.listed()
        for line, words in (
                (self.line("a", host="other", uuid=one), ("on host other", "on host a", one)),
                (self.line("c", host="a", uuid=one), ("c.example.org", "a.example.org", one)),
                (self.line("a", uuid=two), (two, one)),
                (self.line("a", host="other"), ("on host other", "on host a")),
                (self.line("b", uuid=two), (two, "without a uuid"))):
            code, out, err = self.bring_in(line)
            self.assertEqual((1, [self.counts(refused=1)]), (code, json.loads(out)), line)
            for word in ("line 1", *words):
                self.assertIn(word, err)
        self.assertEqual(stored, self.listed())
        self.assertEqual((0, [self.counts(there_already=2)]), (lambda code, out, _: (
            code, json.loads(out)))(*self.bring_in(self.line("a"), self.line("b"))))
        # The same after the migration, and with what is a provider and no node.
        self.manage("db", "online_data_migrations")
        provider = base.new_uuid()
        api.PlacementAPI("local", self.store.conf, manager=manager.Manager(
            self.store.conf, self.store.database)).create_provider(
                None, "pool.example.org", provider)
        for line, words in ((self.line("a", host="other", uuid=one), ("on host a", "migrated")),
                            (self.line("pool"), (provider,))):
            for options in ((), ("--replace",)):
                code, out, err = self.bring_in(line, options=options)
                self.assertEqual((1, [self.counts(refused=1)]), (code, json.loads(out)))
                for word in words:
                    self.assertIn(word, err)

    def test_two_of_one_file_that_contradict_each_other(self):
        one = base.new_uuid()
        for first, second in (
                (self.line("a", uuid=one), self.line("b", uuid=one)),
                (self.line("c", host="x"), self.line("c", host="y"))):
            code, out, err = self.bring_in(first, second)
            self.assertEqual((1, [self.counts(imported=1, refused=1)]), (code, json.loads(out)))
            for words in ("line 2", "line 1", first["host"], second["host"]):
                self.assertIn(words, err)

    def test_what_nova_has_deleted_is_left_out_and_counted(self):
        sent = nodes()[0]
        of_object = {**sent, "nova_object.data": {**sent["nova_object.data"], "deleted": True}}
        code, out, err = self.bring_in(
            self.line("a", deleted=7), self.line("a", deleted=0), self.line("b", deleted=True),
            of_object, self.line("c", deleted=3, vcpus=-1))
        self.assertEqual((0, [self.counts(imported=1, deleted=4)]), (code, json.loads(out)), err)
        self.assertIn("deleted", self.bring_in(self.line("d", deleted="no"))[2])

    def test_what_the_migration_can_not_take_is_refused_by_line_and_field(self):
        broken = (
            ("vcpus", -1), ("memory_mb", -5), ("local_gb", -1), ("vcpus", None),
            ("numa_topology", "{broken"), ("numa_topology", '{"cells": 5}'), ("host", ""),
            ("hypervisor_hostname", "a" * 201), ("hypervisor_hostname", None),
            ("memory_mb", 2 ** 40), ("cpu_allocation_ratio", -1.0),
            ("pci_stats", '[{"vendor_id": "8086", "product_id": "1", "count": -6}]'))
        lines = [self.line(f"n{number}") | {name: value}
                 for number, (name, value) in enumerate(broken)]
        lines.append({name: value for name, value in self.line("x").items() if name != "host"})
        code, out, err = self.bring_in(*lines)
        self.assertEqual((1, [self.counts(refused=len(lines))]), (code, json.loads(out)), err)
        said = err.splitlines()
        for number, ((name, _), line) in enumerate(
                zip((*broken, ("host", None)), said, strict=True), 1):
            self.assertIn(f"nodes.jsonl, line {number}: ", line)
            self.assertIn(name if name != "memory_mb" or number < 10 else "", line)
        self.assertEqual(0, self.count(models.compute_nodes))

    def test_a_node_that_blocks_is_shown_corrected_and_deleted(self):
        one = base.new_uuid()
        store_rows(self.store.database, self.line("good"), self.line("bad", vcpus=-1, uuid=one),
                   self.line("worse", numa_topology="{broken"), self.line("twice", host="x"),
                   self.line("twice", host="y"))
        self.assertEqual(2, self.manage("db", "online_data_migrations")[0])
        blocked = {each["host"]: each for each in self.listed("--blocked")}
        self.assertEqual({"bad", "worse", "y"}, set(blocked))
        self.assertIn("vcpus: -1 is negative", blocked["bad"]["obstacle"])
        self.assertIn("numa_topology", blocked["worse"]["obstacle"])
        self.assertIn("twice.example.org", blocked["y"]["obstacle"])
        self.assertEqual(["good"], [each["host"] for each in self.listed("--host", "good")])
        for name in (str(blocked["bad"]["id"]), one, one.upper(), "bad.example.org"):
            code, out, _ = self.nodes("show", name)
            shown = {each["column"]: each["value"] for each in json.loads(out)}
            self.assertEqual((0, -1, "bad"), (code, shown["vcpus"], shown["host"]))
            self.assertIn("negative", shown["obstacle"])
        for name in ("none", "99", base.new_uuid(), "9" * 30):
            self.assertEqual(1, self.nodes("show", name)[0])
        self.assertIn("give an id", self.nodes("show", "twice.example.org")[2])
        # Corrected: another line for it.
        self.assertEqual(1, self.bring_in(self.line("bad", vcpus=-2), options=["--replace"])[0])
        code, out, err = self.bring_in(
            self.line("bad", vcpus=6), self.line("good", vcpus=9), options=["--replace"])
        self.assertEqual((0, [self.counts(replaced=1, there_already=1)]),
                         (code, json.loads(out)), err)
        self.assertEqual({"worse", "y"}, {each["host"] for each in self.listed("--blocked")})
        # Deleted.
        code, _, err = self.nodes("delete", "good.example.org", "none",
                                  str(blocked["y"]["id"]), "worse.example.org")
        self.assertEqual(1, code)
        self.assertIn("migrated", err)
        self.assertIn("none", err)
        self.assertEqual({"good", "bad", "x"}, {each["host"] for each in self.listed()})
        self.assertEqual(0, self.manage("db", "online_data_migrations")[0])
        self.assertEqual([], self.listed("--blocked"))
        context = RequestContext(database=self.store.database)
        context.nodes = ComputeNodeStore(
            manager.Manager(self.store.conf, self.store.database).gate.settings)
        self.assertEqual((6, 4), tuple(ComputeNode.get_by_host_and_nodename(
            context, host, f"{host}.example.org").vcpus for host in ("bad", "good")))
        self.assertEqual(6, ComputeNode.get_by_uuid(context, one).vcpus)

    def test_a_uuid_that_another_node_has_is_corrected(self):
        one = base.new_uuid()
        store_rows(self.store.database, self.line("old", host="old", uuid=one))
        code, out, err = self.bring_in(self.line("new", uuid=one), options=["--replace"])
        self.assertEqual((0, [self.counts(replaced=1)]), (code, json.loads(out)), err)
        node, = self.listed()
        self.assertEqual(("new", "new.example.org", one), (
            node["host"], node["hypervisor_hostname"], node["uuid"]))
        store_rows(self.store.database, self.line("other", host="other"))
        code, _, err = self.bring_in(self.line("other", uuid=one), options=["--replace"])
        self.assertEqual(1, code)
        for words in ("on host other", "on host new"):
            self.assertIn(words, err)
