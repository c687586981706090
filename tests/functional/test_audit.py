# SPDX-License-Identifier: Apache-2.0
"""Audits of random clouds by the program, compared with a plain model of the rules."""

import io
import json
import os
import pathlib
import random

import fixtures
import sqlalchemy as sa

from placement_rpc.audit import corrections
from placement_rpc.cmd import manage
from placement_rpc.db import models
from placement_rpc.db.queries import bulk, events, hold
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, programs
from tests.audit_model import Model

_STATUS = ("ACTIVE", "ACTIVE", "ACTIVE", "SHUTOFF", "ERROR", "VERIFY_RESIZE", "MIGRATING",
           "SHELVED_OFFLOADED")
_OVER_OR_NOT = ("finished", "running", "confirmed", "completed", "error")


class AuditCase(base.TestCase):
    """A store, and the program on it."""

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(placement_fixtures.RunningService(
            "local", database_url=self.database_url()))
        self.api, self.database = self.store.api, self.store.database
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.providers, self.consumers, self.servers = {}, {}, {}
        self.migrations = self.services = None

    def database_url(self):
        return None

    def provider(self, name, *traits, parent=None, **inventories):
        uuid = base.new_uuid()
        self.api.create_provider(None, name, uuid, parent_provider_uuid=parent)
        if inventories:
            self.api.set_inventory(None, uuid, [
                base.inventory(each, total) for each, total in inventories.items()])
        if traits:
            self.api.set_provider_traits(None, uuid, list(traits), 1 if inventories else 0)
        self.providers[uuid] = {"name": name, "parent": parent, "traits": set(traits),
                                "inventories": set(inventories)}
        return uuid

    def consumer(self, allocations, uuid=None, kind=None, project="p", user="u"):
        uuid = uuid or base.new_uuid()
        self.api.claim_allocations(None, base.claim(
            allocations, uuid, project_id=project, user_id=user, consumer_type=kind))
        self.consumers[uuid] = {"project": project, "user": user, "type": kind,
                                "allocations": allocations}
        return uuid

    def server(self, host=None, status="ACTIVE", task="", project="p", uuid=None):
        uuid = uuid or base.new_uuid()
        self.servers[uuid] = {"host": host, "status": status, "task": task, "project": project}
        return uuid

    def write(self, name, value):
        path = self.directory / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return str(path)

    def lists(self):
        """Write the lists; return the arguments that name them."""
        arguments = ["--servers", self.write("servers.json", [
            {key: value for key, value in (
                ("ID", uuid), ("Host", each["host"]), ("Status", each["status"]),
                ("Task State", each["task"]), ("Project ID", each["project"]))
             if value is not None} for uuid, each in self.servers.items()])]
        if self.migrations is not None:
            arguments += ["--migrations", self.write("migrations.json", [
                {"UUID": uuid, "Server UUID": server, "Status": status}
                for uuid, (server, status) in self.migrations.items()])]
        if self.services is not None:
            arguments += ["--services", self.write(
                "services.json", [{"Host": name} for name in self.services])]
        return arguments

    def run_program(self, *arguments, margin=None):
        """Run an audit after everything was written; return what :func:`programs.run` does."""
        lists = self.lists()
        # As if they were taken later, so that all is old enough.
        for path in self.directory.iterdir():
            os.utime(path, (path.stat().st_mtime + 3600,) * 2)
        return programs.run(
            manage, "--database", str(self.store.conf.database.connection), "audit", *lists,
            "--margin", str(0 if margin is None else margin), *arguments)

    def audit(self, *arguments, code=None, **how):
        """Return the document that the program prints."""
        done = self.run_program("--format", "json", *arguments, **how)
        self.assertIn(done.code, (0, 1) if code is None else (code,), done.stderr)
        document = json.loads(done.stdout)
        left = document["summary"]["wrong"] - document["summary"]["corrected"]
        self.assertEqual(int(left > 0), done.code)
        return document

    def model(self):
        return Model(self.providers, self.consumers, self.servers, self.migrations,
                     self.services)

    @staticmethod
    def found(document):
        return {(each["kind"], each["uuid"], each["correction"], each["is_under_way"])
                for each in document["findings"]}

    def held(self):
        """Return what the store has of every consumer."""
        return {each.uuid: each.allocations for each in self.api.all_consumers(None)}


class RandomCloudTest(AuditCase):
    """Clouds in which everything is wrong somewhere."""

    seeds = range(150 if base.FULL else 12)
    every_kind = True

    def build(self, seed):
        self.random = random.Random(seed)
        self.providers, self.consumers, self.servers = {}, {}, {}
        self.migrations = self.services = None
        names = [f"cmp{number}.{seed}" + self.random.choice(("", ".example.org"))
                 for number in range(self.random.randint(2, 4))]
        nodes = [self.node(name) for name in names]
        self.pools = [self.provider(
            f"pool {seed}", "MISC_SHARES_VIA_AGGREGATE", DISK_GB=100_000)]
        self.provider(f"other {seed}", FPGA=10)
        hosts = [*names, f"unknown{seed}", "", *(name.upper() for name in names[:1]),
                 *(name.partition(".example")[0] for name in names)]
        with_hosts, with_status = self.random.random() < 0.8, self.random.random() < 0.7
        for _ in range(self.random.randint(3, 12)):
            self.some_server(nodes, hosts, with_hosts, with_status)
        for _ in range(self.random.randint(2, 6)):
            self.consumer(self.some_allocations(nodes), **self.some_owner())
        if self.random.random() < 0.5:
            self.migrations = {}
            for uuid in [each for each in self.consumers if each not in self.servers]:
                if self.random.random() < 0.6:
                    self.migrations[uuid] = (
                        self.random.choice([*self.servers, base.new_uuid()]),
                        self.random.choice(_OVER_OR_NOT))
        if self.random.random() < 0.6:
            self.services = self.random.sample(hosts[:len(names)], len(names) - 1)

    def node(self, name):
        """Return the providers of a compute node, the root first."""
        classes = {"VCPU": 1000, "MEMORY_MB": 100_000}
        if self.random.random() < 0.7:
            classes["DISK_GB"] = 1000
        root = self.provider(name, **classes)
        return [root, *(self.provider(f"{name}_{number}", parent=root, VGPU=100)
                        for number in range(self.random.randint(0, 2)))]

    def some_server(self, nodes, hosts, with_hosts, with_status):
        uuid = self.server(
            self.random.choice(hosts) if with_hosts else None,
            self.random.choice(_STATUS) if with_status else None,
            self.random.choice(("", "", "", "rebuilding")) if with_status else None,
            self.random.choice(("p", "p", None)))
        if self.random.random() < 0.8:
            self.consumer(self.some_allocations(nodes), uuid, **self.some_owner())

    def some_owner(self):
        return {"kind": self.random.choice((None, None, "INSTANCE", "MIGRATION", "OTHER")),
                "project": self.random.choice(("p", "q")),
                "user": self.random.choice(("u", "v"))}

    def some_allocations(self, nodes):
        found = {}
        for node in self.random.sample(nodes, self.random.choice((1, 1, 1, 2))):
            found[node[0]] = {"VCPU": self.random.randint(1, 2), "MEMORY_MB": 512}
            if node[1:] and self.random.random() < 0.3:
                found[self.random.choice(node[1:])] = {"VGPU": 1}
        if self.random.random() < 0.3:
            found[self.pools[0]] = {"DISK_GB": 5}
        return found

    def empty(self):
        """Remove the cloud, so that the next one is alone."""
        for uuid in self.consumers:
            if uuid in self.held():
                self.api.release_allocations(None, uuid)
        for each in sorted(self.api.all_provider_summaries(None),
                           key=lambda each: each.parent_provider_uuid is None):
            self.api.delete_provider(None, each.uuid)

    def test_what_is_found_is_what_the_rules_say(self):
        kinds = set()
        for seed in self.seeds:
            self.build(seed)
            document = self.audit()
            expected = self.model().findings()
            self.assertEqual(expected, self.found(document), seed)
            self.assertEqual(any(not each[3] for each in expected),
                             document["summary"]["wrong"] > 0)
            kinds |= {each[::2] for each in expected}
            self.empty()
        # Each kind, with and without each of its corrections, is among them.
        wanted = {("orphaned", "release"), ("orphaned", None), ("missing", None),
                  ("doubled", "release"), ("doubled", "keep"), ("doubled", None),
                  ("misplaced", None), ("unserved", None)}
        if self.every_kind:
            self.assertEqual(set(), wanted - kinds)

    def test_what_is_corrected_is_what_the_rules_say(self):
        for seed in self.seeds:
            self.build(seed)
            model = self.model()
            to_delete = {each[1] for each in model.findings() if each[2] == "delete"}
            wrong = any(not each[3] and each[2] is None for each in model.findings())
            document = self.audit("--fix", "--yes", "--most", "100", code=int(wrong))
            model.correct()
            self.assertEqual(
                {uuid: each["allocations"] for uuid, each in model.consumers.items()},
                self.held(), seed)
            left = {each.uuid for each in self.api.all_provider_summaries(None)}
            self.assertEqual(to_delete, {
                uuid for uuid in self.providers
                if self.providers[uuid]["parent"] is None} - left)
            self.assertEqual({None, "corrected"} if document["summary"]["corrected"] else {None},
                             {each["outcome"] for each in document["findings"]} | {None})
            self.empty()


class ProgramTest(AuditCase):
    """Options, output and exit codes of the program, on a small cloud."""

    def setUp(self):
        super().setUp()
        self.nodes = [self.provider(f"cmp{number}.example.org", VCPU=100, MEMORY_MB=100_000)
                      for number in range(3)]
        self.good = [self.server("cmp0.example.org") for _ in range(20)]
        for uuid in self.good:
            self.consumer({self.nodes[0]: {"VCPU": 1}}, uuid)

    def orphan(self, **values):
        return self.consumer({self.nodes[1]: {"VCPU": 2, "MEMORY_MB": 512}}, **values)

    def events(self, event_type):
        with self.database.reader() as tx:
            rows = events.waiting(tx)
        return [json.loads(row.payload)["placement_object.data"] for row in rows
                if row.event_type == event_type]

    def test_nothing_is_wrong(self):
        done = self.run_program("--format", "table")
        self.assertEqual((0, ""), (done.code, done.stderr))
        self.assertIn("Compared 20 servers with 20 consumers of 3 providers: nothing is wrong",
                      done.stdout)

    def test_a_table(self):
        orphan, lost = self.orphan(), self.server("cmp2.example.org")
        done = self.run_program("--format", "table")
        self.assertEqual(1, done.code)
        flat = "".join(done.stdout.split())
        for words in ("orphaned", orphan, "missing", lost, "release", "none:",
                      "1orphaned,1missing"):
            self.assertIn("".join(words.split()), flat.replace("│", ""), words)

    def test_only_some_kinds(self):
        self.orphan()
        self.server("cmp2.example.org")
        document = self.audit("--only", "missing")
        self.assertEqual(["missing"], [each["kind"] for each in document["findings"]])
        self.assertEqual(1, document["summary"]["wrong"])
        self.audit("--only", "doubled", "--only", "unserved", code=0)

    def test_nothing_changes_without_yes(self):
        orphan = self.orphan()
        for arguments in ((), ("--fix",)):
            done = self.run_program("--format", "json", *arguments)
            self.assertEqual(1, done.code)
            found, = json.loads(done.stdout)["findings"]
            self.assertEqual((orphan, "release", None), tuple(
                found[name] for name in ("uuid", "correction", "outcome")))
        self.assertIn("nothing was changed; give --yes to make 1 correction", done.stderr)
        self.assertIn(orphan, self.held())

    def test_the_answer_on_a_terminal(self):
        orphan = self.orphan()
        for answer, code in (("n\n", 1), ("", 1), ("y\n", 0)):
            self.assertIn(orphan, self.held())
            terminal = io.StringIO(answer)
            terminal.isatty = lambda: True
            with fixtures.MonkeyPatch("sys.stdin", terminal):
                done = self.run_program("--fix", "--format", "json")
            self.assertEqual(code, done.code, done.stderr)
            self.assertIn("[y/N]", done.stderr)
            self.assertIn(orphan, done.stderr.replace("\n", ""))
        self.assertEqual("corrected", json.loads(done.stdout)["findings"][0]["outcome"])
        self.assertNotIn(orphan, self.held())

    def test_each_event_has_its_reason(self):
        orphan, doubled, misplaced = self.orphan(), self.server("cmp1.example.org"), self.server(
            "CMP2.example.org")
        self.consumer({self.nodes[0]: {"VCPU": 3}, self.nodes[1]: {"VCPU": 3}}, doubled)
        self.consumer({self.nodes[0]: {"VCPU": 4}}, misplaced)
        self.services = ["cmp0", "cmp1.example.org", "cmp2.example.org"]
        empty = self.provider("cmp9.example.org", VCPU=8)
        child = self.provider("cmp9.example.org_gpu", parent=empty, VGPU=1)
        document = self.audit("--fix", "--yes", code=0)
        self.assertEqual({"release": 1, "keep": 1, "move": 1, "delete": 1},
                         document["summary"]["corrections"])
        self.assertEqual(4, document["summary"]["corrected"])
        self.assertEqual({doubled: {self.nodes[1]: {"VCPU": 3}},
                          misplaced: {self.nodes[2]: {"VCPU": 4}}},
                         {uuid: held for uuid, held in self.held().items()
                          if uuid not in self.good})
        released, = self.events("allocation.delete")
        self.assertEqual((orphan, "audit: Nova knows no server of this uuid"),
                         (released["consumer_uuid"], released["reason"]))
        reasons = {each["consumer_uuid"]: each["reason"]
                   for each in self.events("allocation.update")}
        self.assertEqual({doubled, misplaced}, set(reasons))
        self.assertIn("2 compute nodes", reasons[doubled])
        deleted = self.events("resource_provider.delete")
        self.assertEqual([child, empty], [each["provider_uuid"] for each in deleted])
        self.assertTrue(all("no compute service" in each["reason"] for each in deleted))
        # What others do has none.
        self.assertNotIn("reason", self.events("allocation.create")[0])
        self.audit(code=0)

    def test_what_has_changed_meanwhile_is_left(self):
        """Also if it has the generation that was read, since it was released in between."""
        gone, changed, again = self.orphan(), self.orphan(), self.orphan()
        moved = self.server("cmp2.example.org")
        self.consumer({self.nodes[1]: {"VCPU": 1}}, moved)
        node = self.provider("cmp9.example.org", VCPU=8)
        self.services = [f"cmp{number}" for number in range(3)]

        def interfere():
            self.api.release_allocations(None, gone)
            self.consumer({self.nodes[1]: {"VCPU": 5}}, changed)
            self.api.release_allocations(None, again)
            self.consumer({self.nodes[1]: {"VCPU": 2, "MEMORY_MB": 512}}, again)
            self.api.release_allocations(None, moved)
            self.consumer({self.nodes[1]: {"VCPU": 1}}, moved)
            self.api.set_aggregates(None, node, [base.new_uuid()])

        with fixtures.MonkeyPatch(
                "placement_rpc.cmd.manage_audit.Corrections", self.interfered(interfere)):
            document = self.audit("--fix", "--yes", code=1)
        outcomes = {each["uuid"]: each["outcome"] for each in document["findings"]}
        self.assertEqual({gone, changed, again, moved, node}, set(outcomes))
        for outcome in outcomes.values():
            self.assertIn("left as it is", outcome)
        self.assertEqual(0, document["summary"]["corrected"])
        held = self.held()
        self.assertEqual([{"VCPU": 5}, {"VCPU": 2, "MEMORY_MB": 512}],
                         [held[uuid][self.nodes[1]] for uuid in (changed, again)])
        self.assertEqual({self.nodes[1]: {"VCPU": 1}}, held[moved])
        self.assertEqual("cmp9.example.org", self.api.get_provider(None, node).name)

    @staticmethod
    def interfered(change):
        """Return the class of corrections, which lets something happen before the first."""
        class Interfered(corrections.Corrections):
            def made(self, findings):
                wanted = list(findings)
                change()
                return super().made(wanted)
        return Interfered

    def test_an_interrupt_says_what_was_done(self):
        orphans = {self.orphan() for _ in range(3)}

        class Interrupted(corrections.Corrections):
            def made(self, findings):
                for number, each in enumerate(super().made(findings)):
                    if number:
                        raise KeyboardInterrupt
                    yield each

        with fixtures.MonkeyPatch("placement_rpc.cmd.manage_audit.Corrections", Interrupted):
            done = self.run_program("--fix", "--yes", "--format", "json")
        self.assertEqual(130, done.code)
        self.assertIn("stopped after 1 corrections: interrupted", done.stderr)
        # They were made together with the first one.
        self.assertEqual(set(), orphans & self.held().keys())
        unknown = "not known, since it was interrupted; the next audit shows it"
        self.assertEqual(["corrected", unknown, unknown], [
            each["outcome"] for each in json.loads(done.stdout)["findings"]])

    def test_an_interrupt_between_corrections(self):
        orphans = {self.orphan() for _ in range(3)}
        made = []

        def interrupted(database, settle):
            def settle_once(pending):
                if made:
                    raise KeyboardInterrupt
                made.extend(pending)
                return settle(pending)
            return corrections.Corrections(database, settle_once)

        self.useFixture(fixtures.MonkeyPatch("placement_rpc.audit.corrections._AT_ONCE", 1))
        with fixtures.MonkeyPatch("placement_rpc.cmd.manage_audit.Corrections", interrupted):
            done = self.run_program("--fix", "--yes", "--format", "json")
        self.assertEqual(130, done.code)
        self.assertEqual(2, len(orphans & self.held().keys()))
        self.assertEqual(["corrected", "not known", "not tried"], [
            each["outcome"].partition(",")[0]
            for each in json.loads(done.stdout)["findings"]])

    def test_a_store_that_is_held_is_not_changed(self):
        orphan = self.orphan()
        self.database.write(lambda tx: hold.set_(tx, "an import fills it"))
        done = self.run_program("--fix", "--yes", "--format", "json")
        self.assertEqual(1, done.code)
        self.assertIn("stopped after 0 corrections", done.stderr)
        self.assertIn("an import fills it", done.stderr)
        self.assertEqual("not tried", json.loads(done.stdout)["findings"][0]["outcome"])
        self.assertIn(orphan, self.held())

    def test_too_many_are_refused(self):
        for _ in range(15):
            self.orphan()
        done = self.run_program("--fix", "--yes", "--format", "json")
        self.assertEqual(1, done.code)
        self.assertIn("15 of 35 consumers would be, which is more than 10 %", done.stderr)
        self.assertEqual(35, len(self.held()))
        self.audit("--fix", "--yes", "--most", "50", code=0)
        self.assertEqual(20, len(self.held()))

    def test_what_is_recent_is_not_judged(self):
        self.orphan()
        # The lists are an hour newer than the store.
        document = self.audit(margin=7200, code=0)
        self.assertEqual(([], 21), (document["findings"], document["summary"]["recent"]))
        self.assertEqual(1, len(self.audit(margin=0)["findings"]))

    def test_a_server_that_was_deleted_after_the_list_is_not_missing(self):
        uuid = self.server("cmp0.example.org")
        self.consumer({self.nodes[0]: {"VCPU": 1}}, uuid)
        never = self.server("cmp0.example.org")
        self.api.release_allocations(None, uuid)
        document = self.audit(margin=7200)
        self.assertEqual([never], [each["uuid"] for each in document["findings"]])

    def test_plain_lines_on_standard_input(self):
        orphan = self.orphan(kind="INSTANCE")
        lines = "\n".join(f"{uuid} cmp0.example.org" for uuid in self.good) + "\n"
        with fixtures.MonkeyPatch("sys.stdin", io.StringIO(lines)):
            done = programs.run(
                manage, "--database", str(self.store.conf.database.connection), "audit",
                "--servers", "-", "--margin", "0", "--format", "json")
        self.assertEqual(1, done.code, done.stderr)
        self.assertEqual([(orphan, "release")], [
            (each["uuid"], each["correction"]) for each in json.loads(done.stdout)["findings"]])

    def test_several_lists(self):
        self.orphan(kind="OTHER")
        zun = self.orphan()
        done = self.run_program(
            "--servers", self.write("zun", zun + "\n"), "--format", "json")
        self.assertEqual(0, done.code, done.stderr)
        self.assertEqual(1, json.loads(done.stdout)["summary"]["of_other_services"])

    def test_lists_that_cannot_be_read(self):
        missing = str(self.directory / "nowhere")
        for arguments, words in (
                (["--servers", missing], "nowhere"),
                (["--servers", self.write("empty", "")], "empty"),
                (["--services", self.write("services", "[1]")], "entry 1"),
                (["--migrations", self.write("plain", base.new_uuid())], "column names"),
                (["--servers", "-", "--migrations", "-"], "one list only")):
            done = self.run_program(*arguments)
            self.assertEqual((2, ""), (done.code, done.stdout), arguments)
            self.assertIn(words, done.stderr)
            self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)

    def test_a_store_that_cannot_be_read(self):
        servers = self.write("servers", base.new_uuid())
        empty = self.directory / "empty.sqlite"
        empty.touch()
        for path, words in ((self.directory / "nowhere" / "x", "there is no file"),
                            (empty, "db sync")):
            done = programs.run(
                manage, "--database", f"sqlite:///{path}", "audit", "--servers", servers)
            self.assertEqual((2, ""), (done.code, done.stdout), done.stderr)
            self.assertIn(words, done.stderr)
            self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)

    def test_help_says_what_is_found_and_done(self):
        out = io.StringIO()
        with fixtures.MonkeyPatch("sys.stdout", out):
            self.assertRaises(SystemExit, manage.main, ["audit", "--help"])
        for words in ("orphaned", "unserved", "openstack server list", "Exit code: 0"):
            self.assertIn(words, out.getvalue())
        for arguments in (["--most", "101"], ["--margin", "-1"], ["--only", "pony"]):
            with fixtures.MonkeyPatch("sys.stderr", io.StringIO()):
                error = self.assertRaises(SystemExit, manage.main, [
                    "audit", "--servers", "-", *arguments])
            self.assertEqual(2, error.code)


class RulesTest(AuditCase):
    """Cases that random clouds have too seldom; the model judges these too."""

    def setUp(self):
        super().setUp()
        self.node = self.provider("cmp1.example.org", VCPU=100, MEMORY_MB=1000)
        self.other = self.provider("cmp2.example.org", VCPU=100, MEMORY_MB=1000)

    def judged(self):
        """Return what is found, once the model agrees."""
        found = self.found(self.audit("--margin", "0"))
        self.assertEqual(self.model().findings(), found)
        return found

    def test_the_migration_of_a_server_that_holds_nothing_now(self):
        self.server("cmp1.example.org", "RESIZE", project="p")
        left = self.consumer({self.node: {"VCPU": 1}}, project="p")
        orphan = self.consumer({self.node: {"VCPU": 1}}, project="q")
        self.assertLessEqual({
            ("doubled", left, None, True), ("orphaned", orphan, "release", False)}, self.judged())
        # Of a server whose project is not known it may be any.
        self.server("cmp1.example.org", "RESIZE", project=None)
        self.assertIn(("doubled", orphan, None, True), self.judged())

    def test_a_pool_is_no_compute_node(self):
        pool = self.provider("pool", "MISC_SHARES_VIA_AGGREGATE", VCPU=100, DISK_GB=100)
        self.services = ["cmp1.example.org", "cmp2.example.org"]
        uuid = self.server("cmp1.example.org")
        self.consumer({self.node: {"VCPU": 1}, pool: {"VCPU": 1, "DISK_GB": 5}}, uuid)
        self.assertEqual(set(), self.judged())

    def test_a_short_name_of_several(self):
        self.provider("cmp1.example.com", VCPU=100)
        short, whole = self.server("cmp1"), self.server("CMP2")
        for uuid, node in ((short, self.node), (whole, self.other)):
            self.consumer({node: {"VCPU": 1}}, uuid)
        self.assertEqual({("misplaced", short, None, False)}, self.judged())

    def test_what_is_left_by_a_move_that_nova_calls_over(self):
        uuid = self.server("cmp2.example.org")
        self.consumer({self.other: {"VCPU": 1}}, uuid)
        migration = self.consumer({self.node: {"VCPU": 1}})
        self.assertEqual({("orphaned", migration, "release", False)}, self.judged())
        for status, correction, is_under_way in (
                ("running", None, True), ("finished", None, True), ("confirmed", "release", False),
                ("failed", "release", False)):
            self.migrations = {migration: (uuid, status)}
            self.assertEqual({("doubled", migration, correction, is_under_way)}, self.judged())
            document = self.audit()
            self.assertEqual(uuid, document["findings"][0]["server"])
        self.audit("--fix", "--yes", code=0)
        self.assertEqual([uuid], list(self.held()))

    def test_a_migration_by_its_type(self):
        uuid = self.server("cmp2.example.org")
        self.consumer({self.other: {"VCPU": 7}}, uuid)
        migration = self.consumer({self.node: {"VCPU": 7}}, kind="MIGRATION")
        self.assertEqual({("doubled", migration, "release", False)}, self.judged())
        self.assertEqual(uuid, self.audit()["findings"][0]["server"])

    def test_an_evacuated_server_holds_on_both(self):
        uuid = self.server("cmp2.example.org")
        self.consumer({self.node: {"VCPU": 1}, self.other: {"VCPU": 1}}, uuid)
        self.servers[uuid]["task"] = "rebuilding"
        self.assertEqual({("doubled", uuid, None, True)}, self.judged())
        self.servers[uuid]["task"] = ""
        self.assertEqual({("doubled", uuid, "keep", False)}, self.judged())
        self.audit("--fix", "--yes", code=0)
        self.assertEqual({uuid: {self.other: {"VCPU": 1}}}, self.held())

    def test_a_host_that_has_no_room(self):
        full = self.provider("cmp3.example.org", VCPU=1)
        uuid = self.server("cmp3.example.org")
        self.consumer({self.node: {"VCPU": 2}}, uuid)
        document = self.audit("--fix", "--yes", code=1)
        self.assertIn("not possible", document["findings"][0]["outcome"])
        self.assertIn(full, document["findings"][0]["outcome"])
        self.assertEqual({uuid: {self.node: {"VCPU": 2}}}, self.held())

    def test_the_hosts_of_the_stored_compute_nodes(self):
        """Bare metal: one service has many nodes, whose names are others."""
        rows = [{"uuid": self.node, "host": "ironic", "hypervisor_hostname": "a"},
                {"uuid": None, "host": "Ironic", "hypervisor_hostname": "cmp2.example.org"}]
        at = bulk.now()
        self.database.write(lambda tx: tx.execute(sa.insert(models.compute_nodes), [
            {**row, "created_at": at, "updated_at": at} for row in rows]))
        good, bad = self.server("ironic"), self.server("other")
        self.consumer({self.other: {"VCPU": 1}}, good)
        self.consumer({self.other: {"VCPU": 1}}, bad)
        self.services = ["ironic"]
        self.assertEqual({("misplaced", bad, None, False)}, self.found(self.audit()))
        self.services = ["other"]
        self.assertEqual({self.node, self.other}, {
            each[1] for each in self.found(self.audit()) if each[0] == "unserved"})
