# SPDX-License-Identifier: Apache-2.0
"""The databases of a soak, and how they fail."""

import fixtures

from placement_rpc.testing import servers as private
from placement_rpc.testing.galera import GaleraCluster
from placement_rpc.testing.standbys import PostgreSQLStandbys
from tests.integration.haproxy import GaleraProxy
from tests.soak.faults import STOPPED_SECONDS, Fault

_SINGLE = {"postgresql": private.PostgreSQL, "mariadb": private.MariaDB}
# Seconds after which a primary that does not answer counts as failed.
_FAILED_AFTER = 5


class _Database(fixtures.Fixture):
    """A database server, or several.

    :param pause: callable of the least and the most seconds to wait
    :ivar url: str, of an empty database
    :ivar ports: list of int, those of the URL; empty for a Unix socket, which has no link to cut
    """

    def __init__(self, pause):
        super().__init__()
        self._pause = pause

    def _freeze(self, server):
        server.freeze()
        try:
            self._pause(STOPPED_SECONDS, STOPPED_SECONDS)
        finally:
            server.thaw()


class OneDatabase(_Database):
    """A single server.

    :param kind: ``postgresql`` or ``mariadb``
    """

    def __init__(self, pause, kind):
        super().__init__(pause)
        self._kind = kind

    def _setUp(self):
        server = self.useFixture(_SINGLE[self._kind](durable=True))
        self.nodes, self.url, self.ports = [server], server.create_database(), []
        self.faults = [Fault("database killed", self._kill),
                       Fault("database stopped", lambda: self._freeze(server))]

    def _kill(self):
        self.nodes[0].kill()
        self._pause(0, 3)
        self.nodes[0].start()


class Galera(_Database):
    """Three nodes behind HAProxy, of which one at a time gets all connections."""

    def _setUp(self):
        cluster = self.useFixture(GaleraCluster())
        self.nodes = cluster.nodes
        name = cluster.create_database()
        self._proxy = self.useFixture(GaleraProxy(self.nodes))
        self.url, self.ports = self._proxy.url_of(name), [self._proxy.port]
        self.faults = [
            Fault("database writer killed", self._kill, 15),
            Fault("database node stopped", lambda: self._freeze(self._writer()), 30),
            Fault("database node restarted", self._restart)]

    def _writer(self):
        """Return the node that gets new connections; the first one if none does."""
        states = self._proxy.states()
        return self.nodes[states.index("UP") if "UP" in states else 0]

    def _kill(self):
        writer = self._writer()
        writer.kill()
        self._pause(3, 6)
        writer.start()

    def _restart(self):
        writer = self._writer()
        writer.execute("SHUTDOWN")
        writer.process.wait()
        writer.stop()
        writer.start()


class Standbys(_Database):
    """A PostgreSQL primary and two standbys, one of which has each change before its answer."""

    def _setUp(self):
        self._cluster = self.useFixture(PostgreSQLStandbys())
        self.nodes, self.url = self._cluster.servers, self._cluster.create_database()
        self.ports = [server.port for server in self.nodes]
        self.faults = [
            Fault("database writer killed", self._kill, 20),
            Fault("database node stopped", self._stop_primary, 30),
            Fault("database standby stopped", lambda: self._freeze(self._standbys()[0]), 30)]

    def _standbys(self):
        primary = self._cluster.primary
        return [server for server in self.nodes if server is not primary]

    def _kill(self):
        primary = self._cluster.primary
        primary.kill()
        primary.follow(self._cluster.promote())

    def _stop_primary(self):
        """Have a standby take the place of a frozen primary, which is ended later."""
        primary = self._cluster.primary
        primary.freeze()
        self._pause(_FAILED_AFTER, _FAILED_AFTER)
        promoted = self._cluster.promote()
        # Its clients wait for it until now.
        self._pause(STOPPED_SECONDS - _FAILED_AFTER, STOPPED_SECONDS - _FAILED_AFTER)
        primary.kill()
        primary.follow(promoted)
