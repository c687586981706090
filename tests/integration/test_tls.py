# SPDX-License-Identifier: Apache-2.0
"""Connections over TLS: the library's handshake with the same options, but names are checked."""

import collections
import contextlib
import socket
import ssl
import struct
import threading
import time

import fixtures
import oslo_messaging
import testscenarios
from oslo_messaging._drivers import common, impl_rabbit

from placement_rpc import conf as configuration
from placement_rpc.amqp import frames
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.tls import HandshakeFailed
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
