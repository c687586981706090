# SPDX-License-Identifier: Apache-2.0
"""The programs on the command line."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess
import sys
import time
from unittest import mock

import fixtures
import sqlalchemy as sa
import testtools
import yaml

from placement_rpc.cmd import calls, client_parser, output, state_file
from placement_rpc.db import api as db
from placement_rpc.objects.service import Service
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import waiting
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

    def start(self, *arguments, until="BUS=rabbit"):
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.main",
             "--state-dir", self.state_dir, *arguments, "standalone", "--http-port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=_ROOT, umask=0o022)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        lines = []
        while until not in "".join(lines):
            line = process.stdout.readline()
            self.assertTrue(line, process.stderr.read() if not line else "")
            lines.append(line)
        return process, "".join(lines)

    def test_it_says_what_runs_and_ends_cleanly(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process, said = self.start()
            for words in ("is running", "inside this process", "placement.sqlite", "make demo",
                          "/ui/"):
                self.assertIn(words, said)
            mode = pathlib.Path(self.state_dir, state_file.NAME).stat().st_mode
            self.assertEqual(0o600, stat.S_IMODE(mode))
            process.send_signal(number)
            out, err = process.communicate(timeout=30)
            self.assertEqual((0, "Stopped."), (process.returncode, out.splitlines()[-1]), err)
            self.assertNotIn("Traceback", err)
            self.assertIsNone(state_file.read(self.state_dir))

    def test_it_says_that_its_broker_is_away(self):
        _, said = self.start("--transport-url", "rabbit://a:b@127.0.0.1:1/", until="Try next")
        for words in ("RabbitMQ at 127.0.0.1:1, which cannot be reached yet",
                      "Connection refused"):
            self.assertIn(words, said)

    def test_one_of_two_that_start_at_once_is_refused(self):
        both = [subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.main", "--state-dir",
             self.state_dir, "standalone", "--http-port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=_ROOT)
            for _ in range(2)]
        for each in both:
            self.addCleanup(each.communicate)
            self.addCleanup(each.kill)
        waiting.wait_until(lambda: any(each.poll() is not None for each in both))
        refused, = (each for each in both if each.poll() is not None)
        self.assertIn(f"on {self.state_dir}", refused.communicate()[1])
        self.assertEqual(1, refused.returncode)
        runs, = (each for each in both if each is not refused)
        self.assertEqual(runs.pid, waiting.wait_until(
            lambda: state_file.read(self.state_dir))["pid"])

    def test_its_files_are_for_their_owner_only(self):
        """Also those that an earlier release, or the user, left with other permissions."""
        for _ in range(2):
            process, _ = self.start()
            files = {path.name: stat.S_IMODE(path.stat().st_mode)
                     for path in pathlib.Path(self.state_dir).iterdir()}
            self.assertEqual(dict.fromkeys((
                "placement.sqlite", "placement.sqlite-wal", "placement.sqlite-shm",
                "placement-rpc.log", state_file.NAME, state_file.LOCK), 0o600), files)
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

    def test_the_store_of_a_stopped_one_can_be_read(self):
        process, _ = self.start()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        here = ("--state-dir", self.state_dir)
        for program, *arguments in (
                ("main", *here, "--local", "providers"),
                ("main", *here, "--local", "usages"),
                ("manage", *here, "index", "verify", "--here"),
                ("manage", *here, "db", "version")):
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-m", f"placement_rpc.cmd.{program}", *arguments],
                check=False, capture_output=True, text=True, cwd=_ROOT)
            self.assertEqual((0, ""), (done.returncode, done.stderr), arguments)
        elsewhere = run("--state-dir", f"{self.state_dir}-2", "--local", "usages")
        self.assertEqual(3, elsewhere.returncode)

    def test_a_state_directory_of_any_name(self):
        self.state_dir = self.useFixture(fixtures.TempDir()).join("a?b%20c$d é@:#\\$e${f}")
        process, _ = self.start()
        self.assertTrue(pathlib.Path(self.state_dir, state_file.STORE).is_file())
        listing = ("--state-dir", self.state_dir, "--local", "providers")
        for _ in range(2):
            done = run(*listing)
            self.assertEqual((0, "[]\n", ""), (done.returncode, done.stdout, done.stderr))
            # It is read without the service, too.
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)

    def test_a_configured_bus_is_used(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).join("bus.conf"))
        path.write_text("[DEFAULT]\ntransport_url = rabbit://a:b@127.0.0.1:1/\n")
        _, said = self.start("--config-file", str(path), until="Try next")
        self.assertIn("RabbitMQ at 127.0.0.1:1, which cannot be reached yet", said)

    def test_local_events_cannot_be_followed(self):
        done = run("--state-dir", self.state_dir, "--local", "listen")
        self.assertEqual(1, done.returncode)
        self.assertIn("not followed", done.stderr)
        self.assertNotIn("with --local", done.stderr)

    def test_a_service_in_no_process_has_no_ping(self):
        done = run("--state-dir", self.state_dir, "--local", "ping")
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("'ping' asks a running service", done.stderr)

    def test_a_second_one_on_the_same_state_is_refused(self):
        self.start()
        second = run("--state-dir", self.state_dir, "standalone")
        self.assertEqual(1, second.returncode)
        self.assertIn("runs on", second.stderr)

    def test_a_taken_port_is_named_with_how_to_choose_another(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = run("--state-dir", self.state_dir, "standalone", "--http-port", str(port))
        self.assertNotEqual(0, done.returncode)
        for words in (f"127.0.0.1, port {port}", "in use", "--http-port", "bind_port"):
            self.assertIn(words, done.stderr.splitlines()[-1])
        for words in ("not available", "Errno"):
            self.assertNotIn(words, done.stderr)

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
        listening = run("--transport-url", "rabbit://127.0.0.1:1/", "listen")
        self.assertEqual(3, listening.returncode)
        self.assertIn("RabbitMQ at 127.0.0.1:1: ", listening.stderr.splitlines()[-1])

    def test_mistakes_are_one_clear_line(self):
        directory = self.useFixture(fixtures.TempDir())
        for program, *arguments in (
                ("main", "--transport-url", "foo://x", "ping"),
                ("main", "--transport-url", "rabbit://x:port/", "ping"),
                ("main", "--config-file", "/nowhere", "ping"),
                ("main", "--state-dir", "/proc/nowhere", "standalone"),
                ("manage", "--database", "nonsense", "db", "sync"),
                ("manage", "--state-dir", directory.path, "db", "sync"),
                ("manage", "--database", f"sqlite:///{directory.join('no', 'where')}", "db",
                 "version"),
                ("conductor", "--config-file", "/dev/null")):
            called = subprocess.run(
                [sys.executable, "-W", "ignore", "-m", f"placement_rpc.cmd.{program}",
                 *arguments], check=False, capture_output=True, text=True, cwd=_ROOT)
            self.assertIn(called.returncode, (1, 2, 3), arguments)
            self.assertNotIn("Traceback", called.stderr, arguments)
            self.assertIn("placement-rpc", called.stderr, arguments)


class LibraryTest(base.TestCase):

    def test_importing_it_prints_nothing(self):
        """As a program is started: the warnings of libraries are for their authors."""
        for module in ("placement_rpc.api", "placement_rpc.notifications.listener"):
            done = subprocess.run(
                [sys.executable, "-c", f"import {module}"], check=False, capture_output=True,
                text=True, cwd=_ROOT)
            self.assertEqual((0, ""), (done.returncode, done.stderr))


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


    def test_a_second_engine_takes_no_locks_from_the_first(self):
        """A process that closes a file loses all its locks on the file, also those of SQLite."""
        path = self.directory / "x.sqlite"
        store = self.useFixture(placement_fixtures.Store(f"sqlite:///{path}"))
        with store.database.reader() as tx:
            tx.execute(sa.text("SELECT 1 FROM resource_providers"))
            db.Database(store.conf).close()
            # Another program that believes to be the last one removes the log when it closes it.
            subprocess.run([sys.executable, "-c", _OPEN_AND_CLOSE, str(path)], check=True)
            self.assertIn("x.sqlite-wal", self.modes())
        store.database.write(lambda tx: tx.execute(sa.text("DELETE FROM leases")))


_OPEN_AND_CLOSE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT 1 FROM resource_providers")
connection.close()
"""


class OutputTest(testtools.TestCase):

    rows = [{"name": "[red]pool", "alive": True, "used": 5}]

    def shown(self, style, rows=None, columns=("name", "alive", "used"), **how):
        stream = fixtures.StringStream("out")
        self.useFixture(stream)
        output.show(self.rows if rows is None else rows, columns, style, stream.stream, **how)
        stream.stream.seek(0)
        return stream.stream.read()

    def test_json_in_a_pipe(self):
        for style in ("auto", "json"):
            self.assertEqual(self.rows, json.loads(self.shown(style)))

    def test_a_table_shows_what_is_there_and_no_more(self):
        shown = self.shown("table")
        for text in ("[red]pool", "yes", "5"):
            self.assertIn(text, shown)

    def test_a_table_follows_the_terminal_and_breaks_no_uuid(self):
        rows = [{"provider_name": "a rather long name.example.org", "uuid": base.new_uuid(),
                 "resource_class": "CUSTOM_RATHER_LONG", "used": 1234567,
                 "at": "2026-11-23T22:00:01.123456+00:00"} for _ in range(3)]
        for columns in (200, 100, 80, 20):
            self.useFixture(fixtures.EnvironmentVariable("COLUMNS", str(columns)))
            lines = self.shown("table", rows, list(rows[0])).splitlines()
            for row in rows:
                self.assertTrue(any(row["uuid"] in line for line in lines), lines)
            width = max(map(len, lines))
            if columns >= 100:
                self.assertTrue(80 < width <= columns, lines)
            text = "\n".join(lines)
            for word in ("provider", "resource", "1234567"):
                self.assertIn(word, text)
            self.assertNotIn(".123456", text)

    def test_services_fit_80_columns(self):
        self.useFixture(fixtures.EnvironmentVariable("COLUMNS", "80"))
        rows = [{"binary": f"placement-rpc-{name}", "host": "compute-017.east", "worker": 12,
                 "version": "0.3.0", "rpc_version": "1.27",
                 "last_seen_at": "2026-11-25T03:21:53.123456Z", "alive": True}
                for name in ("standalone", "conductor", "api")]
        client = mock.Mock()
        client.get_versions.return_value.objects = [
            Service(**row) for row in rows]
        stream = self.useFixture(fixtures.StringStream("stdout")).stream
        with contextlib.redirect_stdout(stream):
            calls.call(client, client_parser.parser().parse_args(
                ["services", "--format", "table"]))
        stream.seek(0)
        lines = stream.read().splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        for words in ("standalone.12", "conductor.12", "compute-017.east", "0.3.0",
                      "2026-11-25T03:21:53Z"):
            self.assertTrue(any(words in line for line in lines), lines)

    def test_an_empty_table_says_what_would_fill_it(self):
        self.assertEqual("Nothing yet: make one.\n",
                         self.shown("table", [], empty="Nothing yet: make one."))
        self.assertEqual([], json.loads(self.shown("json", [], empty="Nothing yet.")))

    def test_csv_and_yaml(self):
        rows = [{"name": "a, \"b\"", "alive": True, "used": 5, "more": ["x"]},
                {"name": "\x07 \U0001f600", "alive": False, "used": None, "more": []}]
        self.assertEqual('name,more,used\n"a, ""b""","[""x""]",5\n\x07 \U0001f600,[],\n',
                         self.shown("csv", rows, ("name", "more", "used")))
        self.assertEqual(rows, yaml.safe_load(self.shown("yaml", rows)))
