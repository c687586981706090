# SPDX-License-Identifier: Apache-2.0
"""The programs with which an operator upgrades a deployment."""

import json
import pathlib

import fixtures
import sqlalchemy as sa

from placement_rpc import api, manager
from placement_rpc.accounting.outbox import written
from placement_rpc.cmd import manage, status
from placement_rpc.context import RequestContext
from placement_rpc.db import migration, models
from placement_rpc.db.queries import services
from placement_rpc.nova.compute_node import ComputeNodeStore
from placement_rpc.objects.nova.compute_node import ComputeNode, ComputeNodeList
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, programs
from tests.compute_nodes import independently, nodes, store_rows

_NODES = pathlib.Path(__file__).parents[2] / "examples" / "nova_compute_nodes.jsonl"
_CHILD = "5f1c3e7a-9b2d-4f60-8a1c-3e5d7b9f2a4c"
_OLD = {"binary": "placement-rpc-conductor", "host": "old.example.org", "worker": 1}


class ProgramTest(base.TestCase):

    time_limit = 180

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(placement_fixtures.Store(self.url()))
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.file = self.directory / "placement-rpc.conf"
        self.configure()

    def url(self):
        """The address of an empty database; None for a SQLite file."""

    def configure(self, text=""):
        self.file.write_text(
            f"[database]\nconnection = {self.store.conf.database.connection}\n{text}")

    def run_program(self, program, *arguments):
        """Run the program; return its exit code, standard output and standard error."""
        return programs.run(program, "--config-file", str(self.file), *arguments)

    def manage(self, *arguments):
        return self.run_program(manage, *arguments)

    def check(self):
        """The upgrade check: its exit code, and dict of check to result and details."""
        code, out, _ = self.run_program(status, "upgrade", "check", "--json")
        return code, {each["check"]: (each["result"], each["details"] or "")
                      for each in json.loads(out)["checks"]}

    def old_service(self):
        self.store.database.write(lambda tx: services.beat(
            tx, _OLD, {"version": "0.1.0", "rpc_version": "1.0"}, True))

    def old_service_ends(self):
        self.store.database.write(lambda tx: services.remove(tx, _OLD))

    def bring_in(self, *lines, options=()):
        path = self.directory / "nodes.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return self.manage("compute-nodes", "import", *options, str(path))

    @staticmethod
    def counts(**numbers):
        """Return what an import prints."""
        return {**dict.fromkeys(
            ("imported", "replaced", "there_already", "deleted", "refused"), 0), **numbers}

    def count(self, table):
        with self.store.database.reader() as tx:
            return tx.execute(sa.select(sa.func.count()).select_from(table)).scalar()


class WayTest(ProgramTest):
    """From nova's columns to a contracted schema, step by step."""

    def test_the_whole_way(self):
        self.assertEqual(0, self.manage("compute-nodes", "import", str(_NODES))[0])
        self.old_service()
        code, checks = self.check()
        self.assertEqual(1, code)
        self.assertIn("old.example.org", checks["Gate of the compute nodes' migration"][1])
        self.assertIn("120 of 120", checks["Compute nodes in inventories"][1])
        code, out, err = self.manage("db", "online_data_migrations")
        self.assertEqual(2, code)
        self.assertIn("old.example.org", err)
        code, out, err = self.manage("db", "contract")
        self.assertEqual(1, code)
        self.assertIn("old.example.org", err)
        self.old_service_ends()
        code, _, err = self.manage("db", "contract")
        self.assertEqual(1, code)
        self.assertIn("120 of 120", err)
        for wanted, done in ((1, 70), (1, 50), (0, 0)):
            code, out, _ = self.manage(
                "db", "online_data_migrations", "--max-count", "70", "--format", "json")
            self.assertEqual((wanted, [{
                "migration": "compute_node_inventories", "found": done, "done": done}]),
                (code, json.loads(out)))
        self.assertEqual((0, {(0, "")}), (lambda code, checks: (code, {
            checks[name] for name in ("Gate of the compute nodes' migration",
                                      "Compute nodes in inventories")}))(*self.check()))
        self.assertEqual(0, self.manage("db", "contract")[0])
        self.assertTrue(migration.is_contracted(self.store.database))
        self.assertIn("already", self.manage("db", "contract")[1])
        self.assertIn("already", self.manage("db", "sync")[1])
        self.assertEqual(0, self.check()[0])
        self.after_the_contraction()

    def after_the_contraction(self):
        """Check that nodes can be read, saved, created, imported and destroyed."""
        context = RequestContext(database=self.store.database)
        context.nodes = ComputeNodeStore(
            manager.Manager(self.store.conf, self.store.database).gate.settings)
        found = {each.hypervisor_hostname: each for each in ComputeNodeList.get_all(context)}
        self.assertEqual(120, len(found))
        sent = nodes()[3]
        node = found[sent["nova_object.data"]["hypervisor_hostname"]]
        self.assertEqual(independently(sent)["VCPU"][0], node.vcpus)
        node.vcpus, node.running_vms = node.vcpus * 2, 7
        node.save()
        self.assertEqual(2 * independently(sent)["VCPU"][0],
                         ComputeNode.get_by_uuid(context, node.uuid).vcpus)
        new = ComputeNode(context, host="new", hypervisor_hostname="new", vcpus=1, memory_mb=1,
                          local_gb=1)
        new.create()
        new.destroy()
        line = {"host": "late", "hypervisor_hostname": "late.example.org", "vcpus": 4,
                "memory_mb": 4096, "local_gb": 40}
        code, out, err = self.bring_in(
            line, {**line, "host": "bad", "hypervisor_hostname": "bad", "vcpus": -1})
        self.assertEqual((1, [self.counts(imported=1, refused=1)]),
                         (code, json.loads(out)))
        self.assertIn("compute node bad", err)
        self.assertEqual([self.counts(there_already=1)],
                         json.loads(self.bring_in(line)[1]))
        self.assertEqual(4, ComputeNode.get_by_host_and_nodename(
            context, "late", "late.example.org").vcpus)


class ImportTest(ProgramTest):

    def test_a_refused_node_is_reported_and_others_are_imported(self):
        good = {"host": "a", "hypervisor_hostname": "a.example.org", "vcpus": 1, "memory_mb": 1,
                "local_gb": 1}
        future = {**nodes()[0], "nova_object.version": "1.20"}
        path = self.directory / "nodes.jsonl"
        path.write_text("\n".join([
            json.dumps(good), "{broken", "[1]", "", json.dumps({**good, "vcpus": "many"}),
            json.dumps(good), json.dumps(future), json.dumps({**good, "host": "b" * 256}),
            json.dumps({**good, "host": "b", "pci_in_use": {"type-X": 1}}),
            json.dumps({**good, "host": "c", "memory_mb": 2 ** 70}),
            json.dumps({**good, "host": "d", "uuid": "nonsense"})]))
        code, out, err = self.manage("compute-nodes", "import", str(path))
        self.assertEqual((1, [self.counts(imported=1, refused=9)]),
                         (code, json.loads(out)), err)
        for words in ("line 2", "line 3", "line 5", "line 6: Compute node a.example.org",
                      "1.20", "line 8", "type-X", "memory_mb", "line 11"):
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
            ("hypervisor_hostname", " a"), ("hypervisor_hostname", None),
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
            self.assertTrue(line.startswith(f"line {number}: "), line)
            self.assertIn({"memory_mb": "memory_mb" if number < 10 else "",
                           "cpu_allocation_ratio": "ratio"}.get(name, name), line)
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


class ExitCodeTest(ProgramTest):

    def test_of_online_data_migrations(self):
        self.assertEqual(0, self.manage("db", "online_data_migrations")[0])
        for number in ("0", "-5", "many", "1.5"):
            self.assertEqual(
                127, self.manage("db", "online_data_migrations", "--max-count", number)[0])
        bad = {"host": "bad", "hypervisor_hostname": "bad", "vcpus": -1, "memory_mb": 1,
               "local_gb": 1}
        good = {**bad, "host": "good", "hypervisor_hostname": "good", "vcpus": 1}
        store_rows(self.store.database, bad)
        self.bring_in(good)
        code, out, err = self.manage("db", "online_data_migrations", "--max-count", "5")
        self.assertEqual(1, code)
        self.assertIn("compute node bad", err)
        for words in ("migration", "found", "done", "compute_node_inventories"):
            self.assertIn(words, out)
        self.assertEqual(
            2, self.manage("db", "online_data_migrations", "--max-count", "5")[0])
        self.assertEqual(2, self.manage("db", "online_data_migrations")[0])

    def test_of_the_upgrade_check(self):
        self.assertEqual(0, self.check()[0])
        self.store.database.write(lambda tx: services.beat(
            tx, _OLD, {"version": "0.0.1", "rpc_version": "0.9"}, True))
        code, checks = self.check()
        self.assertEqual(2, code)
        self.assertIn("old.example.org", checks["Services alongside this release"][1])

    def test_of_the_upgrade_check_without_a_database(self):
        self.file.write_text("[database]\nconnection = sqlite:////no/such/directory/x\n")
        code, _, err = self.run_program(status, "upgrade", "check")
        self.assertEqual(255, code)
        self.assertNotIn("Traceback", err)

    def test_of_an_empty_database(self):
        (self.directory / "empty").touch()
        self.file.write_text(f"[database]\nconnection = sqlite:///{self.directory}/empty\n")
        code, checks = self.check()
        self.assertEqual(2, code)
        self.assertIn("db sync", checks["Schema"][1])


class _PayloadOfRelease1:
    """A payload as the first release recorded it."""

    def forget_changes(self):
        """Do nothing: it has no such names."""

    def obj_to_primitive(self):
        return {"placement_object.name": "AllocationPayload",
                "placement_object.namespace": "placement",
                "placement_object.version": "1.0", "placement_object.data": {}}


class StatusTest(ProgramTest):

    def test_the_release_of_each_service_is_shown(self):
        self.bring_in(nodes()[0])
        store_rows(self.store.database, {
            "host": "bad", "hypervisor_hostname": "bad", "vcpus": -1, "memory_mb": 1,
            "local_gb": 1})
        self.manage("db", "online_data_migrations")
        self.store.database.write(lambda tx: services.beat(tx, _OLD, {
            "version": "0.2.0", "rpc_version": "1.1", "pin": "ocata", "oldest_caller": "newton",
        }, True))
        code, out, _ = self.manage("upgrade", "status")
        self.assertEqual(0, code)
        found = json.loads(out)
        (service,) = found["services"]
        self.assertEqual(("ocata", "ocata", "newton", True), tuple(service[name] for name in (
            "release", "pin", "oldest_caller", "alive")))
        self.assertEqual({"nodes": 2, "migrated": 1, "without_uuid": 0},
                         found["compute_nodes"])
        self.assertEqual(["2026.2", "2027.1"], list(found["bumps"]))
        self.assertEqual(["newton"], list(found["left_behind"]))
        self.assertEqual({"ComputeNodePayload 1.1": 1, "InventoryPayload 1.1": 1,
                          "ResourceProviderPayload 1.1": 1}, found["waiting_payloads"])
        code, out, _ = self.manage("upgrade", "status", "--format", "table")
        for words in ("1 of 2 migrated", "a pin of 2026.2 breaks", "clients of newton still call"):
            self.assertIn(words, out)

    def test_calls_that_wait_for_older_services(self):
        def status():
            return json.loads(self.manage("upgrade", "status")[1])

        self.assertEqual({"contract": "1.3", "open": True, "held_by": []}, status()["calls"])
        self.store.database.write(lambda tx: services.beat(tx, _OLD, {
            "version": "0.2.0", "rpc_version": "1.2", "pin": None, "oldest_caller": None}, True))
        found = status()["calls"]
        self.assertFalse(found["open"])
        holder, = found["held_by"]
        self.assertIn(_OLD["host"], holder)
        out = self.manage("upgrade", "status", "--format", "table")[1]
        for words in ("they are refused because of", "old.example.org",
                      "going back is possible to", "2026.2"):
            self.assertIn(words, " ".join(out.split()))
        self.assertIn(holder, self.check()[1]["Calls that every live service must know"][1])

    def test_the_way_back(self):
        def way_back():
            return json.loads(self.manage("upgrade", "status")[1])["way_back"]

        self.assertEqual({"release": "2026.2", "stored": []}, way_back())
        local = api.PlacementAPI("local", self.store.conf, manager=manager.Manager(
            self.store.conf, self.store.database))
        self.addCleanup(local.close)
        root = local.create_provider(None, "root").uuid
        local.set_inventory(None, root, [base.inventory("VCPU", 4)])
        claim = base.claim({root: {"VCPU": 4}})
        local.claim_allocations(None, claim)
        self.assertEqual("2026.2", way_back()["release"])
        changes = {
            "parents of resource providers": (
                lambda: local.create_provider(None, "child", _CHILD, parent_provider_uuid=root),
                lambda: local.delete_provider(None, _CHILD)),
            "traits of resource providers": (
                lambda: local.set_provider_traits(None, root, ["HW_CPU_X86_AVX2"]),
                lambda: local.set_provider_traits(None, root, [])),
            "types of consumers": (
                lambda: local.claim_allocations(None, base.claim(
                    claim.allocations, claim.consumer_uuid, consumer_type="INSTANCE")),
                lambda: (local.release_allocations(None, claim.consumer_uuid),
                         local.claim_allocations(None, claim))),
            "capacities below what is used": (
                lambda: local.update_inventory(None, root, base.inventory("VCPU", 3)),
                lambda: local.update_inventory(None, root, base.inventory("VCPU", 4)))}
        for what, (begin, end) in changes.items():
            begin()
            self.assertEqual({"release": "2027.1", "stored": [what]}, way_back())
            self.assertIn(f"a release before it does not know {what}", " ".join(self.manage(
                "upgrade", "status", "--format", "table")[1].replace("│", " ").split()))
            end()
            self.assertEqual({"release": "2026.2", "stored": []}, way_back())

    def test_events_that_wait_at_an_old_version(self):
        def old(tx, outbox):
            outbox.add("allocation.delete", _PayloadOfRelease1())

        written(self.store.database, old)
        self.assertIn("1 unpublished events are at AllocationPayload 1.0",
                      self.check()[1]["Pins and payloads"][1])
