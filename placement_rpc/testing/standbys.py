# SPDX-License-Identifier: Apache-2.0
"""A private PostgreSQL server with standbys, one of which can take its place."""

import shutil
import uuid

import fixtures

from placement_rpc.testing.postgresql_process import PostgreSQLProcess, url_of
from placement_rpc.testing.server_process import START_TIMEOUT, reserve_port
from placement_rpc.testing.waiting import wait_until


class PostgreSQLStandbys(fixtures.Fixture):
    """A primary server and standbys that follow it by streaming, on 127.0.0.1.

    :param size: int, the number of servers
    :param synchronous: int, how many standbys have a change before it is answered; 0 for none, so
        that the last changes may be lost with the primary
    :ivar servers: list of :class:`Server`, the first of which begins as the primary
    """

    def __init__(self, size=3, synchronous=1):
        super().__init__()
        self._size = size
        self._synchronous = synchronous

    def _setUp(self):
        self.servers = [Server(f"server{number}", self._synchronous)
                        for number in range(self._size)]
        self.useFixture(self.servers[0]).start_as_primary()
        for server in self.servers[1:]:
            self.useFixture(server).follow(self.servers[0])

    @property
    def primary(self):
        """The :class:`Server` that accepts changes; None while there is none."""
        return next((server for server in self.servers if server.accepts_changes()), None)

    def create_database(self):
        """Create an empty database and return its URL, with the addresses of all servers."""
        name = f"test_{uuid.uuid4().hex}"
        self.primary.execute(f"CREATE DATABASE {name}")
        return url_of(name, self.servers)

    def promote(self, server=None):
        """Make a standby the primary; the other standbys follow it.

        The primary has to be stopped or frozen: nothing else prevents that both accept changes.

        :param server: :class:`Server`; None for the standby that has received the most
        :returns: :class:`Server`
        """
        running = [each for each in self.servers if each.is_running()]
        server = server or max(running, key=Server.received)
        server.promote()
        for other in running:
            if other is not server:
                other.follow(server)
        return server


class Server(PostgreSQLProcess):
    """One of the servers.

    :param name: str
    :param synchronous: int, how many standbys a primary waits for
    """

    def __init__(self, name, synchronous):
        super().__init__()
        self.name = name
        self._synchronous = synchronous
        self._is_frozen = False

    def _setUp(self):
        super()._setUp()
        self.port = reserve_port(self)
        wanted = (f"ANY {self._synchronous} (*)" if self._synchronous else "")
        self._command = (
            *self._user, "postgres", "-D", str(self._data), "-p", str(self.port),
            "-k", self.tempdir, "-h", "127.0.0.1", "-N", "200",
            # In the data directory, since a crash would leave shared memory behind in /dev/shm.
            "--dynamic_shared_memory_type=mmap", "--fsync=off", "--full_page_writes=on",
            "--wal_level=replica", "--hot_standby=on", "--wal_log_hints=on",
            "--wal_keep_size=64MB", "--wal_receiver_timeout=5s", "--wal_sender_timeout=5s",
            "--wal_retrieve_retry_interval=200ms", f"--synchronous_standby_names={wanted}")

    def start(self):
        """Start the server on its existing data and wait until it accepts connections."""
        super().start()
        self._is_frozen = False

    def start_as_primary(self):
        """Begin with no databases."""
        self._run(*self._user, "initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust",
                  "--no-sync")
        with (self._data / "pg_hba.conf").open("a") as access:
            print("host replication postgres 127.0.0.1/32 trust", file=access)
        self.start()

    def follow(self, primary):
        """Follow another server with a new copy of its data, as a standby."""
        if self.process:
            self.stop()
        shutil.rmtree(self._data, ignore_errors=True)
        self._run(*self._user, "pg_basebackup", "-h", "127.0.0.1", "-p", str(primary.port),
                  "-U", "postgres", "-D", str(self._data), "--checkpoint=fast", "--no-sync",
                  "--write-recovery-conf")
        with (self._data / "postgresql.auto.conf").open("a") as settings:
            # Its name in pg_stat_replication.
            print(f"primary_conninfo = 'host=127.0.0.1 port={primary.port} user=postgres "
                  f"application_name={self.name}'", file=settings)
        self.start()

    def promote(self):
        """Accept changes from now on."""
        self._run(*self._user, "pg_ctl", "promote", "-D", str(self._data), "--wait",
                  f"--timeout={START_TIMEOUT}")

    def freeze(self):
        """Stop all processes of the server without ending them, as a machine that hangs does."""
        super().freeze()
        self._is_frozen = True

    def thaw(self):
        """Let a frozen server go on."""
        super().thaw()
        self._is_frozen = False

    def is_running(self):
        """Return whether the process runs, and is not frozen."""
        return (self.process is not None and self.process.poll() is None
                and not self._is_frozen)

    def received(self):
        """Return how far a standby has received the changes of the primary, in bytes: int."""
        return int(self.execute(
            "SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::bigint"))

    def accepts_changes(self):
        """Return whether it is a primary."""
        return self.is_running() and self.execute("SELECT pg_is_in_recovery()") == "f"

    def wait_for(self, position):
        """Wait until a standby has the changes up to a position of the primary."""
        wait_until(
            lambda: self.execute(f"SELECT pg_last_wal_replay_lsn() >= '{position}'") == "t",
            START_TIMEOUT, lambda: f"{self.name} does not follow")

    def position(self):
        """Return the position of the last change of the primary: str."""
        return self.execute("SELECT pg_current_wal_lsn()")
