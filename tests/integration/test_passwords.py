# SPDX-License-Identifier: Apache-2.0
"""Passwords with special characters work in every program, and no program shows one."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import threading
import urllib.parse

import fixtures

from placement_rpc import api, exception
from placement_rpc import conf as configuration
from placement_rpc.notifications import listener
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers

_PASSWORD = "s3cr/t@of:the%41,bro#ker?+ ;&="
#: Every form and every part in which the password could be shown.
_SHOWN = (_PASSWORD, urllib.parse.quote(_PASSWORD), urllib.parse.quote(_PASSWORD, safe=""),
          "s3cr", "bro#ker", "bro%23ker")


class PasswordTest(base.TestCase):

    time_limit = 240

    def setUp(self):
        super().setUp()
        self.host = self.useFixture(servers.VirtualHost())
        self.user = f"user/{base.new_uuid()}"
        self.host.rabbitmqctl_as_is("add_user", self.user, _PASSWORD)
        self.host.rabbitmqctl_as_is("set_user_tags", self.user, "monitoring")
        self.host.rabbitmqctl("set_permissions", self.user, ".*", ".*", ".*")
        self.addCleanup(self.host.rabbitmqctl_as_is, "delete_user", self.user)
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def url(self, password=_PASSWORD):
        account = ":".join(urllib.parse.quote(each, safe="") for each in (self.user, password))
        return f"rabbit://{account}@127.0.0.1:{self.host.port}/{servers.name_of(self.host.url)}"

    def file(self, password=_PASSWORD):
        """Return the path of a configuration file with everything in the log that there is."""
        store = self.useFixture(placement_fixtures.Store())
        management = urllib.parse.urlsplit(self.host.management_url)
        account = self.url(password).partition("//")[2].partition("@")[0]
        path = self.directory / "placement-rpc.conf"
        # In a configuration file, $ begins a reference; % does not.
        path.write_text(
            f"[DEFAULT]\ntransport_url = {self.url(password)}\ndebug = true\n"
            "default_log_levels = amqp=DEBUG,kombu=DEBUG,oslo.messaging=DEBUG\n"
            f"[database]\nconnection = {store.conf.database.connection}\n"
            f"[queues]\nmanagement_url = http://{account}@{management.hostname}:"
            f"{management.port}\n[conductor]\nworkers = 1\n[notifications]\nsnapshot_period = 0\n")
        return str(path)

    def assert_not_shown(self, text):
        for each in _SHOWN:
            self.assertNotIn(each, text)

    def run_program(self, program, *arguments, codes=(0,)):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", f"placement_rpc.cmd.{program}", *arguments],
            check=False, capture_output=True, text=True, timeout=90)
        self.assert_not_shown(done.stdout + done.stderr)
        self.assertIn(done.returncode, codes, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def start(self, program, *arguments):
        """Start a program; return its process and the list of lines that it prints."""
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", f"placement_rpc.cmd.{program}", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = []
        thread = threading.Thread(target=lambda: lines.extend(process.stdout))
        thread.start()
        self.addCleanup(process.stdout.close)
        self.addCleanup(thread.join, 60)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def end():
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            thread.join(60)
            return "".join(lines)

        return end

    def test_every_program_works_with_it(self):
        path = self.file()
        end = self.start("conductor", "--config-file", path)
        here = ("--config-file", path)
        self.assertIn('"pid"', self.run_program("main", *here, "ping", "--timeout", "60"))
        with api.PlacementAPI(conf=configuration.new_config(config_files=[path])) as client:
            client.create_provider(None, "a provider")
        self.assertIn("resource_provider.create", self.run_program(
            "main", *here, "listen", "--from", "1", "--count", "1"))
        self.assertIn('"kind": "stream"', self.run_program(
            "manage", *here, "broker", "check", codes=(0, 1)))
        self.run_program("manage", *here, "dead-letters", "list")
        self.run_program("status", *here, "upgrade", "check", codes=(0, 1))
        said = end()
        self.assertIn("answers calls", said)
        self.assert_not_shown(said)

    def test_the_whole_service_in_one_program(self):
        state_dir = str(self.directory / "state")
        end = self.start("main", "--state-dir", state_dir, "--transport-url", self.url(),
                         "standalone", "--http-port", "0")
        base.wait_until(pathlib.Path(state_dir, "service.json").exists)
        self.assertIn('"pid"', self.run_program("main", "--state-dir", state_dir, "ping"))
        said = end()
        self.assertIn(f"RabbitMQ at 127.0.0.1:{self.host.port}", said)
        self.assert_not_shown(said)
        self.assert_not_shown(pathlib.Path(state_dir, "placement-rpc.log").read_text())

    def test_one_that_is_refused(self):
        """Neither the log nor an error shows what was tried."""
        path = self.file(f"{_PASSWORD}!")
        here = ("--config-file", path)
        end = self.start("conductor", *here)
        self.run_program("main", *here, "ping", "--timeout", "3", codes=(3,))
        self.run_program("main", *here, "listen", "--idle", "1", codes=(0, 3))
        self.run_program("manage", *here, "broker", "check", codes=(1,))
        self.run_program("manage", *here, "dead-letters", "list", codes=(1,))
        said = end()
        self.assertIn("no connection to the broker", said)
        self.assert_not_shown(said)
        conf = configuration.new_config(config_files=[path])
        with api.PlacementAPI(conf=conf) as client:
            for call in (lambda: client.ping(None, timeout=2),
                         lambda: client.claim_allocations(
                             None, base.claim({base.new_uuid(): {"VCPU": 1}}), cast=True,
                             timeout=2)):
                error = self.assertRaises(exception.PlacementException, call)
                self.assert_not_shown(
                    f"{error} {error!r} {error.__cause__!r} {json.dumps(error.kwargs)}")
        queue = listener.QueueListener(conf, "billing", lambda event: None)
        queue.run(idle=1)
        self.assertIn("no connection to the broker", self.log.output)
        self.assert_not_shown(self.log.output)

    def test_one_that_is_not_encoded(self):
        path = pathlib.Path(self.file())
        path.write_text(re.sub(
            "rabbit://.*", lambda _: f"rabbit://user:{_PASSWORD}@127.0.0.1/", path.read_text()))
        for program, *arguments in (("conductor",), ("main", "ping"), ("main", "listen"),
                                    ("manage", "broker", "check"),
                                    ("manage", "dead-letters", "list")):
            said = self.run_program(
                program, "--config-file", str(path), *arguments, codes=(1, 2, 3))
            self.assertIn("percent-encoded", said)
        self.assertIn("percent-encoded", self.run_program(
            "status", "--config-file", str(path), "upgrade", "check", codes=(2,)))
