# SPDX-License-Identifier: Apache-2.0
"""The conductors of a soak, and how they fail."""

import time

import fixtures
import sqlalchemy as sa
from oslo_db import exception as db_exception

from placement_rpc import exception
from placement_rpc.accounting import snapshot
from placement_rpc.db import models
from placement_rpc.db.queries import events
from placement_rpc.notifications import relay
from tests import base
from tests.integration import processes
from tests.integration.proxy import Proxy
from tests.soak.faults import STOPPED_SECONDS, Fault

_NUMBER = 3
# For how long a link is cut: until after the heartbeats have found out.
_CUT_SECONDS = 20
# Seconds within which a conductor starts and completes a snapshot.
_SNAPSHOT_ENDS = 90
# Seconds to wait for a relay that has something to publish.
_RELAY_WORKS = 5


class Conductors(fixtures.Fixture):
    """Conductors on a store; the last one reaches the broker through proxies.

    :param brokers: see :mod:`tests.soak.brokers`
    :param store: :class:`placement_rpc.testing.fixtures.Store`
    :param pause: callable of the least and the most seconds to wait
    """

    def __init__(self, brokers, store, pause):
        super().__init__()
        self._brokers, self._store, self._pause = brokers, store, pause

    def _setUp(self):
        self._links = [self.useFixture(Proxy(node.port)) for node in self._brokers.nodes]
        urls = [self._brokers.url] * (_NUMBER - 1)
        urls.append(self._brokers.url_over([each.port for each in self._links]))
        self._processes = [self.useFixture(processes.Conductor({
            "DEFAULT": {"transport_url": url},
            "database": {"connection": self._store.conf.database.connection},
            "notifications": {"snapshot_period": 10, "lease": 2},
            "conductor": {"host": f"host{number}", "workers": 1, "threads": 8,
                          "report_interval": 1}})) for number, url in enumerate(urls)]
        self.faults = [Fault("conductor killed", self._kill, 2),
                       Fault("relay killed", self._kill_relay, 2),
                       Fault("link cut", self._cut, 15),
                       Fault("conductor stopped", self._freeze)]

    def pids(self):
        """Return a dict of name to pid."""
        return {f"conductor {number}": each.process.pid
                for number, each in enumerate(self._processes)}

    def stop_snapshots(self):
        """Leave one conductor, which begins no snapshots: it publishes what is not yet published.

        A snapshot writes events at any time, so that the last event would never be known. One that
        has begun is completed.
        """
        for each in self._processes:
            each.kill()
        last, *_ = self._processes
        last.options["notifications"]["snapshot_period"] = 0
        last.write()
        last.start()
        base.wait_until(lambda: not snapshot.is_wanted(self._store.database), _SNAPSHOT_ENDS)

    def _kill(self):
        # Not the first, whose memory is watched.
        self._restart(self._processes[1])

    def _restart(self, conductor):
        conductor.kill()
        self._pause(0, 2)
        conductor.start()

    def _kill_relay(self):
        """Kill the conductor whose relay works, while it has events to publish."""
        ends = time.monotonic() + _RELAY_WORKS
        holder, works = None, False
        while time.monotonic() < ends and not works:
            try:
                holder, works = self._relay(holder)
            except (db_exception.DBError, exception.StoreUnavailable):
                # The store has no retries: its connection was to a server that is gone.
                time.sleep(0.1)
        number = int((holder or "host0").partition(".")[0].removeprefix("host"))
        self._restart(self._processes[number])

    def _relay(self, holder):
        """Return which process has the relay's lease, and whether there is anything to publish."""
        with self._store.database.reader() as tx:
            status = events.status(tx)
            holder = tx.execute(sa.select(models.leases.c.holder).where(
                models.leases.c.name == relay.LEASE)).scalar() or holder
        return holder, bool(holder) and bool(
            status["unpositioned"] or status["published_position"] < status["last_position"])

    def _cut(self):
        for each in self._links:
            each.cut()
        try:
            self._pause(_CUT_SECONDS, _CUT_SECONDS)
        finally:
            for each in self._links:
                each.mend()

    def _freeze(self):
        self._processes[1].freeze()
        try:
            self._pause(STOPPED_SECONDS, STOPPED_SECONDS)
        finally:
            self._processes[1].thaw()


