# SPDX-License-Identifier: Apache-2.0
"""A service on an encrypted bus: what works there, and what is said of mistakes."""

import contextlib
import json
import pathlib
import subprocess
import sys
import threading

import fixtures

from placement_rpc import api, exception
from placement_rpc import conf as configuration
from placement_rpc.amqp import topology
from placement_rpc.amqp.broker import Broker
from placement_rpc.notifications import listener
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, certificates, servers


class ServiceTest(base.TestCase):
    """A service and its programs on a bus that is encrypted."""

    time_limit = 180

    def setUp(self):
        super().setUp()
        self.host = self.useFixture(servers.VirtualHost())

    def service(self):
        return self.useFixture(placement_fixtures.RunningService(
            topic="placement", **self.host.over_tls()))

    def file(self, **options):
        """Return the path of a configuration file: for each group a dict."""
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "placement-rpc.conf")
        path.write_text("".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())
            for group, values in options.items()))
        return str(path)

    def over_tls(self, host="localhost", **options):
        """Return the path of a configuration file for the bus."""
        values = self.host.over_tls(host)
        return self.file(DEFAULT={"transport_url": values["transport_url"]},
                         oslo_messaging_rabbit={
                             "ssl": True, "ssl_ca_file": servers.shared().tls()["ca_file"]},
                         queues={"management_url": self.host.management_url}, **options)

    @staticmethod
    def run_program(program, *arguments):
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-m", f"placement_rpc.cmd.{program}", *arguments],
            check=False, capture_output=True, text=True, timeout=90)

    def test_every_connection_is_encrypted(self):
        running = self.service()
        client = running.api
        provider = client.create_provider(None, "over TLS").uuid
        client.set_inventory(None, provider, [base.inventory("VCPU", 10)])
        consumer = base.new_uuid()
        request = client.claim_allocations(
            None, base.claim({provider: {"VCPU": 1}}, consumer), cast=True)
        base.wait_until(lambda: client.get_allocations(None, consumer).objects,
                        message=lambda: f"{request} was not settled")
        events = []
        queue = listener.QueueListener(running.conf, "billing", events.append)
        self.addCleanup(queue.stop)
        thread = threading.Thread(target=queue.run, daemon=True)
        thread.start()
        stream = listener.StreamReader(Broker.of(running.conf), "placement_events", 1)
        self.assertEqual("resource_provider.create",
                         next(stream.events(idle=30)).event_type)
        base.wait_until(lambda: client.create_provider(None, base.new_uuid()) and events)
        rows = [line.split("\t") for line in self.host.rabbitmqctl_as_is(
            "-q", "list_connections", "vhost", "ssl").splitlines()]
        ours = [encrypted for host, encrypted in rows if host == servers.name_of(self.host.url)]
        self.assertGreater(len(ours), 5)
        self.assertEqual({"true"}, set(ours))
        queue.stop()
        thread.join(20)

    def test_the_checks_say_beforehand_what_would_fail(self):
        running = self.service()
        running.api.create_provider(None, "so that the queues are there")
        database = {"connection": running.conf.database.connection}
        named = self.over_tls(database=database)
        self.assertEqual(0, self.upgrade_check(named)["result"])
        done = self.run_program("manage", "--config-file", named, "broker", "check")
        self.assertEqual([], [row for row in json.loads(done.stdout) if row["kind"] == "node"])
        address = self.over_tls("127.0.0.1", database=database)
        found = self.upgrade_check(address)
        self.assertEqual(2, found["result"])
        self.assertIn("valid for localhost, rabbit.example, and not for 127.0.0.1",
                      found["details"])
        done = self.run_program("manage", "--config-file", address, "broker", "check")
        self.assertEqual(1, done.returncode, done.stderr)
        (row,) = json.loads(done.stdout)
        self.assertEqual("node", row["kind"])
        self.assertIn("not for 127.0.0.1", row["trouble"][0])
        self.assertIn("check_hostname = false", row["mend"][0])
        # Without the check they report the same, and all else too.
        unchecked = self.over_tls("127.0.0.1", database=database,
                                  broker={"check_hostname": False})
        self.assertEqual(1, self.upgrade_check(unchecked)["result"])
        rows = json.loads(self.run_program(
            "manage", "--config-file", unchecked, "broker", "check").stdout)
        self.assertLess(1, len(rows))
        # A port without TLS, and one where nothing listens.
        for port, words, result in ((self.host.port, "without TLS", 2),
                                    (1, "cannot be reached", 1)):
            url = self.host.over_tls()["transport_url"].replace(
                f":{servers.shared().tls()['port']}/", f":{port}/")
            found = self.upgrade_check(self.file(
                DEFAULT={"transport_url": url}, database=database,
                oslo_messaging_rabbit={"ssl": True}))
            self.assertEqual(result, found["result"], found)
            self.assertIn(words, found["details"])

    def upgrade_check(self, path):
        done = self.run_program("status", "--config-file", path, "upgrade", "check", "--json")
        return next(each for each in json.loads(done.stdout)["checks"]
                    if each["check"] == "Connections to the broker")

    def test_the_first_thing_that_is_logged_says_what_is_wrong(self):
        conf = configuration.new_config(config_files=[], **self.host.over_tls("127.0.0.1"))
        with api.PlacementAPI(conf=conf) as client:
            error = self.assertRaises(
                (exception.DeadlineExceeded, exception.ServiceUnavailable), client.ping, None,
                timeout=2)
        self.assertIn("certificate is not valid for '127.0.0.1'", str(error))
        first = self.log.output.splitlines()[0]
        self.assertIn("TLS with 127.0.0.1", first)
        self.assertIn("check_hostname", first)
        self.assertNotIn(self.host.url.split("@")[0].rpartition(":")[2], self.log.output)

    def test_a_conductor_that_cannot_connect_says_so_first(self):
        store = self.useFixture(placement_fixtures.Store())
        path = self.over_tls("127.0.0.1", database={
            "connection": store.conf.database.connection}, conductor={"workers": 1})
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.conductor",
             "--config-file", path], stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.terminate)
        lines = iter(process.stderr.readline, "")
        line = next(each for each in lines if " ERROR " in each or " WARNING " in each)
        self.assertIn(" ERROR ", line)
        self.assertIn("certificate is not valid for '127.0.0.1'", line)

    def test_a_conductor_refuses_an_option_by_name(self):
        store = self.useFixture(placement_fixtures.Store())
        path = self.file(
            DEFAULT={"transport_url": self.host.url},
            database={"connection": store.conf.database.connection},
            oslo_messaging_rabbit={"ssl_enforce_fips_mode": True})
        done = self.run_program("conductor", "--config-file", path)
        self.assertEqual(1, done.returncode)
        self.assertIn("[oslo_messaging_rabbit] ssl_enforce_fips_mode",
                      done.stderr.splitlines()[-1])
        self.assertEqual(2, self.upgrade_check(path)["result"])


class KeyTest(base.TestCase):

    def test_a_key_that_wants_a_password_is_refused_without_asking_for_it(self):
        """OpenSSL would ask on the terminal, for each connection."""
        pair = certificates.Authority(self.useFixture(fixtures.TempDir()).path).issue(
            "locked", password=b"secret")
        conf = configuration.new_config(
            config_files=[], transport_url="rabbit://localhost/?ssl=true",
            oslo_messaging_rabbit__ssl_cert_file=pair.certificate,
            oslo_messaging_rabbit__ssl_key_file=pair.key)
        error = self.assertRaises(exception.InvalidInput, Broker.of, conf)
        self.assertIn("[oslo_messaging_rabbit] ssl_cert_file", str(error))


class FailoverTest(base.TestCase):

    def test_each_node_is_checked_for_its_own_name(self):
        """The library checks the name of its first node for all of them."""
        host = self.useFixture(servers.VirtualHost())
        values = host.over_tls()
        account = values["transport_url"].split("//")[1].split("@")[0]
        port = servers.shared().tls()["port"]
        for wrong in ("127.0.0.1", "127.0.0.2"):
            values["transport_url"] = (
                f"rabbit://{account}@{wrong}:{port},{account}@localhost:{port}/"
                f"{servers.name_of(host.url)}")
            found = Broker.of(configuration.new_config(config_files=[], **values))
            for _ in range(4):
                with found.connected() as connection:
                    self.assertTrue(connection.connected)


class HeartbeatTest(base.TestCase):

    def test_a_heartbeat_does_not_garble_what_another_thread_reads(self):
        """OpenSSL does not read and write on one connection at the same time."""
        conf = configuration.new_config(
            config_files=[], **self.useFixture(servers.VirtualHost()).over_tls())
        ended, tried = threading.Event(), []

        def beat(connection):
            while not ended.wait(0.0001):
                tried.append(True)
                with contextlib.suppress(TimeoutError):
                    connection.heartbeat()

        with Broker.of(conf).connected() as connection:
            heart = threading.Thread(target=beat, args=(connection,))
            heart.start()
            try:
                for _ in range(1500):
                    topology.declare_reply_queue(
                        connection, "reply_1", conf.oslo_messaging_rabbit)
            finally:
                ended.set()
                heart.join(10)
            self.assertTrue(connection.connected)
        self.assertGreater(len(tried), 100)
