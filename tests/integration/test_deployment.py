# SPDX-License-Identifier: Apache-2.0
"""The files of ``etc/`` in the programs that they are for."""

import grp
import json
import os
import pathlib
import pwd
import shlex
import shutil
import signal
import sys

import requests
import testscenarios

from placement_rpc import api
from placement_rpc.db.queries import services
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers
from tests.integration import machine
from tests.integration.deployment import (
    ADDRESS,
    API,
    CONDUCTOR,
    UWSGI,
    DeploymentCase,
    configured,
    run,
)


class UnitTest(base.TestCase):
    """What systemd says of the units."""

    units = (CONDUCTOR, API)

    def setUp(self):
        super().setUp()
        self.machine = self.useFixture(machine.Machine())
        self.root = self.machine.path("/")
        for name in ("placement-rpc-conductor", "gunicorn", "uwsgi"):
            self.executable(f"/opt/placement-rpc/bin/{name}")
        self.executable("/bin/kill")
        self.executable("/bin/sh")
        self.directory = self.machine.path("/etc/systemd/system")
        self.directory.mkdir(parents=True)
        # Units that every system has.
        for name in ("network-online", "network", "multi-user", "sysinit", "basic", "shutdown"):
            (self.directory / f"{name}.target").write_text("[Unit]\nDefaultDependencies=no\n")
        for name in self.units:
            shutil.copy(machine.ETC / name, self.directory)

    def executable(self, path):
        path = self.machine.path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)

    def verify(self, name):
        return run("systemd-analyze", "verify", "--man=no", f"--root={self.root}",
                   f"/etc/systemd/system/{pathlib.Path(name).name}")

    def test_they_are_valid(self):
        for name in self.units:
            done = self.verify(name)
            self.assertEqual((0, ""), (done.returncode, done.stdout), name)
        drop_ins = self.directory / pathlib.Path(UWSGI).parent.name
        drop_ins.mkdir()
        shutil.copy(machine.ETC / UWSGI, drop_ins)
        done = self.verify(API)
        self.assertEqual((0, ""), (done.returncode, done.stdout), UWSGI)
        # What is not valid is found.
        self.machine.path("/opt/placement-rpc/bin/uwsgi").unlink()
        self.assertIn("uwsgi", self.verify(API).stdout)
        (drop_ins / "more.conf").write_text("[Service]\nNoSuchDirective=yes\n")
        self.assertIn("NoSuchDirective", self.verify(API).stdout)

    def test_they_have_few_rights(self):
        for name in self.units:
            done = run("systemd-analyze", "security", "--offline=yes", "--threshold=25",
                       str(machine.ETC / name))
            self.assertEqual(0, done.returncode, done.stdout)

    def test_their_user(self):
        done = run("systemd-sysusers", f"--root={self.root}", "-",
                   stdin=(machine.ETC / "systemd/placement-rpc.sysusers.conf").open())
        self.assertEqual(0, done.returncode, done.stdout)
        users = self.machine.path("/etc/passwd").read_text()
        self.assertRegex(users, r"(?m)^placement-rpc:.*:/var/lib/placement-rpc:")
        for name in self.units:
            self.assertIn("\nUser=placement-rpc\n", (machine.ETC / name).read_text())


class ConductorTest(DeploymentCase):
    """The conductor as its unit runs it, configured by a directory."""

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(servers.VirtualHost())
        self.machine = self.useFixture(machine.Machine())
        directory = self.machine.path("/etc/placement-rpc/placement-rpc.conf.d")
        directory.mkdir()
        self.log = self.machine.path("/var/log/placement-rpc/conductor.log")
        for name, text in (
                ("10-common.conf", configured(
                    DEFAULT={"log_file": self.log, "transport_url": self.broker.url},
                    conductor={"workers": 7, "threads": 4},
                    database={"connection": servers.new_database("postgresql")})),
                ("90-host.conf", configured(conductor={"workers": 1}))):
            (directory / name).write_text(text)
        self.running = self.machine.start(
            [*self.machine.command(CONDUCTOR), "--config-dir", str(directory)])
        self.api = api.PlacementAPI(transport_url=self.broker.url)
        self.addCleanup(self.api.close)

    def test_it_is_ready_when_it_says_so(self):
        self.api.ping(None, timeout=5)
        services_found = self.api.get_versions(None).objects
        self.assertEqual([0], [each.worker for each in services_found])
        self.machine.reload(self.running, CONDUCTOR)
        base.wait_until(lambda: self.log.read_text().count("answers calls") == 2)
        self.api.ping(None, timeout=5)
        self.running.process.send_signal(signal.SIGTERM)
        self.assertEqual(0, self.running.process.wait(60), self.running.said())

    def test_its_log_is_rotated(self):
        self.assertIn("answers calls", self.log.read_text())
        rotated = Rotation(self.machine).run(self.log)
        self.assertIn("answers calls", rotated.read_text())
        self.assertEqual("", self.log.read_text())
        self.machine.reload(self.running, CONDUCTOR)
        base.wait_until(lambda: "Reloading" in self.log.read_text())
        self.assertNotIn("Reloading", rotated.read_text())
        self.assertEqual(0o600, self.log.stat().st_mode & 0o777)


class ContainerTest(DeploymentCase):
    """The commands and the directory of configuration files of kolla's containers."""

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(servers.VirtualHost())
        self.machine = self.useFixture(machine.Machine())
        self.port = machine.free_port()
        self.machine.install("gunicorn/gunicorn.conf.py", "/etc/placement-rpc/gunicorn.conf.py",
                             {ADDRESS: f"127.0.0.1:{self.port}"})
        self.directory = self.machine.path("/etc/placement-rpc/placement-rpc.conf.d")
        shutil.copytree(machine.ETC / "kolla/placement-rpc.conf.d", self.directory)
        # Read last: in place of servers that are not there.
        (self.directory / "99-test.conf").write_text(configured(
            DEFAULT={"transport_url": self.broker.url, "log_dir": self.directory.parent},
            api={"auth_strategy": "noauth2"}, conductor={"workers": 1},
            database={"connection": servers.new_empty_database("mariadb")},
            oslo_policy={"policy_file": "policy.yaml"}))

    def start(self, name):
        """Start what a container runs, after checking what it copies."""
        container = json.loads((machine.ETC / f"kolla/{name}.json").read_text())
        for each in container["config_files"]:
            self.assertEqual({"source", "dest", "owner", "perm"}, set(each) - {"optional"})
            self.assertTrue(each["source"].startswith("/var/lib/kolla/config_files/"))
            self.assertTrue(each["dest"].startswith("/etc/placement-rpc/"))
        program, *arguments = shlex.split(
            self.machine.local(container["command"].replace(
                "/var/log/kolla/placement-rpc", "/var/log/placement-rpc").replace(
                    "/tmp/placement-rpc-api.pid", "/run/placement-rpc-api/api.pid")))
        return self.machine.start([f"{os.path.dirname(sys.executable)}/{program}", *arguments])

    def run_program(self, name, *arguments):
        done = run(f"{os.path.dirname(sys.executable)}/{name}", "--config-dir",
                   str(self.directory), *arguments, env={
                       **os.environ, "PYTHONWARNINGS": "ignore"})
        self.assertEqual(0, done.returncode, done.stdout)
        return done.stdout

    def test_every_program_reads_the_directory(self):
        self.assertIn("The schema is at", self.run_program("placement-rpc-manage", "db", "sync"))
        self.start("placement-rpc-conductor")
        self.start("placement-rpc-api")
        found, = json.loads(self.run_program("placement-rpc", "services"))
        # From the file of the machine, and from the last one.
        self.assertEqual(("control1", 0), (found["host"], found["worker"]))
        self.assertIn("control1", self.run_program("placement-rpc", "ping"))
        self.assertIn("Success", self.run_program(
            "placement-rpc-status", "upgrade", "check"))
        answer = requests.get(f"http://127.0.0.1:{self.port}/resource_providers", timeout=30,
                              headers={"x-auth-token": "admin"})
        self.assertEqual({"resource_providers": []}, answer.json())
        self.assertIn("placement-rpc-api", self.run_program("placement-rpc", "services"))


class Rotation:
    """logrotate with the file of ``etc/``, as this user."""

    def __init__(self, where):
        self._state = where.path("/var/lib/logrotate.status")
        names = f"{pwd.getpwuid(os.getuid()).pw_name} {grp.getgrgid(os.getgid()).gr_name}"
        self._path = where.install("logrotate/placement-rpc", "/etc/logrotate.d/placement-rpc", {
            "placement-rpc placement-rpc": names})
        self._path.chmod(0o644)

    def run(self, log):
        """Rotate; return the path of what was the log.

        :raises RuntimeError: with what logrotate printed
        """
        done = run(machine.program("logrotate"), "--force", "--state", str(self._state),
                   str(self._path))
        if done.returncode or done.stdout:
            raise RuntimeError(done.stdout)
        found, = log.parent.glob(f"{log.name}-*")
        return found


class ServerTest(testscenarios.WithScenarios, DeploymentCase):
    """The HTTP facade as its unit runs it."""

    # Each says in its log that it has replaced all processes, or "" if it can be stopped before.
    scenarios = [("gunicorn", {"units": (API,), "reloaded": "", "installed": (
                      "gunicorn/gunicorn.conf.py", "/etc/placement-rpc/gunicorn.conf.py")}),
                 ("uWSGI", {"units": (API, UWSGI), "reloaded": "chain reloading complete",
                            "installed": ("uwsgi/uwsgi.ini", "/etc/placement-rpc/uwsgi.ini")})]

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(placement_fixtures.Store(
            servers.new_database("postgresql")))
        self.machine = self.useFixture(machine.Machine())
        self.configuration = self.machine.path("/etc/placement-rpc/placement-rpc.conf")
        self.configure(max_waiting=8)
        port = machine.free_port()
        self.machine.install(*self.installed, {ADDRESS: f"127.0.0.1:{port}"})
        self.url = f"http://127.0.0.1:{port}"
        self.access_log = self.machine.path("/var/log/placement-rpc/access.log")
        self.running = self.machine.start(
            self.machine.command(*self.units), PLACEMENT_RPC_CONF=str(self.configuration))

    def configure(self, **options):
        self.configuration.write_text(configured(
            DEFAULT={"log_file": self.machine.path("/var/log/placement-rpc/api.log")},
            api={"auth_strategy": "noauth2", **options}, conductor={"report_interval": 1},
            database={"connection": self.store.conf.database.connection}))

    def get(self, path, **headers):
        return requests.get(self.url + path, timeout=30, headers={
            "x-auth-token": "admin", "openstack-api-version": "placement 1.36", **headers})

    def heartbeats(self):
        with self.store.database.reader() as tx:
            return [row.worker for row in services.everyone(tx)
                    if row.binary == "placement-rpc-api"]

    def waiting_is_refused(self):
        """Whether a process answers that it lets no request wait for events."""
        return self.get("/events?after=now&wait=1").status_code == 503

    def test_a_working_day(self):
        self.assertEqual(200, self.get("/healthcheck").status_code)
        # Long queries: 500 aggregates.
        long = "/resource_providers?member_of=in:" + ",".join(
            base.new_uuid() for _ in range(500))
        self.assertEqual(200, self.get(long).status_code)
        self.assertEqual(401, self.get("/resource_providers", **{"x-auth-token": None}
                                       ).status_code)
        answer = self.get("/allocation_candidates?resources=VCPU:1")
        self.assertEqual({"allocation_requests": [], "provider_summaries": {}}, answer.json())
        self.assertNotEqual([], self.heartbeats())
        self.assertFalse(self.waiting_is_refused())
        # No request fails while the processes are replaced.
        self.configure(max_waiting=0)
        self.machine.reload(self.running, *self.units)
        base.wait_until(lambda: all(self.waiting_is_refused() for _ in range(6)))
        base.wait_until(lambda: self.reloaded in self.access_log.read_text())
        self.running.process.send_signal(signal.SIGTERM)
        self.assertEqual(0, self.running.process.wait(60), self.running.said())
        self.assertEqual([], self.heartbeats(), self.running.said())

    def test_its_log_is_rotated(self):
        rotation = Rotation(self.machine)
        for number in range(5):
            self.get(f"/resource_providers?name=before{number}")
        base.wait_until(lambda: self.access_log.read_text().count("?name=before") == 5)
        rotated = rotation.run(self.access_log)

        def is_reopened():
            self.get("/resource_providers?name=between")
            return "?name=between" in self.access_log.read_text()

        base.wait_until(is_reopened)
        for number in range(5):
            self.get(f"/resource_providers?name=after{number}")
        base.wait_until(lambda: self.access_log.read_text().count("?name=after") == 5)
        self.assertEqual((5, 0), tuple(
            rotated.read_text().count(word) for word in ("?name=before", "?name=after")))
        lines = [line for line in self.access_log.read_text().splitlines()
                 if "?name=after" in line]
        for line in lines:
            self.assertRegex(line, r'^127\.0\.0\.1 - - \[[^]]+\] '
                                   r'"GET /resource_providers\?name=after\d HTTP/1.1" 200 \d+ '
                                   r'"[^"]*" "python-requests[^"]*" placement 1\.36 .*[\d.]+$')
