# SPDX-License-Identifier: Apache-2.0
"""Options, output and exit codes of the audit, and what it corrects, on a small cloud."""

import io
import json

import fixtures

from placement_rpc.audit import corrections
from placement_rpc.cmd import manage
from placement_rpc.db.queries import events, hold
from tests import base, programs
from tests.audit_case import AuditCase


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
            def make(self, findings):
                wanted = list(findings)
                change()
                return super().make(wanted)
        return Interfered

    def test_an_interrupt_says_what_was_done(self):
        orphans = {self.orphan() for _ in range(3)}

        class Interrupted(corrections.Corrections):
            def make(self, findings):
                for number, each in enumerate(super().make(findings)):
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

    def test_more_than_a_half_of_a_few_are_refused(self):
        for uuid in self.good[8:]:
            self.api.release_allocations(None, uuid)
        self.servers = dict(list(self.servers.items())[:1])
        done = self.run_program("--fix", "--yes", "--format", "json")
        self.assertEqual(1, done.code)
        self.assertIn("7 of 8 consumers would be", done.stderr)
        self.assertEqual(8, len(self.held()))

    def test_without_any_server_nothing_is_corrected(self):
        for uuid in self.good[1:]:
            self.api.release_allocations(None, uuid)
        self.servers.clear()
        done = self.run_program("--fix", "--yes", "--most", "100", "--format", "json")
        self.assertEqual(1, done.code)
        self.assertIn("the lists contain no server", done.stderr)
        self.assertEqual(1, len(self.held()))

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
