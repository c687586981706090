# SPDX-License-Identifier: Apache-2.0
"""The programs on the command line."""

import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import time

import fixtures
import sqlalchemy as sa
import testtools

from placement_rpc.cmd import output, state_file
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base

_ROOT = pathlib.Path(__file__).parents[2]


def run(*arguments, **how):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.main", *arguments],
        check=False, capture_output=True, text=True, cwd=_ROOT, **how)


class StandaloneTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.state_dir = self.useFixture(fixtures.TempDir()).join("state")

    def start(self, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.main",
             "--state-dir", self.state_dir, *arguments, "standalone", "--http-port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=_ROOT, umask=0o022)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        lines = []
        while "BUS=rabbit" not in "".join(lines):
            line = process.stdout.readline()
            self.assertTrue(line, process.stderr.read() if not line else "")
            lines.append(line)
        return process, "".join(lines)

    def test_it_says_what_runs_and_ends_cleanly(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process, said = self.start()
            for words in ("is running", "inside this process", "placement.sqlite", "make demo"):
                self.assertIn(words, said)
            mode = pathlib.Path(self.state_dir, state_file.NAME).stat().st_mode
            self.assertEqual(0o600, stat.S_IMODE(mode))
            process.send_signal(number)
            out, err = process.communicate(timeout=30)
            self.assertEqual((0, "Stopped."), (process.returncode, out.splitlines()[-1]), err)
            self.assertNotIn("Traceback", err)
            self.assertIsNone(state_file.read(self.state_dir))

    def test_its_files_are_for_their_owner_only(self):
        """Also those that an earlier release, or the user, left with other permissions."""
        for _ in range(2):
            process, _ = self.start()
            files = {path.name: stat.S_IMODE(path.stat().st_mode)
                     for path in pathlib.Path(self.state_dir).iterdir()}
            self.assertEqual(dict.fromkeys((
                "placement.sqlite", "placement.sqlite-wal", "placement.sqlite-shm",
                "placement-rpc.log", state_file.NAME), 0o600), files)
            process.send_signal(signal.SIGKILL)
            process.wait()
            for name in files:
                pathlib.Path(self.state_dir, name).chmod(0o644)

    def test_its_store_can_be_read_and_its_bus_cannot(self):
        self.start()
        here = ("--state-dir", self.state_dir)
        listed = run(*here, "--local", "providers")
        self.assertEqual((0, []), (listed.returncode, json.loads(listed.stdout)))
        called = run(*here, "ping")
        self.assertEqual(3, called.returncode)
        self.assertIn("make run BUS=rabbit", called.stderr)

    def test_a_second_one_on_the_same_state_is_refused(self):
        self.start()
        second = run("--state-dir", self.state_dir, "standalone")
        self.assertEqual(1, second.returncode)
        self.assertIn("runs on", second.stderr)

    def test_what_was_stored_is_there_the_next_time(self):
        first, _ = self.start()
        first.send_signal(signal.SIGKILL)
        first.wait()
        self.start()


class CommandTest(base.TestCase):
    # Many programs, each of which takes its time to start on a busy machine.
    time_limit = 240

    def test_help(self):
        for arguments in (["--help"], ["standalone", "--help"], ["usages", "--help"]):
            shown = run(*arguments)
            self.assertEqual(0, shown.returncode)
            self.assertIn("usage: placement-rpc", shown.stdout)

    def test_where_nothing_runs_it_says_so(self):
        directory = self.useFixture(fixtures.TempDir()).path
        began = time.monotonic()
        called = run("--state-dir", directory, "ping")
        self.assertEqual(3, called.returncode)
        self.assertIn("no service runs", called.stderr)
        self.assertLess(time.monotonic() - began, 40)

    def test_a_broker_that_is_not_there(self):
        called = run("--transport-url", "rabbit://127.0.0.1:1/", "ping", "--timeout", "1")
        self.assertEqual(3, called.returncode)
        self.assertIn("ping", called.stderr)
        self.assertNotIn("Traceback", called.stderr)


    def test_mistakes_are_one_clear_line(self):
        directory = self.useFixture(fixtures.TempDir())
        for program, *arguments in (
                ("main", "--transport-url", "foo://x", "ping"),
                ("main", "--transport-url", "rabbit://x:port/", "ping"),
                ("main", "--config-file", "/nowhere", "ping"),
                ("main", "--state-dir", "/proc/nowhere", "standalone"),
                ("manage", "--database", "nonsense", "db", "sync"),
                ("manage", "db", "sync"),
                ("manage", "--database", f"sqlite:///{directory.join('no', 'where')}", "db",
                 "version"),
                ("conductor", "--config-file", "/dev/null")):
            called = subprocess.run(
                [sys.executable, "-W", "ignore", "-m", f"placement_rpc.cmd.{program}",
                 *arguments], check=False, capture_output=True, text=True, cwd=_ROOT)
            self.assertIn(called.returncode, (1, 2, 3), arguments)
            self.assertNotIn("Traceback", called.stderr, arguments)
            self.assertIn("placement-rpc", called.stderr, arguments)


class PrivateFilesTest(base.TestCase):
    """Databases and logs that a program creates are for their owner only."""

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.addCleanup(os.umask, os.umask(0o022))

    def modes(self):
        return {path.name: stat.S_IMODE(path.stat().st_mode) for path in self.directory.iterdir()}

    def run_program(self, program, *arguments, **how):
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-m", f"placement_rpc.cmd.{program}", *arguments],
            check=False, capture_output=True, text=True, cwd=self.directory, **how)

    def test_of_programs(self):
        conf = self.directory / "placement-rpc.conf"
        conf.write_text("[DEFAULT]\ntransport_url = inprocess://x/\nlog_file = the.log\n"
                        "[database]\nconnection = sqlite:///the.sqlite\n")
        expected = {"the.log": 0o600, "the.sqlite": 0o600, conf.name: 0o644}
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        here = ("--config-file", str(conf))
        self.run_program("manage", *here, "db", "sync", env=environment)
        self.assertEqual(expected, self.modes())
        for program, *arguments in (("status", "upgrade", "check"), ("conductor",)):
            (self.directory / "the.log").unlink()
            # A conductor without its schema ends at once.
            (self.directory / "the.sqlite").write_bytes(b"")
            self.run_program(program, *here, *arguments, env=environment)
            self.assertEqual(expected, self.modes(), program)

    def test_of_a_program_that_embeds_the_service(self):
        store = self.useFixture(placement_fixtures.Store(
            f"sqlite:///{self.directory}/x.sqlite"))
        with store.database.reader() as tx:
            tx.execute(sa.text("SELECT 1 FROM resource_providers"))
            self.assertEqual(dict.fromkeys(
                ("x.sqlite", "x.sqlite-wal", "x.sqlite-shm"), 0o600), self.modes())
        # Its other files are its own concern.
        self.assertEqual(0o022, os.umask(0o022))


class OutputTest(testtools.TestCase):

    rows = [{"name": "[red]pool", "alive": True, "used": 5}]

    def shown(self, style, **how):
        stream = fixtures.StringStream("out")
        self.useFixture(stream)
        output.show(self.rows, ["name", "alive", "used"], style, stream.stream)
        stream.stream.seek(0)
        return stream.stream.read()

    def test_json_in_a_pipe(self):
        for style in ("auto", "json"):
            self.assertEqual(self.rows, json.loads(self.shown(style)))

    def test_a_table_shows_what_is_there_and_no_more(self):
        shown = self.shown("table")
        for text in ("[red]pool", "yes", "5"):
            self.assertIn(text, shown)
