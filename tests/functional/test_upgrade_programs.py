# SPDX-License-Identifier: Apache-2.0
"""The programs with which an operator upgrades a deployment."""

import json
import pathlib

import fixtures
import sqlalchemy as sa

from placement_rpc import manager
from placement_rpc.accounting.outbox import written
from placement_rpc.cmd import manage, status
from placement_rpc.context import RequestContext
from placement_rpc.db import migration, models
from placement_rpc.db.queries import services
from placement_rpc.nova.compute_node import ComputeNodeStore
from placement_rpc.objects.nova.compute_node import ComputeNode, ComputeNodeList
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, programs
from tests.compute_nodes import independently, nodes

_NODES = pathlib.Path(__file__).parents[2] / "examples" / "nova_compute_nodes.jsonl"
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

    def bring_in(self, *lines):
        path = self.directory / "nodes.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return self.manage("compute-nodes", "import", str(path))

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
        self.assertEqual((1, [{"imported": 1, "there_already": 0, "refused": 1}]),
                         (code, json.loads(out)))
        self.assertIn("compute node bad", err)
        self.assertEqual([{"imported": 0, "there_already": 1, "refused": 0}],
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
        self.assertEqual((1, [{"imported": 1, "there_already": 0, "refused": 9}]),
                         (code, json.loads(out)), err)
        for words in ("line 2", "line 3", "line 5", "line 6: Compute node a.example.org",
                      "1.20", "line 8", "type-X", "memory_mb", "line 11"):
            self.assertIn(words, err)
        self.assertEqual(1, self.count(models.compute_nodes))

    def test_a_file_that_is_not_there(self):
        code, _, err = self.manage("compute-nodes", "import", "/no/such/file")
        self.assertEqual(1, code)
        self.assertIn("/no/such/file", err)

    def test_from_novas_own_database(self):
        nova = f"sqlite:///{self.directory}/nova.sqlite"
        self.make_nova(nova)
        code, out, err = self.manage("compute-nodes", "import", "--from-database", nova)
        self.assertEqual((0, [{"imported": 2, "there_already": 0, "refused": 0}]),
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


class ExitCodeTest(ProgramTest):

    def test_of_online_data_migrations(self):
        self.assertEqual(0, self.manage("db", "online_data_migrations")[0])
        for number in ("0", "-5", "many", "1.5"):
            self.assertEqual(
                127, self.manage("db", "online_data_migrations", "--max-count", number)[0])
        bad = {"host": "bad", "hypervisor_hostname": "bad", "vcpus": -1, "memory_mb": 1,
               "local_gb": 1}
        good = {**bad, "host": "good", "hypervisor_hostname": "good", "vcpus": 1}
        self.bring_in(bad, good)
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
        self.bring_in(nodes()[0], {"host": "bad", "hypervisor_hostname": "bad", "vcpus": -1,
                                   "memory_mb": 1, "local_gb": 1})
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
        self.assertEqual({"ComputeNodePayload 1.0": 1, "InventoryPayload 1.0": 1,
                          "ResourceProviderPayload 1.1": 1}, found["waiting_payloads"])
        code, out, _ = self.manage("upgrade", "status", "--format", "table")
        for words in ("1 of 2 migrated", "a pin of 2026.2 breaks", "clients of newton still call"):
            self.assertIn(words, out)

    def test_events_that_wait_at_an_old_version(self):
        def old(tx, outbox):
            outbox.add("allocation.delete", _PayloadOfRelease1())

        written(self.store.database, old)
        self.assertIn("1 unpublished events are at AllocationPayload 1.0",
                      self.check()[1]["Pins and payloads"][1])
