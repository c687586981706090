# SPDX-License-Identifier: Apache-2.0
"""Real servers that tests share: one of each kind, started when the first test needs it.

``python -m tests.servers COMMAND ...`` runs a command, as ``tools/run-tests`` does with stestr.
All test processes below it share the servers of that process. A test process that was started
without it has servers of its own. Tests are kept apart by virtual hosts and databases. A test
that stops, restarts or reconfigures a server starts a private one instead.
"""

import atexit
import collections
import functools
import multiprocessing.managers
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import uuid
from concurrent import futures

import fixtures
import kombu
import requests
import sqlalchemy as sa

from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers as private
from tests import certificates

DATABASES = ("sqlite", "postgresql", "mariadb")
_ADDRESS, _KEY = "PLACEMENT_RPC_TEST_SERVERS", "PLACEMENT_RPC_TEST_SERVERS_KEY"
_HTTP_TIMEOUT = 60
# How many virtual hosts remain of those that tests have given back. RabbitMQ 3.10 starts a process
# for the dead letters of each queue that has just been declared; if two such processes fail since
# their queue is already deleted, no queue of this kind can be declared on the node any more.
_YOUNG_HOSTS = 4


class _Stock:
    """Makes one thing of a kind in advance: tests wait for their servers, not for their databases.

    :param make: callable without arguments
    """

    def __init__(self, make):
        self._make, self._lock, self._next = make, threading.Lock(), None
        self._maker = futures.ThreadPoolExecutor(1)

    def take(self):
        """Return a new one."""
        with self._lock:
            made = self._next or self._maker.submit(self._make)
            self._next = self._maker.submit(self._make)
        return made.result()

    def close(self):
        """Make no more."""
        self._maker.shutdown(cancel_futures=True)


class Servers:
    """The shared servers, with virtual hosts and databases for tests. Thread-safe."""

    def __init__(self):
        self._fixtures = {}
        self._locks = {kind: threading.Lock() for kind in ("rabbitmq", "postgresql", "mariadb")}
        self._templates = {}
        self._hosts = _Stock(self._make_virtual_host)
        self._databases = {kind: _Stock(functools.partial(self._copy_of_schema, kind))
                           for kind in ("postgresql", "mariadb")}
        self._directory, self._tls = tempfile.TemporaryDirectory(), {}
        self._young = collections.deque()

    def close(self):
        """End the servers."""
        for stock in (self._hosts, *self._databases.values()):
            stock.close()
        self._directory.cleanup()
        for fixture in self._fixtures.values():
            fixture.cleanUp()

    def _running(self, kind, make):
        with self._locks[kind]:
            if kind not in self._fixtures:
                fixture = make()
                fixture.setUp()
                self._fixtures[kind] = fixture
            return self._fixtures[kind]

    # -- RabbitMQ -------------------------------------------------------------------------

    def _broker(self):
        return self._running("rabbitmq", self._new_broker)

    def _new_broker(self):
        authority = certificates.Authority(self._directory.name)
        self._tls = {"ca_file": authority.ca_file, **authority.issue("client")._asdict()}
        return private.RabbitMQ(
            ["rabbitmq_management", "rabbitmq_auth_mechanism_ssl"],
            tls=(authority.ca_file, *authority.issue("broker", "localhost", "rabbit.example")))

    def tls(self):
        """Return what connections over TLS need: a dict.

        ``port`` is that of the broker, whose certificate is valid for localhost and not for
        127.0.0.1; ``ca_file``, ``certificate`` and ``key`` are paths, the latter two of a client.
        """
        return {"port": self._broker().tls_port, **self._tls}

    def management_url(self):
        """Return the URL of the broker's management interface, with user and password."""
        broker = self._broker()
        return (f"http://{broker.username}:{broker.password}"
                f"@127.0.0.1:{broker.management_port}")

    def rabbitmqctl(self, *arguments):
        """Run rabbitmqctl on the broker and return what it prints."""
        return self._broker().rabbitmqctl(*arguments)

    def new_virtual_host(self):
        """Return the URL of a new virtual host: ``rabbit://user:password@host:port/NAME``."""
        return self._hosts.take()

    def _make_virtual_host(self):
        broker, name = self._broker(), uuid.uuid4().hex
        self._manage("PUT", f"vhosts/{name}", {})
        self._manage("PUT", f"permissions/{name}/{broker.username}",
                     dict.fromkeys(("configure", "write", "read"), ".*"))
        return broker.url + name

    def delete_virtual_host(self, url):
        """Delete a virtual host with its queues, once some more are given back.

        :param url: as of :meth:`new_virtual_host`
        """
        self._young.append(name_of(url))
        if len(self._young) > _YOUNG_HOSTS:
            self._manage("DELETE", f"vhosts/{self._young.popleft()}")

    def _manage(self, method, path, body=None):
        requests.request(method, f"{self.management_url()}/api/{path}", json=body,
                         timeout=_HTTP_TIMEOUT).raise_for_status()

    # -- databases ------------------------------------------------------------------------

    def _database_server(self, kind):
        return self._running(
            kind, private.PostgreSQL if kind == "postgresql" else private.MariaDB)

    def new_empty_database(self, kind):
        """Return the SQLAlchemy URL of an empty database.

        :param kind: ``postgresql`` or ``mariadb``
        """
        return self._database_server(kind).create_database()

    def new_database(self, kind):
        """Return the SQLAlchemy URL of a database with the schema of this tree."""
        return self._databases[kind].take()

    def _copy_of_schema(self, kind):
        server = self._database_server(kind)
        with self._locks[kind]:
            if kind not in self._templates:
                self._templates[kind] = {
                    "postgresql": _PostgreSQLTemplate, "mariadb": _MariaDBTemplate}[kind](
                        server.create_database())
        return self._templates[kind].copy()


def name_of(url):
    """Return the virtual host that a URL ends with."""
    return urllib.parse.urlsplit(url).path[1:]


def _administrator(url):
    """Return a connection to a database's server that does not use the database itself."""
    url = sa.make_url(url)
    other = url.set(database="postgres" if url.get_backend_name() == "postgresql" else "mysql")
    return sa.create_engine(
        other, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT").connect()


class _Template:
    """A database with this tree's schema, which can be copied without running migrations."""

    def __init__(self, url):
        self._url = sa.make_url(url)
        with placement_fixtures.Store(url):
            pass

    def copy(self):
        """Return the URL of a new copy."""
        name = f"test_{uuid.uuid4().hex}"
        with _administrator(self._url) as connection:
            self._copy(connection, name)
        return self._url.set(database=name).render_as_string(hide_password=False)


class _PostgreSQLTemplate(_Template):

    def _copy(self, connection, name):
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {self._url.database}")


class _MariaDBTemplate(_Template):
    """A template for MariaDB, which has none: copies run the statements of the final schema."""

    def __init__(self, url):
        super().__init__(url)
        with _administrator(url) as connection:
            tables = [row[0] for row in connection.exec_driver_sql(
                f"SHOW TABLES IN {self._url.database}")]
            self._statements = ["SET foreign_key_checks = 0"]
            for table in tables:
                source = f"{self._url.database}.{table}"
                self._statements.append(
                    connection.exec_driver_sql(f"SHOW CREATE TABLE {source}").one()[1])
                if connection.exec_driver_sql(f"SELECT 1 FROM {source} LIMIT 1").first():
                    self._statements.append(f"INSERT INTO {table} SELECT * FROM {source}")

    def _copy(self, connection, name):
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
        connection.exec_driver_sql(f"USE {name}")
        for statement in self._statements:
            connection.exec_driver_sql(statement)


class _Manager(multiprocessing.managers.BaseManager):
    """The connection between the process that owns the servers and the test processes."""


class _Remote:
    """The servers of another process; each call has a thread, and so a connection, of its own.

    The time limit of a test interrupts its call. On a shared connection the next call would take
    the answer to that one for its own, and every later test would fail.
    """

    def __init__(self, proxy):
        self._proxy = proxy

    def __getattr__(self, name):
        def call(*arguments, **named):
            answer = futures.Future()

            def ask():
                try:
                    answer.set_result(getattr(self._proxy, name)(*arguments, **named))
                except BaseException as error:
                    answer.set_exception(error)

            threading.Thread(target=ask, name=name, daemon=True).start()
            return answer.result()

        return call


@functools.cache
def shared():
    """Return the :class:`Servers` of this run, or of this process if it is not part of one."""
    if _ADDRESS in os.environ:
        _Manager.register("servers")
        manager = _Manager(os.environ[_ADDRESS], bytes.fromhex(os.environ[_KEY]))
        manager.connect()
        return _Remote(manager.servers())
    found = Servers()
    atexit.register(found.close)
    return found


def wait_for_heartbeat_timeout(url, seconds):
    """Wait until the broker closes a silent connection, as it does after two heartbeats.

    :param url: of a virtual host, as of :meth:`Servers.new_virtual_host`
    :param seconds: the heartbeat of the connection
    """
    silent = kombu.Connection(url.replace("rabbit:", "amqp:"), heartbeat=seconds)
    silent.connect()
    try:
        silent.drain_events(timeout=60)
    except TimeoutError:
        raise
    except silent.recoverable_connection_errors:
        return
    raise AssertionError("The broker sent a message to a connection without consumers")


class VirtualHost(fixtures.Fixture):
    """A virtual host of the shared broker: queues and exchanges apart from those of other tests.

    ``url`` is its address, ``port`` the broker's; ``management_url`` is the broker's.
    """

    def _setUp(self):
        servers = shared()
        self.url, self.management_url = servers.new_virtual_host(), servers.management_url()
        self.port = urllib.parse.urlsplit(self.url).port
        self.addCleanup(servers.delete_virtual_host, self.url)

    def over_tls(self, host="localhost"):
        """Return the options of a configuration that connects over TLS: a dict.

        :param host: the host in the URL; the broker's certificate is valid for the default
        """
        tls = shared().tls()
        return {"transport_url": self.url.replace(
                    f"127.0.0.1:{self.port}/", f"{host}:{tls['port']}/"),
                "oslo_messaging_rabbit__ssl": True,
                "oslo_messaging_rabbit__ssl_ca_file": tls["ca_file"]}

    def rabbitmqctl(self, command, *arguments):
        """Run a command of rabbitmqctl on the virtual host and return what it prints."""
        return shared().rabbitmqctl("-q", command, "-p", name_of(self.url), *arguments)

    @staticmethod
    def rabbitmqctl_as_is(*arguments):
        """Run a command of rabbitmqctl that takes no virtual host."""
        return shared().rabbitmqctl(*arguments)


@functools.cache
def rabbitmq():
    """Return a :class:`VirtualHost` that all tests of this process share."""
    found = VirtualHost()
    # The broker ends before or with this process: there is nothing to clean up.
    found.setUp()
    return found


def new_database(kind):
    """Return the SQLAlchemy URL of a database with the schema of this tree.

    :param kind: one of :data:`DATABASES`
    :returns: None for SQLite, see :class:`placement_rpc.testing.fixtures.Store`
    """
    return None if kind == "sqlite" else shared().new_database(kind)


def new_empty_database(kind):
    """Return the SQLAlchemy URL of a database without tables; None for SQLite."""
    return None if kind == "sqlite" else shared().new_empty_database(kind)


def _main(command):
    """Run a command whose processes share servers; return its exit status."""
    servers, key = Servers(), secrets.token_bytes()
    _Manager.register("servers", callable=lambda: servers)
    server = _Manager(authkey=key).get_server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        return subprocess.run(command, check=False, env={
            **os.environ, _ADDRESS: server.address, _KEY: key.hex()}).returncode
    finally:
        servers.close()


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
