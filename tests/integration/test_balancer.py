# SPDX-License-Identifier: Apache-2.0
"""HAProxy in front of HTTP facades, with the file of ``etc/``."""

import contextlib
import json
import threading
from http import client, server

import fixtures
import requests

from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers
from tests.integration import machine
from tests.integration.deployment import ADDRESS, API, DeploymentCase, configured, run
from tests.integration.haproxy import HAProxy

# Headers in which a client names an address that is not its own.
FORGED = {"Forwarded": "for=192.0.2.9;host=elsewhere.example;proto=ftp",
          "X-Forwarded-For": "192.0.2.9", "X-Forwarded-Host": "elsewhere.example",
          "X-Forwarded-Port": "99", "X-Forwarded-Prefix": "/elsewhere",
          "X-Forwarded-Proto": "ftp"}


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
            oslo_middleware={"enable_proxy_headers_parsing": True},
            database={"connection": self.store.conf.database.connection},
            healthcheck={"backends": "disable_by_file",
                         "disable_by_file_path": self.disabling(number)}))
        where.install("gunicorn/gunicorn.conf.py", "/etc/placement-rpc/gunicorn.conf.py", {
            ADDRESS: self.addresses[number], "workers = 2": "workers = 1"})
        running = where.start(where.command(API), PLACEMENT_RPC_CONF=str(
            where.path("/etc/placement-rpc/placement-rpc.conf")))
        # Ready, so that it answers at once.
        requests.get(f"http://{self.addresses[number]}/healthcheck", timeout=60).raise_for_status()
        return running


class BalancerFileTest(base.TestCase):

    def test_haproxy_has_nothing_to_say_about_them(self):
        for name in ("haproxy.cfg", "galera.cfg"):
            done = run(machine.program("haproxy"), "-c", "-f",
                       str(machine.ETC / "haproxy" / name))
            self.assertEqual((0, "Configuration file is valid\n"),
                             (done.returncode, done.stdout))


class _Echo(server.BaseHTTPRequestHandler):
    """Answers with the headers of each request."""

    def do_GET(self):
        body = json.dumps({name.lower().replace("_", "-"): self.headers.get_all(name)
                           for name in self.headers}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        pass


class BelievedTest(DeploymentCase):
    """What HAProxy passes on to a server that is less strict than gunicorn, as uWSGI is."""

    def setUp(self):
        super().setUp()
        echo = server.ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
        self.addCleanup(echo.server_close)
        self.addCleanup(echo.shutdown)
        threading.Thread(target=echo.serve_forever, daemon=True).start()
        self.proxy = self.useFixture(HAProxy("haproxy/haproxy.cfg", ADDRESS, dict.fromkeys(
            ("192.0.2.11:8778", "192.0.2.12:8778"), f"127.0.0.1:{echo.server_port}"), "facade"))
        self.proxy.wait_for("UP", "UP")

    def get(self, path, headers):
        connection = client.HTTPConnection("127.0.0.1", self.proxy.port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def test_no_header_is_a_clients(self):
        for name, value in FORGED.items():
            for spelling in (name, name.upper(), name.replace("-", "_"),
                             name.replace("-", "_", 1)):
                _, body = self.get("/", {spelling: value})
                found = json.loads(body)
                self.assertEqual((["127.0.0.1"], ["http"]), (
                    found.pop("x-forwarded-for"), found.pop("x-forwarded-proto")), spelling)
                self.assertNotIn(name.lower(), found)

    def test_metrics_are_denied_in_any_spelling(self):
        for path in ("/metrics", "/%6detrics", "/metric%73", "/./metrics", "/x/../metrics",
                     "//metrics", "/metrics?a=b", "/%2e/metrics", "/x/%2e%2e/metrics"):
            self.assertEqual(403, self.get(path, {})[0], path)
        self.assertEqual(200, self.get("/resource_providers", {})[0])


class BalancerTest(DeploymentCase):
    """HAProxy in front of two facades, of which one dies."""

    def setUp(self):
        super().setUp()
        self.facades = self.useFixture(Facades(2))
        self.proxy = self.useFixture(HAProxy("haproxy/haproxy.cfg", ADDRESS, dict(zip(
            ("192.0.2.11:8778", "192.0.2.12:8778"), self.facades.addresses, strict=True)),
            "facade"))
        self.proxy.wait_for("UP", "UP")

    def send(self, method, path, json=None, **headers):
        return requests.request(
            method, f"http://127.0.0.1:{self.proxy.port}{path}", timeout=60, json=json, headers={
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
        claimed = {consumer for each in workers for consumer in each.claimed}
        # No balancer can take back the beginning of an answer: of those under way at the kill.
        cut_off = {consumer for each in workers for consumer in each.cut_off}
        self.assertLessEqual(len(cut_off), len(workers))
        found = set(self.send("GET", f"/resource_providers/{provider}/allocations").json()[
            "allocations"])
        self.assertLessEqual(claimed, found)
        self.assertLessEqual(found, claimed | cut_off)

    def test_clients_cannot_choose_the_addresses_that_facades_believe(self):
        for name, value in FORGED.items():
            location = self.send("POST", "/resource_providers", json={
                "name": name}, **{name: value, "openstack-api-version": "placement 1.19"}).headers[
                    "location"]
            self.assertTrue(location.startswith(
                f"http://127.0.0.1:{self.proxy.port}/resource_providers/"), (name, location))
        for each in self.facades.machines:
            self.assertNotIn("192.0.2.9", each.path(
                "/var/log/placement-rpc/access.log").read_text())

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
        self.claimed, self.failed, self.cut_off = [], [], []

    def run(self):
        while not self._ended.is_set():
            consumer = base.new_uuid()
            try:
                answers = [self._claim(consumer),
                           self._test.send("GET", f"/allocations/{consumer}")]
            except requests.exceptions.ChunkedEncodingError:
                self.cut_off.append(consumer)
                continue
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
