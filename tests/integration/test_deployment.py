# SPDX-License-Identifier: Apache-2.0
"""The files of ``etc/`` in the programs that they are for."""

import csv
import grp
import json
import os
import pathlib
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading

import fixtures
import requests
import testscenarios

from placement_rpc import api
from placement_rpc.db.queries import services
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers
from tests.integration import machine

_CONDUCTOR = "systemd/placement-rpc-conductor.service"
_API = "systemd/placement-rpc-api.service"
_UWSGI = "systemd/placement-rpc-api.service.d/uwsgi.conf"
_ADDRESS = "0.0.0.0:8778"


def run(*command, **how):
    """Run a program; return :class:`subprocess.CompletedProcess` with its whole output."""
    return subprocess.run(command, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **how)


def configured(**groups):
    """Return a configuration file with options by group."""
    return "".join(f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in each.items())
                   for group, each in groups.items())


class DeploymentCase(base.TestCase):

    # Of a machine that runs much else, on which a program takes seconds to start.
    time_limit = 300


class UnitTest(base.TestCase):
    """What systemd says of the units."""

    units = (_CONDUCTOR, _API)

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
        drop_ins = self.directory / pathlib.Path(_UWSGI).parent.name
        drop_ins.mkdir()
        shutil.copy(machine.ETC / _UWSGI, drop_ins)
        done = self.verify(_API)
        self.assertEqual((0, ""), (done.returncode, done.stdout), _UWSGI)
        # What is not valid is found.
        self.machine.path("/opt/placement-rpc/bin/uwsgi").unlink()
        self.assertIn("uwsgi", self.verify(_API).stdout)
        (drop_ins / "more.conf").write_text("[Service]\nNoSuchDirective=yes\n")
        self.assertIn("NoSuchDirective", self.verify(_API).stdout)

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
            [*self.machine.command(_CONDUCTOR), "--config-dir", str(directory)])
        self.api = api.PlacementAPI(transport_url=self.broker.url)
        self.addCleanup(self.api.close)

    def test_it_is_ready_when_it_says_so(self):
        self.api.ping(None, timeout=5)
        services_found = self.api.get_versions(None).objects
        self.assertEqual([0], [each.worker for each in services_found])
        self.machine.reload(self.running, _CONDUCTOR)
        base.wait_until(lambda: self.log.read_text().count("answers calls") == 2)
        self.api.ping(None, timeout=5)
        self.running.process.send_signal(signal.SIGTERM)
        self.assertEqual(0, self.running.process.wait(60), self.running.said())

    def test_its_log_is_rotated(self):
        self.assertIn("answers calls", self.log.read_text())
        rotated = Rotation(self.machine).run(self.log)
        self.assertIn("answers calls", rotated.read_text())
        self.assertFalse(self.log.exists())
        self.machine.reload(self.running, _CONDUCTOR)
        base.wait_until(lambda: self.log.exists() and "Reloading" in self.log.read_text())
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
                             {_ADDRESS: f"127.0.0.1:{self.port}"})
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
        names = f"su {pwd.getpwuid(os.getuid()).pw_name} {grp.getgrgid(os.getgid()).gr_name}"
        self._path = where.install("logrotate/placement-rpc", "/etc/logrotate.d/placement-rpc",
                                   {"su placement-rpc placement-rpc": names})
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


class Facades(fixtures.Fixture):
    """HTTP facades behind gunicorn, each started as its unit does, on one store.

    :param number: int, how many
    """

    def __init__(self, number):
        super().__init__()
        self._number = number

    def _setUp(self):
        self.store = self.useFixture(placement_fixtures.Store(
            servers.new_database("postgresql")))
        self.addresses = [f"127.0.0.1:{machine.free_port()}" for _ in range(self._number)]
        self.machines = [self.useFixture(machine.Machine()) for _ in self.addresses]
        self.running = [self.start(number) for number in range(self._number)]

    def disabling(self, number):
        """Return the path of the file that takes a facade out of rotation."""
        return self.machines[number].path("/var/lib/placement-rpc/out")

    def start(self, number):
        """Start a facade; return :class:`tests.integration.machine.Running`."""
        where = self.machines[number]
        where.path("/etc/placement-rpc/placement-rpc.conf").write_text(configured(
            api={"auth_strategy": "noauth2"},
            database={"connection": self.store.conf.database.connection},
            healthcheck={"backends": "disable_by_file",
                         "disable_by_file_path": self.disabling(number)}))
        where.install("gunicorn/gunicorn.conf.py", "/etc/placement-rpc/gunicorn.conf.py", {
            _ADDRESS: self.addresses[number], "workers = 2": "workers = 1"})
        running = where.start(where.command(_API), PLACEMENT_RPC_CONF=str(
            where.path("/etc/placement-rpc/placement-rpc.conf")))
        # Ready, so that it answers at once.
        requests.get(f"http://{self.addresses[number]}/healthcheck", timeout=5).raise_for_status()
        return running


class Proxy(fixtures.Fixture):
    """HAProxy with the file of ``etc/`` in front of two addresses; ``url`` is where."""

    def __init__(self, addresses):
        super().__init__()
        self._addresses = addresses

    def _setUp(self):
        where = self.useFixture(machine.Machine())
        self._socket = where.path("/run/haproxy/placement-rpc.sock")
        port = machine.free_port()
        self.url = f"http://127.0.0.1:{port}"
        path = where.install("haproxy/haproxy.cfg", "/etc/haproxy/haproxy.cfg", {
            f"    bind {_ADDRESS}": f"    bind 127.0.0.1:{port}",
            "192.0.2.11:8778": self._addresses[0], "192.0.2.12:8778": self._addresses[1],
            "log /dev/log local0": "log stdout format raw local0",
            "maxconn 4000": "maxconn 200"})
        self._log = where.path("/run/haproxy/log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [machine.program("haproxy"), "-db", "-f", str(path)], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log)
        self.addCleanup(self._process.wait)
        self.addCleanup(self._process.kill)

    def states(self):
        """Return the state of each facade: UP or DOWN."""
        if not self._socket.exists():
            return None
        with socket.socket(socket.AF_UNIX) as asked:
            asked.connect(str(self._socket))
            asked.sendall(b"show stat\n")
            lines = asked.makefile().read().splitlines()
        return [row["status"].split()[0] for row in csv.DictReader(lines)
                if row["svname"].startswith("facade")]

    def wait_for(self, *states):
        base.wait_until(lambda: self._process.poll() is not None or (
            self.states() == list(states)), seconds=30, message=self._said)
        if self._process.poll() is not None:
            raise RuntimeError(self._said())

    def _said(self):
        return f"{self.states()}\n{self._log.read_text()}"


class BalancerFileTest(base.TestCase):

    def test_haproxy_has_nothing_to_say_about_it(self):
        done = run(machine.program("haproxy"), "-c", "-f",
                   str(machine.ETC / "haproxy/haproxy.cfg"))
        self.assertEqual((0, "Configuration file is valid\n"), (done.returncode, done.stdout))


class BalancerTest(DeploymentCase):
    """HAProxy in front of two facades, of which one dies."""

    def setUp(self):
        super().setUp()
        self.facades = self.useFixture(Facades(2))
        self.proxy = self.useFixture(Proxy(self.facades.addresses))
        self.proxy.wait_for("UP", "UP")

    def send(self, method, path, json=None, **headers):
        return requests.request(method, self.proxy.url + path, timeout=60, json=json, headers={
            "x-auth-token": "admin", "openstack-api-version": "placement 1.28", **headers})

    def test_one_dies(self):
        provider = base.new_uuid()
        self.assertEqual(200, self.send("POST", "/resource_providers", json={
            "name": "node", "uuid": provider}).status_code)
        self.assertEqual(200, self.send(
            "PUT", f"/resource_providers/{provider}/inventories", json={
                "resource_provider_generation": 0,
                "inventories": {"VCPU": {"total": 10000}}}).status_code)
        workers = [Worker(self, provider) for _ in range(4)]
        for each in workers:
            each.start()
        self.addCleanup(lambda: [each.end() for each in workers])
        base.wait_until(lambda: all(len(each.claimed) > 5 for each in workers), message=lambda: (
            str([each.failed for each in workers])))
        self.facades.running[0].kill()
        self.proxy.wait_for("DOWN", "UP")
        seen = [len(each.claimed) for each in workers]
        base.wait_until(lambda: all(
            len(each.claimed) > before + 5
            for each, before in zip(workers, seen, strict=True)))
        self.facades.start(0)
        self.proxy.wait_for("UP", "UP")
        for each in workers:
            each.end()
        self.assertEqual([], [each.failed for each in workers if each.failed])
        claimed = [consumer for each in workers for consumer in each.claimed]
        found = self.send("GET", f"/resource_providers/{provider}/allocations").json()
        self.assertEqual(set(claimed), set(found["allocations"]))

    def test_one_is_taken_out_of_rotation(self):
        self.facades.disabling(1).touch()
        self.proxy.wait_for("UP", "DOWN")
        self.assertEqual(200, self.send("GET", "/resource_providers").status_code)
        self.facades.disabling(1).unlink()
        self.proxy.wait_for("UP", "UP")
        # What clients see besides.
        self.assertEqual(403, self.send("GET", "/metrics").status_code)
        self.assertEqual(200, self.send("GET", "/resource_providers?member_of=in:" + ",".join(
            base.new_uuid() for _ in range(500))).status_code)
        self.assertEqual(200, self.send("GET", "/events?after=now&wait=2").status_code)


class Worker(threading.Thread):
    """A client that claims and reads, and repeats nothing."""

    def __init__(self, test, provider):
        super().__init__(daemon=True)
        self._test, self._provider = test, provider
        self._ended = threading.Event()
        self.claimed, self.failed = [], []

    def run(self):
        while not self._ended.is_set():
            consumer = base.new_uuid()
            try:
                answers = [self._claim(consumer),
                           self._test.send("GET", f"/allocations/{consumer}")]
            except requests.RequestException as error:
                self.failed.append(str(error))
                continue
            self.failed += [each.text for each in answers if not each.ok]
            self.claimed.append(consumer)

    def _claim(self, consumer):
        return self._test.send("PUT", f"/allocations/{consumer}", {
            "project_id": "ada", "user_id": "anna", "consumer_generation": None,
            "allocations": {self._provider: {"resources": {"VCPU": 1}}}},
            **{"idempotency-key": base.new_uuid()})

    def end(self):
        self._ended.set()
        self.join()


class ServerTest(testscenarios.WithScenarios, DeploymentCase):
    """The HTTP facade as its unit runs it."""

    scenarios = [("gunicorn", {"units": (_API,), "installed": (
                      "gunicorn/gunicorn.conf.py", "/etc/placement-rpc/gunicorn.conf.py")}),
                 ("uWSGI", {"units": (_API, _UWSGI), "installed": (
                     "uwsgi/uwsgi.ini", "/etc/placement-rpc/uwsgi.ini")})]

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(placement_fixtures.Store(
            servers.new_database("postgresql")))
        self.machine = self.useFixture(machine.Machine())
        self.configuration = self.machine.path("/etc/placement-rpc/placement-rpc.conf")
        self.configure(max_waiting=8)
        port = machine.free_port()
        self.machine.install(*self.installed, {_ADDRESS: f"127.0.0.1:{port}"})
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
        self.running.process.send_signal(signal.SIGTERM)
        self.assertEqual(0, self.running.process.wait(60), self.running.said())
        self.assertEqual([], self.heartbeats(), self.running.said())

    def test_its_log_is_rotated(self):
        rotation = Rotation(self.machine)
        for number in range(5):
            self.get(f"/resource_providers?name=before{number}")
        base.wait_until(lambda: self.access_log.read_text().count("?name=before") == 5)
        rotated = rotation.run(self.access_log)
        base.wait_until(self.access_log.exists)
        for number in range(5):
            self.get(f"/resource_providers?name=after{number}")
        base.wait_until(lambda: self.access_log.read_text().count("?name=after") == 5)
        self.assertEqual((5, 0), tuple(
            rotated.read_text().count(word) for word in ("?name=before", "?name=after")))
        lines = [line for line in self.access_log.read_text().splitlines() if "?name=" in line]
        for line in lines:
            self.assertRegex(line, r'^127\.0\.0\.1 - - \[[^]]+\] '
                                   r'"GET /resource_providers\?name=after\d HTTP/1.1" 200 \d+ '
                                   r'"[^"]*" "python-requests[^"]*" placement 1\.36 .*[\d.]+$')
