# SPDX-License-Identifier: Apache-2.0
"""Connections over TLS: the library's handshake with the same options, but names are checked."""

import collections
import contextlib
import json
import pathlib
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

import fixtures
import oslo_messaging
import testscenarios
from oslo_messaging._drivers import common, impl_rabbit

from placement_rpc import api, exception
from placement_rpc import conf as configuration
from placement_rpc.amqp import frames, topology
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.tls import HandshakeFailed
from placement_rpc.notifications import listener
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, certificates, servers

_HANDSHAKE_RECORD, _SERVER_NAME, _SIGNATURES, _VERSIONS = 22, 0, 13, 43

#: What a client says first: its TLS versions, ciphers and signature algorithms as bytes, and the
#: name of the server that it wants, or None.
Hello = collections.namedtuple("Hello", "versions ciphers signatures server_name")
#: What a server sees of a client; ``certificate`` is the common name of the client's certificate,
#: and ``began`` whether AMQP began.
Seen = collections.namedtuple("Seen", "hello certificate began")


def _hello(record):
    """Parse the record with which a client begins a handshake."""
    # The headers of record and handshake, the version, and the random bytes.
    place = 5 + 4 + 2 + 32
    place += 1 + record[place]
    length, = struct.unpack_from(">H", record, place)
    ciphers, place = record[place + 2:place + 2 + length], place + 2 + length
    place += 1 + record[place] + 2
    extensions = {}
    while place < len(record):
        kind, length = struct.unpack_from(">HH", record, place)
        extensions[kind] = record[place + 4:place + 4 + length]
        place += 4 + length
    name = extensions.get(_SERVER_NAME)
    return Hello(extensions.get(_VERSIONS) or record[9:11], ciphers,
                 extensions.get(_SIGNATURES), name and name[5:].decode())


class _Recorder(fixtures.Fixture):
    """A TLS server that records the handshakes of clients and then closes the connection.

    ``port`` is where it listens.
    """

    def __init__(self, authority, pair):
        super().__init__()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*pair)
        self._context.load_verify_locations(authority.ca_file)
        self._context.verify_mode = ssl.CERT_OPTIONAL

    def _setUp(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self._listener.close)
        self.port = self._listener.getsockname()[1]

    def watch(self, connect):
        """Call ``connect``, which fails, and return what was :class:`Seen` of it.

        None stands for a client that did not get as far as its first message.
        """
        seen = []
        thread = threading.Thread(target=lambda: seen.append(self._serve()))
        thread.start()
        with contextlib.suppress(*frames.FAILURES):
            connect()
        thread.join(20)
        return seen[0]

    def _serve(self):
        connection, _ = self._listener.accept()
        with connection:
            connection.settimeout(10)
            header = connection.recv(5, socket.MSG_PEEK | socket.MSG_WAITALL)
            if len(header) < 5 or header[0] != _HANDSHAKE_RECORD:
                return None
            length, = struct.unpack_from(">H", header, 3)
            hello = _hello(connection.recv(5 + length, socket.MSG_PEEK | socket.MSG_WAITALL))
            try:
                with self._context.wrap_socket(connection, server_side=True) as encrypted:
                    began = encrypted.recv(4) == b"AMQP"
                    subject = (encrypted.getpeercert() or {}).get("subject", ((("", None),),))
                    return Seen(hello, subject[0][0][1], began)
            except OSError:
                return Seen(hello, None, False)


class HandshakeTest(testscenarios.WithScenarios, base.TestCase):
    """What a broker sees of the library's driver and of this project, option by option.

    The broker's certificate is valid for localhost and not for 127.0.0.1. ``differs`` names the
    ways in which this project verifies more than the driver: ``name`` and ``chain``.
    """

    scenarios = [
        ("an authority", {"options": {"ssl_ca_file": "ca"}}),
        ("another host's name", {"options": {"ssl_ca_file": "ca"}, "host": "127.0.0.1",
                                 "accepted": False}),
        ("an address that is not checked", {
            "options": {"ssl_ca_file": "ca"}, "host": "127.0.0.1", "checks": False,
            "differs": "unchecked"}),
        ("another authority", {"options": {"ssl_ca_file": "other"}, "accepted": False}),
        ("a client's certificate", {"options": {
            "ssl_ca_file": "ca", "ssl_cert_file": "certificate", "ssl_key_file": "key"}}),
        ("a client's certificate without an authority", {
            "options": {"ssl_cert_file": "certificate", "ssl_key_file": "key"},
            "system": True, "differs": "name"}),
        ("the system's authorities", {"options": {}, "system": True, "differs": "name"}),
        ("the system's authorities, another host's name", {
            "options": {}, "system": True, "host": "127.0.0.1", "accepted": False,
            "differs": "name"}),
        ("no authority", {"options": {}, "accepted": False, "differs": "name"}),
        ("a version", {"options": {"ssl_ca_file": "ca", "ssl_version": "TLSv1_2"}}),
        ("a version without an authority", {
            "options": {"ssl_version": "TLSv1_2"}, "accepted": False, "differs": "name chain"}),
        ("the newest version", {"options": {"ssl_ca_file": "ca", "ssl_version": "SSLv23"}}),
        ("an old version", {"options": {"ssl_ca_file": "ca", "ssl_version": "TLSv1"},
                            "accepted": False}),
    ]
    host = "localhost"
    accepted = checks = True
    system = False
    differs = ""

    def setUp(self):
        super().setUp()
        directory = self.useFixture(fixtures.TempDir()).path
        authority = certificates.Authority(directory)
        client = authority.issue("client")
        self.files = {"ca": authority.ca_file, **client._asdict(),
                      "other": certificates.Authority(directory, "Another").ca_file}
        # The authorities of the operating system, as OpenSSL finds them.
        self.useFixture(fixtures.EnvironmentVariable(
            "SSL_CERT_FILE", self.files["ca" if self.system else "other"]))
        self.recorder = self.useFixture(_Recorder(
            authority, authority.issue("broker", "localhost")))
        self.conf = configuration.new_config(
            config_files=[], transport_url=f"rabbit://{self.host}:{self.recorder.port}/",
            oslo_messaging_rabbit__ssl=True, broker__check_hostname=self.checks,
            **{f"oslo_messaging_rabbit__{name}": self.files.get(value, value)
               for name, value in self.options.items()})

    def library_connects(self):
        impl_rabbit.Connection(self.conf, oslo_messaging.TransportURL.parse(self.conf),
                               common.PURPOSE_LISTEN, retry=0)

    def test_both_handshakes(self):
        library = self.recorder.watch(self.library_connects)
        ours = self.recorder.watch(Broker.of(self.conf).connect)
        self.assertEqual(self.accepted, bool(ours and ours.began))
        expected = library
        if "name" in self.differs:
            # The driver asks for no name, and so checks none.
            self.assertIsNone(library.hello.server_name)
            expected = expected._replace(
                hello=expected.hello._replace(server_name=ours.hello.server_name))
            self.assertTrue(library.began or not self.accepted or not self.system)
        if "name" in self.differs and not self.accepted:
            expected = expected._replace(began=False)
        if self.differs == "unchecked":
            self.assertFalse(library.began)
            expected = expected._replace(began=True)
        self.assertEqual(expected, ours)

    def test_who_is_not_accepted_is_told_in_the_first_error(self):
        found = Broker.of(self.conf)
        errors = []

        def connect():
            try:
                found.connect()
            except frames.FAILURES as error:
                errors.append(error)

        self.recorder.watch(connect)
        self.assertEqual(not self.accepted, isinstance(errors[0], HandshakeFailed), errors)


class LoginTest(testscenarios.WithScenarios, base.TestCase):
    """What RabbitMQ says of a connection of the driver and of one of this project."""

    time_limit = 180
    scenarios = [
        ("clear text", {"tls": False, "options": {}}),
        ("TLS", {"options": {}}),
        ("a client's certificate", {"options": {
            "ssl_cert_file": "certificate", "ssl_key_file": "key"}}),
        ("a version", {"options": {"ssl_version": "TLSv1_2"}}),
        ("PLAIN", {"options": {"rabbit_login_method": "PLAIN"}}),
        ("EXTERNAL", {"user": "client", "options": {
            "rabbit_login_method": "EXTERNAL", "ssl_cert_file": "certificate",
            "ssl_key_file": "key"}}),
        ("a heartbeat", {"tls": False, "options": {"heartbeat_timeout_threshold": 7}}),
        ("a longer one than the broker's", {
            "tls": False, "options": {"heartbeat_timeout_threshold": 600}}),
        ("no heartbeat", {"tls": False, "options": {"heartbeat_timeout_threshold": 0}}),
    ]
    tls = True
    user = None
    _COLUMNS = ("user", "vhost", "auth_mechanism", "timeout", "ssl", "ssl_protocol", "ssl_cipher",
                "peer_cert_subject")

    def setUp(self):
        super().setUp()
        self.host = self.useFixture(servers.VirtualHost())
        if self.user:
            self.host.rabbitmqctl_as_is("eval", _USER.format(self.user))
            self.host.rabbitmqctl("set_permissions", self.user, ".*", ".*", ".*")
        files = servers.shared().tls()
        self.conf = configuration.new_config(config_files=[], **(
            self.host.over_tls() if self.tls else {"transport_url": self.host.url}), **{
            f"oslo_messaging_rabbit__{name}": files.get(value, value)
            for name, value in self.options.items()})

    def seen(self):
        """Return the rows of the broker's connections on the virtual host, when there are any."""
        deadline = time.monotonic() + 30
        while True:
            rows = [row for row in (line.split("\t") for line in self.host.rabbitmqctl_as_is(
                "-q", "list_connections", *self._COLUMNS).splitlines()[1:])
                if row[1] == servers.name_of(self.host.url)]
            if rows or time.monotonic() > deadline:
                return [dict(zip(self._COLUMNS, row, strict=True)) for row in rows]

    def wait_for_none(self):
        deadline = time.monotonic() + 30
        while servers.name_of(self.host.url) in self.host.rabbitmqctl_as_is(
                "-q", "list_connections", "vhost"):
            self.assertLess(time.monotonic(), deadline)

    def test_both_logins(self):
        library = impl_rabbit.Connection(
            self.conf, oslo_messaging.TransportURL.parse(self.conf), common.PURPOSE_LISTEN,
            retry=0)
        first = self.seen()
        library.close()
        self.wait_for_none()
        with Broker.of(self.conf).connected():
            second = self.seen()
        self.assertEqual(first, second)
        self.assertEqual(1, len(second))
        self.assertEqual(str(self.tls).lower(), second[0]["ssl"])


# Creates a user without a password, which can log in with a certificate only.
_USER = """
case rabbit_auth_backend_internal:exists(<<"{0}">>) of
    true -> ok;
    false -> rabbit_auth_backend_internal:add_user(<<"{0}">>, <<>>, <<"tests">>)
end.
"""


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
        deadline = time.monotonic() + 60
        while not client.get_allocations(None, consumer).objects:
            self.assertLess(time.monotonic(), deadline, request)
            time.sleep(0.05)
        events = []
        queue = listener.QueueListener(running.conf, "billing", events.append)
        self.addCleanup(queue.stop)
        thread = threading.Thread(target=queue.run, daemon=True)
        thread.start()
        stream = listener.StreamReader(Broker.of(running.conf), "placement_events", 1)
        self.assertEqual("resource_provider.create",
                         next(stream.events(idle=30)).event_type)
        while not events:
            client.create_provider(None, base.new_uuid())
            self.assertLess(time.monotonic(), deadline)
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
        ended = threading.Event()

        def beat(connection):
            while not ended.wait(0.0001):
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
