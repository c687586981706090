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
from placement_rpc.db import schema_version
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
        self.assertTrue(schema_version.is_contracted(self.store.database))
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
