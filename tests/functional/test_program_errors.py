# SPDX-License-Identifier: Apache-2.0
"""Errors of the programs on a terminal: one line and an exit code, whatever is wrong."""

import configparser
import fcntl
import json
import os
import pathlib
import shlex
import socket
import subprocess
import sys

import fixtures
import yaml

from placement_rpc.cmd import state_file
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base

_ROOT = pathlib.Path(__file__).parents[2]
_NOT_SUPPORTED = "The database cannot be reached: the driver {} is not supported; write {}://"


def programs():
    """Return the console scripts of the package: dict of name to module and function."""
    setup = configparser.ConfigParser()
    setup.read(_ROOT / "setup.cfg")
    return dict(line.replace(" ", "").split("=") for line in
                setup["options.entry_points"]["console_scripts"].strip().splitlines())


class ProgramTest(base.TestCase):
    # Each program takes its time to start on a busy machine.
    time_limit = 300

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        with socket.create_server(("127.0.0.1", 0)) as server:
            # Nothing listens there when the socket is closed.
            self.port = server.getsockname()[1]
        self.url = f"rabbit://ada:secret@127.0.0.1:{self.port}/"

    def run_program(self, name, *arguments):
        """Run a program as its console script does."""
        command, how = self.command(name, *arguments)
        return subprocess.run(command, check=False, capture_output=True, timeout=120, **how)

    def start_program(self, name, *arguments):
        """Start a program as its console script does."""
        command, how = self.command(name, *arguments)
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **how)

    def command(self, name, *arguments):
        """Return the command of a program, and how it is run."""
        module, function = programs()[name].split(":")
        return ([sys.executable, "-c", f"import sys; sys.argv[0] = {name!r}; "
                 f"from {module} import {function}; sys.exit({function}())", *arguments],
                {"text": True, "cwd": self.directory, "stdin": subprocess.DEVNULL,
                 "env": {**os.environ, "PYTHONPATH": str(_ROOT)}})

    def file(self, name, text):
        path = self.directory / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def refused(self, name, *arguments, code=None, words=()):
        """Check that a program fails with one line; returns the line."""
        done = self.run_program(name, *arguments)
        self.assertIn(done.returncode, (1, 3, 255) if code is None else (code,),
                      (arguments, done.stderr))
        lines = done.stderr.splitlines()
        self.assertEqual(1, len(lines), (arguments, done.stderr))
        self.assertTrue(lines[0].startswith(f"{name}: "), lines)
        for word in ("Traceback", "TypeError", "request None", "secret", "unexpected error"):
            self.assertNotIn(word, lines[0])
        for word in words:
            self.assertIn(word, lines[0], arguments)
        self.assertEqual("", done.stdout)
        return lines[0]


class ConfigurationTest(ProgramTest):

    def test_files_that_can_not_be_read(self):
        arguments = {"placement-rpc": ["ping"], "placement-rpc-manage": ["db", "version"],
                     "placement-rpc-status": ["upgrade", "check"], "placement-rpc-conductor": []}
        self.assertEqual(set(arguments), set(programs()))
        files = (
            self.file("broken.conf", "[database\n"), self.file("binary.conf", b"\xff\xfe\x00"),
            self.file("value.conf", "[claims]\nmax_batch = many\n"),
            str(self.directory / "no-such.conf"), str(self.directory))
        for name, command in arguments.items():
            # All of them read files in the same way; one program is tried with each file.
            for file in files if name == "placement-rpc-manage" else files[1:3]:
                words = ("max_batch",) if "value" in file else (file,)
                line = self.refused(name, "--config-file", file, *command, words=words)
                for word in ("Errno", "LocationInfo"):
                    self.assertNotIn(word, line)

    def test_a_policy_file_that_cannot_be_used(self):
        store = self.useFixture(placement_fixtures.Store())
        policy = self.file("policy.yaml", "- a")
        file = self.file("policy.conf", f"[DEFAULT]\ntransport_url = {self.url}\n[oslo_policy]\n"
                         f"policy_file = {policy}\n[database]\n"
                         f"connection = {store.conf.database.connection}\n")
        self.refused("placement-rpc-conductor", "--config-file", file, words=(policy,))
        done = self.run_program(
            "placement-rpc-status", "--config-file", file, "upgrade", "check", "--json")
        found, = (each for each in json.loads(done.stdout)["checks"]
                  if each["check"] == "Policy file")
        self.assertEqual(2, found["result"])
        self.assertIn(policy, found["details"])

    def test_a_file_in_place_of_the_state_directory(self):
        file = self.file("state", "")
        self.assertEqual(f"placement-rpc: {file}: File exists", self.refused(
            "placement-rpc", "--state-dir", file, "standalone"))


class DatabaseTest(ProgramTest):

    def test_urls_that_can_not_be_used(self):
        away = f"127.0.0.1:{self.port}"
        for url, words in (
                ("postgresql+psycopg2://", (_NOT_SUPPORTED.format("psycopg2",
                                                                 "postgresql+psycopg"),)),
                ("mysql+asyncmy://h/x", ("asyncmy", "mysql+pymysql")),
                ("mysql://h/x", ("mysqldb", "not installed", "mysql+pymysql")),
                ("foo://x", ("'foo'", "postgresql")), ("nonsense", ("not an SQLAlchemy URL",)),
                (f"mysql+pymysql://u:secret@{away}/x?foo=bar", ("parameters", "foo")),
                (f"postgresql+psycopg://u:secret@{away}/x", ("127.0.0.1", "refused")),
                (f"mysql+pymysql://u:secret@{away}/x", ("127.0.0.1", "refused"))):
            self.refused("placement-rpc-manage", "--database", url, "outbox", "status",
                         words=words)
        self.refused("placement-rpc", "--state-dir", "state", "standalone", "--database",
                     "postgresql+psycopg2://", words=("psycopg2",))
        for name, arguments in (("placement-rpc-conductor", ()),
                                ("placement-rpc-status", ("upgrade", "check"))):
            file = self.file("db.conf", "[database]\nconnection = postgresql+psycopg2://\n")
            self.refused(name, "--config-file", file, *arguments, words=("psycopg2",))

    def test_a_file_that_is_not_there_is_not_made(self):
        for url in ("sqlite:///typo.sqlite", "sqlite:///file:typo.sqlite?uri=true",
                    f"sqlite:///{self.directory}/no/where"):
            for command in (("db", "version"), ("compute-nodes", "list")):
                self.refused("placement-rpc-manage", "--database", url, *command,
                             words=("there is no file",))
        file = self.file("db.conf", "[database]\nconnection = sqlite:///typo.sqlite\n")
        self.refused("placement-rpc", "--config-file", file, "--local", "providers", code=3)
        self.refused("placement-rpc-conductor", "--config-file", file)
        self.refused("placement-rpc-status", "--config-file", file, "upgrade", "check")
        self.assertEqual(["db.conf"], [each.name for each in self.directory.iterdir()])
        # Those that make one.
        done = self.run_program(
            "placement-rpc-manage", "--database", "sqlite:///made.sqlite", "db", "sync")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.refused("placement-rpc-manage", "--database", "sqlite:///made.sqlite",
                     "compute-nodes", "import", "--from-database", "sqlite:///nova.sqlite",
                     words=("nova.sqlite",))
        self.assertNotIn("db sync", self.refused(
            "placement-rpc-manage", "--database", "sqlite:///made.sqlite", "compute-nodes",
            "import", "--from-database", "sqlite:///nova.sqlite"))
        self.assertFalse((self.directory / "nova.sqlite").exists())

    def test_a_database_without_the_tables(self):
        self.file("empty.sqlite", "")
        url = f"sqlite:///{self.directory}/empty.sqlite"
        for command in (("outbox", "status"), ("compute-nodes", "list"), ("upgrade", "status"),
                        ("index", "verify", "--here")):
            self.refused("placement-rpc-manage", "--database", url, *command,
                         words=("db sync",))
        file = self.file("db.conf", f"[database]\nconnection = {url}\n")
        self.refused("placement-rpc", "--config-file", file, "--local", "providers",
                     words=("db sync",))


    def test_an_export_leaves_another_database_as_it_was(self):
        stores = [self.useFixture(placement_fixtures.Store()) for _ in range(2)]
        source, other = (each.conf.database.connection for each in stores)
        for target in (other, source):
            file = pathlib.Path(target.removeprefix("sqlite:///"))
            before = file.read_bytes()
            self.refused("placement-rpc-manage", "--database", source, "placement", "export",
                         "--to", target)
            self.assertEqual(before, file.read_bytes())


class BusTest(ProgramTest):

    def test_urls_that_can_not_be_used(self):
        for url in ("nonsense", "foo://x", "rabbit://[::1", "rabbit://h:99999/",
                    "rabbit://ada:secret@h:port/", "rabbit://ada:secret@/"):
            self.refused("placement-rpc", "--transport-url", url, "ping",
                         words=("transport_url",))
        self.refused("placement-rpc-manage", "--transport-url", "foo://x", "dead-letters", "list",
                     words=("transport_url",))
        store = self.useFixture(placement_fixtures.Store())
        file = self.file("bus.conf", "[DEFAULT]\ntransport_url = rabbit://h:99999/\n[database]\n"
                         f"connection = {store.conf.database.connection}\n")
        self.refused("placement-rpc-conductor", "--config-file", file, words=("99999",))

    def test_a_broker_that_is_away(self):
        for command in (("ping", "--timeout", "1"), ("providers", "--timeout", "1"),
                        ("usages", "--timeout", "1"), ("services", "--timeout", "1"),
                        ("listen",), ("usage-report", "--from", "2026-01-01")):
            line = self.refused("placement-rpc", "--transport-url", self.url, *command, code=3,
                                words=("refused",))
            self.assertNotIn("outcome", line)
        for command in (("dead-letters", "list"), ("broker", "check")):
            self.refused("placement-rpc-manage", "--transport-url", self.url, *command)

    def test_without_a_service_no_broker_is_guessed(self):
        """The default of oslo.messaging, on this machine, may be that of another service."""
        for command in (("dead-letters", "list"), ("dead-letters", "discard", "--all"),
                        ("broker", "check"), ("audit-log", "--file", "events.log")):
            self.refused("placement-rpc-manage", "--state-dir", "nothing", *command,
                         words=("no service on the state directory 'nothing' has one",))
        store = self.useFixture(placement_fixtures.Store())
        database = ("--database", store.conf.database.connection)
        for command in (("index", "verify"), ("outbox", "reconcile")):
            self.refused("placement-rpc-manage", *database, *command,
                         words=("no transport_url is configured",))
        done = self.run_program("placement-rpc-manage", *database, "outbox", "status")
        self.assertIn("no transport_url is configured",
                      json.loads(done.stdout)[0]["difference"])

    def test_all_dead_letters_and_some_of_them_contradict_each_other(self):
        for more in (("an-id",), ("--queue", "placement_calls")):
            for command in ("discard", "replay"):
                self.refused("placement-rpc-manage", "--transport-url", self.url, "dead-letters",
                             command, *more, "--all", words=("--all is for every one",))

    def test_the_check_before_an_upgrade_says_that_a_broker_is_away(self):
        store = self.useFixture(placement_fixtures.Store())
        file = self.file("bus.conf", f"[DEFAULT]\ntransport_url = {self.url}\n[database]\n"
                         f"connection = {store.conf.database.connection}\n")
        done = self.run_program(
            "placement-rpc-status", "--config-file", file, "upgrade", "check", "--json")
        found, = (each for each in json.loads(done.stdout)["checks"]
                  if each["check"] == "Connections to the broker")
        self.assertEqual((1, 1), (done.returncode, found["result"]))
        self.assertIn("cannot be reached", found["details"])

    def test_it_is_said_while_it_is_tried_again(self):
        store = self.useFixture(placement_fixtures.Store())
        for name, arguments in (
                ("placement-rpc", ("ping", "--timeout", "600")),
                ("placement-rpc-manage", ("--database", store.conf.database.connection, "index",
                                          "verify"))):
            with self.start_program(name, "--transport-url", self.url, *arguments) as process:
                self.addCleanup(process.wait)
                self.addCleanup(process.kill)
                line = process.stderr.readline()
                # It has not given up.
                self.assertIsNone(process.poll())
                process.kill()
            self.assertTrue(line.startswith(f"{name}: no answer yet: 127.0.0.1:{self.port} "
                                            "cannot be reached"), line)
            self.assertIn("tried again until 60", line)
            self.assertNotIn("secret", line)

    def test_a_state_file_that_is_none(self):
        path = self.directory / "state" / state_file.NAME
        path.parent.mkdir()
        for facts in ([], "text", {"transport_url": 5}, {"transport_url": self.url}):
            path.write_text(json.dumps(facts))
            with path.open() as locked:
                # As a running service does.
                fcntl.flock(locked, fcntl.LOCK_EX)
                self.refused("placement-rpc", "ping", code=3, words=("no service runs",))


class DebugTest(ProgramTest):

    def test_the_traceback_and_the_log_are_shown_on_request(self):
        done = self.run_program("placement-rpc-manage", "--debug", "--database",
                                f"mysql+pymysql://u:secret@127.0.0.1:{self.port}/x",
                                "db", "version")
        self.assertEqual(1, done.returncode)
        self.assertIn("Traceback", done.stderr)
        self.assertTrue(done.stderr.splitlines()[-1].startswith("placement-rpc-manage: "))
        self.assertNotIn("secret", done.stderr)

    def test_an_error_that_nobody_expected(self):
        program = (
            "import sys; from placement_rpc.cmd import manage, output; "
            "output.show = lambda *_: 1 / 0; "
            "sys.exit(manage.main(sys.argv[1:]))")
        store = self.useFixture(placement_fixtures.Store())
        for debug in ((), ("--debug",)):
            done = subprocess.run(
                [sys.executable, "-c", program, *debug, "--database",
                 store.conf.database.connection, "outbox", "status"],
                check=False, capture_output=True, text=True, cwd=_ROOT, timeout=120)
            self.assertEqual(1, done.returncode)
            *before, last = done.stderr.splitlines()
            self.assertEqual("placement-rpc-manage: unexpected error: ZeroDivisionError: division "
                             "by zero; --debug shows the traceback", last)
            self.assertEqual(bool(debug), "Traceback (most recent call last):" in before)
            if not debug:
                self.assertEqual([], before)


class AuditLogTest(ProgramTest):

    def audit_log(self, file):
        return self.refused("placement-rpc-manage", "--transport-url", self.url, "audit-log",
                            "--file", file, "--idle", "1", code=1)

    def test_a_file_that_cannot_be_written(self):
        """Before an event is taken from the queue, which would become a dead letter."""
        self.assertIn("nowhere", self.audit_log(f"{self.directory}/nowhere/audit.log"))

    def test_a_broker_that_is_away(self):
        self.assertIn("refused", self.audit_log(f"{self.directory}/audit.log"))

    def test_it_says_so_while_it_waits_for_the_broker(self):
        program = self.start_program(
            "placement-rpc-manage", "--transport-url", self.url, "audit-log", "--file",
            f"{self.directory}/audit.log")
        self.addCleanup(program.communicate)
        self.addCleanup(program.terminate)
        self.assertIn("no connection to the broker", program.stderr.readline())


class UsageTest(ProgramTest):

    def test_values_that_are_none(self):
        for arguments in (("ping", "--timeout", "-1"), ("ping", "--timeout", "nan"),
                          ("providers", "--limit", "0"), ("listen", "--from", "now"),
                          ("usage-report", "--from", "9999-12-31T23:59:59-23:00"),
                          ("listen", "--from", "0"), ("listen", "--provider", "node-1"),
                          ("standalone", "--http-port", "99999"), ("pony",)):
            done = self.run_program("placement-rpc", *arguments)
            self.assertEqual(2, done.returncode, arguments)
            self.assertIn("error: ", done.stderr.splitlines()[-1])
            self.assertNotIn("Traceback", done.stderr)
            # What a type of argument is called in the code is of no help.
            self.assertNotIn("value: ", done.stderr)

    def test_values_that_would_change_more_than_was_meant(self):
        store = self.useFixture(placement_fixtures.Store())
        database = store.conf.database.connection
        for arguments in (("--database", database, "outbox", "prune", "--older-than", "-1"),
                          ("--database", database, "outbox", "prune", "--older-than", "9" * 18),
                          ("--database", database, "outbox", "replay", "--provider", "node-1"),
                          ("--database", "", "db", "sync"),
                          ("--transport-url", "", "dead-letters", "discard", "--all")):
            done = self.run_program("placement-rpc-manage", *arguments)
            self.assertEqual(2, done.returncode, arguments)
            self.assertIn("error: argument", done.stderr.splitlines()[-1])
        self.assertEqual([], list(self.directory.iterdir()))


class StreamsTest(ProgramTest):
    """Standard streams that are closed, or of a narrow encoding."""

    def shell(self, name, redirection, *arguments, **variables):
        command, how = self.command(name, *arguments)
        done = subprocess.run(
            f"{shlex.join(command)} {redirection}", shell=True, check=False,
            capture_output=True, timeout=120, **{
                **how, "stdin": None, "env": {**how["env"], **variables}})
        self.assertNotIn("unexpected error", done.stderr)
        return done

    def database(self):
        return self.useFixture(placement_fixtures.Store()).conf.database.connection

    def test_a_closed_one_is_like_the_null_device(self):
        for redirection, arguments in (
                (">&-", ("upgrade", "status")), (">&-", ("outbox", "status")),
                ("<&-", ("compute-nodes", "import"))):
            done = self.shell("placement-rpc-manage", redirection, "--database",
                              self.database(), *arguments)
            self.assertEqual((0, ""), (done.returncode, done.stderr), arguments)

    def test_no_error_goes_among_the_results(self):
        done = self.shell("placement-rpc", "2>&-", "--transport-url", self.url, "ping",
                          "--timeout", "1")
        self.assertEqual((3, ""), (done.returncode, done.stdout))

    def file_of_store(self):
        """Return a configuration file with the address of a store that has a provider."""
        running = self.useFixture(placement_fixtures.RunningService("local"))
        running.api.create_provider(None, "n\xf6de")
        return self.file("db.conf", "[database]\nconnection = "
                         f"{running.conf.database.connection}\n")

    def test_a_pipe_that_its_reader_has_closed_ends_a_program(self):
        file = self.file_of_store()
        for style in ("json", "table"):
            command, how = self.command("placement-rpc", "--config-file", file, "--local",
                                        "providers", "--format", style)
            reader, writer = os.pipe()
            os.close(reader)
            with os.fdopen(writer, "w") as output:
                done = subprocess.run(command, check=False, stdout=output,
                                      stderr=subprocess.PIPE, timeout=120, **how)
            self.assertEqual((141, ""), (done.returncode, done.stderr), style)

    def test_yaml_of_an_encoding_that_lacks_a_character_is_read_as_what_it_was(self):
        running = self.useFixture(placement_fixtures.RunningService("local"))
        provider = running.api.create_provider(None, "a").uuid
        running.api.set_inventory(None, provider, [base.inventory("VCPU", 8)])
        running.api.claim_allocations(None, base.claim(
            {provider: {"VCPU": 1}}, project_id="pr\xf8ject"))
        file = self.file("db.conf", "[database]\nconnection = "
                         f"{running.conf.database.connection}\n")
        done = self.shell("placement-rpc", "", "--config-file", file, "--local", "usage-report",
                          "--from", "2020-01-01", "--format", "yaml", PYTHONIOENCODING="ascii")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual({"pr\xf8ject"}, {
            line["project_id"] for line in yaml.safe_load(done.stdout)["lines"]})

    def test_characters_that_an_encoding_lacks_are_escaped(self):
        file = self.file_of_store()
        for style in ("yaml", "csv", "table"):
            done = self.shell("placement-rpc", "", "--config-file", file, "--local", "providers",
                              "--format", style, PYTHONIOENCODING="ascii")
            self.assertEqual((0, ""), (done.returncode, done.stderr))
            self.assertIn("n\\xf6de", done.stdout.lower())
