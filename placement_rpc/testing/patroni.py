# SPDX-License-Identifier: Apache-2.0
"""A private PostgreSQL cluster whose primary is chosen by Patroni, by means of etcd."""

import contextlib
import json
import pathlib
import signal
import time
import urllib.error
import urllib.request
import uuid

import fixtures

from placement_rpc.testing import together
from placement_rpc.testing.postgresql_process import PostgreSQLProcess, url_of
from placement_rpc.testing.server_process import (
    START_TIMEOUT,
    ServerProcess,
    reserve_port,
    signal_all,
)
from placement_rpc.testing.waiting import wait_until

# Patroni's intervals in seconds: after which a primary that says nothing has lost its lease, from
# one look to the next, and for which a failed operation is repeated.
_TTL, _LOOP_WAIT, _RETRY_TIMEOUT = 20, 2, 5
_REQUEST_TIMEOUT = 5
# A former primary whose data cannot be rewound gets a new copy, instead of staying away.
_COPIED_AGAIN = {"remove_data_directory_on_rewind_failure": True,
                 "remove_data_directory_on_diverged_timelines": True}
# Not by a proxy that the environment names.
_HTTP = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class PatroniCluster(fixtures.Fixture):
    """Servers on 127.0.0.1, one of which is the primary; a commit waits for one of the others.

    :param program: list of str, the command line of Patroni, to which its file is added. Before
        Patroni 3.0.3 confirmed commits are lost when a frozen primary goes on.
    :param size: int, the number of servers
    :ivar servers: list of :class:`Server`
    """

    def __init__(self, program=("patroni",), size=3):
        super().__init__()
        self._program, self._size = program, size

    def _setUp(self):
        etcd = self.useFixture(Etcd())
        self.servers = [Server(f"server{number}", self._program, etcd.port)
                        for number in range(self._size)]
        # The others copy the data of the first.
        self.useFixture(self.servers[0])
        together.set_up(self, self.servers[1:])
        self.wait_for_standby()

    @property
    def primary(self):
        """The :class:`Server` that accepts changes, as Patroni says; None if there is none."""
        return next((server for server in self.servers if server.is_primary()), None)

    def create_database(self):
        """Create an empty database and return its URL, with the addresses of all servers."""
        name = f"test_{uuid.uuid4().hex}"
        self.primary.execute(f"CREATE DATABASE {name}")
        return url_of(name, self.servers)

    def wait_for_standby(self):
        """Wait until there is a primary, and a standby that may take its place.

        :returns: the primary, a :class:`Server`
        :raises TimeoutError: if one of the two is missing for too long
        """
        return wait_until(
            lambda: any(server.is_synchronous_standby() for server in self.servers)
            and self.primary,
            START_TIMEOUT, lambda: "there is no primary with a synchronous standby")

    def settle(self):
        """Wait until every server follows the primary, and every Patroni knows that.

        A Patroni that sees a new primary asks it for its history, and waits for ever if the new
        primary is frozen meanwhile, since the connection is not lost. It asks in the first round
        in which it sees the primary, and that is over when the second one begins.

        :raises TimeoutError: if a server does not become a standby, or a Patroni does not go on
        """
        standbys = len(self.servers) - 1
        wait_until(
            lambda: self.primary
            and sum(server.is_standby() for server in self.servers) == standbys,
            START_TIMEOUT, lambda: "the servers do not all follow a primary")
        for _ in range(2):
            last = {server: server.last_round() for server in self.servers}
            wait_until(
                lambda last=last: all(
                    server.last_round() > before for server, before in last.items()),
                START_TIMEOUT, lambda: "a Patroni does not go on")

    def switch_over(self):
        """Have another server become the primary in an orderly way.

        :raises RuntimeError: if Patroni refuses
        """
        primary = self.wait_for_standby()
        try:
            primary.request("/switchover", {"leader": primary.name})
        except urllib.error.HTTPError as error:
            # Patroni stops waiting for a slow one, and completes it nevertheless.
            if error.code != 503:
                raise RuntimeError(f"no switchover: {error.read().decode()}") from error


class Etcd(ServerProcess):
    """A lone etcd server; ``port`` is where it serves clients."""

    _ready = "ready to serve client requests"

    def _setUp(self):
        super()._setUp()
        self.port = reserve_port(self)
        clients, peers = (f"http://127.0.0.1:{port}" for port in (self.port, reserve_port(self)))
        self._command = (
            "etcd", "--data-dir", f"{self.tempdir}/data", "--name", "tests",
            "--listen-client-urls", clients, "--advertise-client-urls", clients,
            "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
            "--initial-cluster", f"tests={peers}")
        self.start()


class Server(PostgreSQLProcess):
    """A PostgreSQL server and the Patroni that starts it.

    :param name: str
    :param program: list of str, the command line of Patroni
    :param etcd: int, the port of etcd
    """

    # Patroni says so in each round, once its server is the primary or follows one.
    _ready = r"no action\. I am"
    _crash = signal.SIGKILL
    _end = signal.SIGTERM

    def __init__(self, name, program, etcd):
        super().__init__()
        self.name, self._program, self._etcd = name, program, etcd

    def _setUp(self):
        super()._setUp()
        self.port, self._api = reserve_port(self), reserve_port(self)
        path = pathlib.Path(self.tempdir, "patroni.yml")
        path.write_text(json.dumps(self._settings()))
        self._command = (*self._user, *self._program, str(path))
        self.start()

    def _settings(self):
        """Return what Patroni reads: YAML, of which JSON is a part."""
        address, api = f"127.0.0.1:{self.port}", f"127.0.0.1:{self._api}"
        # The passwords are not used: every connection is trusted.
        accounts = {role: {"username": name, "password": "unused"}
                    for role, name in (("superuser", "postgres"), ("replication", "standby"))}
        return {
            "scope": "tests", "name": self.name, "etcd3": {"host": f"127.0.0.1:{self._etcd}"},
            "restapi": {"listen": api, "connect_address": api},
            "bootstrap": {
                "dcs": {
                    "ttl": _TTL, "loop_wait": _LOOP_WAIT, "retry_timeout": _RETRY_TIMEOUT,
                    "synchronous_mode": True,
                    "postgresql": {"use_pg_rewind": True, **_COPIED_AGAIN, "parameters": {
                        "max_connections": 200, "dynamic_shared_memory_type": "mmap",
                        "wal_keep_size": "64MB",
                        # Before it ends, a server waits for connections that were not completed.
                        "authentication_timeout": _REQUEST_TIMEOUT}}},
                "initdb": [{"encoding": "UTF8"}, {"auth": "trust"}, "no-sync"],
                "pg_hba": ["local all all trust", "host all all 127.0.0.1/32 trust",
                           "host replication all 127.0.0.1/32 trust"]},
            "postgresql": {
                "listen": address, "connect_address": address, "data_dir": str(self._data),
                "pgpass": f"{self.tempdir}/pgpass", "authentication": accounts,
                # A new copy does not wait for a checkpoint that is spread over minutes.
                "basebackup": {"checkpoint": "fast"},
                "parameters": {"unix_socket_directories": self.tempdir, "fsync": "off"}}}

    def request(self, path, body=None):
        """Send a request to Patroni's HTTP API, a POST if it has a body; return the answer's text.

        :raises OSError: if Patroni does not answer, or refuses
        """
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._api}{path}", json.dumps(body).encode() if body else None)
        timeout = START_TIMEOUT if body else _REQUEST_TIMEOUT
        with _HTTP.open(request, timeout=timeout) as answer:
            return answer.read().decode()

    def is_primary(self):
        """Return whether its Patroni holds the lease."""
        return self._is("/primary")

    def is_standby(self):
        """Return whether it follows a primary."""
        return self._is("/replica")

    def is_synchronous_standby(self):
        """Return whether it is a standby that the primary waits for."""
        return self._is("/sync")

    def last_round(self):
        """Return when its Patroni began the last round, in seconds; 0 if it does not answer."""
        try:
            return json.loads(self.request("/patroni"))["dcs_last_seen"]
        except OSError:
            return 0

    def _is(self, path):
        try:
            self.request(path)
        except OSError:
            return False
        return True

    def kill(self):
        """Kill Patroni and all processes of the server, as a power cut does."""
        # First the server, which Patroni would start again otherwise, but not if it is stopped.
        signal_all(self.process.pid, signal.SIGSTOP)
        self._kill_postgres()
        super().kill()

    def freeze(self):
        """Stop Patroni and all processes of the server, as a machine that hangs does."""
        super().freeze()
        for pid in self._postgres():
            signal_all(pid, signal.SIGSTOP)

    def thaw(self):
        """Let a frozen server go on."""
        super().thaw()
        for pid in self._postgres():
            signal_all(pid, signal.SIGCONT)

    def _kill(self, process):
        super()._kill(process)
        self._kill_postgres()

    def _kill_postgres(self):
        while found := self._postgres():
            signal_all(*found, signal.SIGKILL)
            time.sleep(0.01)
        self._remove_shared_memory()

    def _postgres(self):
        """Return a list of the pid of the running server; an empty list if it does not run.

        Patroni does not have it as a child, so that it outlives Patroni.
        """
        for pid in map(int, self._lock_file()[:1]):
            with contextlib.suppress(OSError):
                if bytes(self._data) in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    return [pid]
        return []
