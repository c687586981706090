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
from tests.soak.faults import STOPPED_SECONDS, Fault
from tests.soak.links import Links

_NUMBER = 3
# For how long a link is cut: until after the heartbeats have found out.
_CUT_SECONDS = 20
# How much longer each message of a delayed link takes, in either direction. A transaction of ten
# statements then holds its locks for two seconds.
_DELAY_SECONDS = 0.1
# Seconds within which a conductor starts and completes a snapshot.
_SNAPSHOT_ENDS = 90
# What the store's errors are while a server of it is gone: it is read here without retries.
_AWAY = (db_exception.DBError, exception.StoreUnavailable)
# Seconds to wait for a relay that has something to publish.
_RELAY_WORKS = 5


class Conductors(fixtures.Fixture):
    """Conductors on a store; the last one reaches its servers through proxies.

    :param brokers: see :mod:`tests.soak.brokers`
    :param databases: see :mod:`tests.soak.databases`
    :param store: :class:`placement_rpc.testing.fixtures.Store`
    :param pause: callable of the least and the most seconds to wait
    :param snapshot_period: seconds between two snapshots
    """

    def __init__(self, brokers, databases, store, pause, snapshot_period):
        super().__init__()
        self._brokers, self._databases = brokers, databases
        self._store, self._pause = store, pause
        self._snapshot_period = snapshot_period

    def _setUp(self):
        broker, database = self._brokers.url, self._store.conf.database.connection
        self._broker_links = self.useFixture(Links(
            broker, [node.port for node in self._brokers.nodes]))
        self._database_links = self.useFixture(Links(database, self._databases.ports))
        urls = [(broker, database)] * (_NUMBER - 1)
        urls.append((self._broker_links.url, self._database_links.url))
        self._processes = [
            self.useFixture(processes.Conductor({
                "DEFAULT": {"transport_url": to_broker},
                "database": {"connection": to_database},
                "notifications": {"snapshot_period": self._snapshot_period, "lease": 2},
                "conductor": {"host": f"host{number}", "workers": 1, "threads": 8,
                              "report_interval": 1}}))
            for number, (to_broker, to_database) in enumerate(urls)]
        self.faults = [Fault("conductor killed", self._kill, 2),
                       Fault("relay killed", self._kill_relay, 2),
                       Fault("broker link cut", lambda: self._cut(self._broker_links), 15),
                       Fault("links delayed", self._delay),
                       Fault("conductor stopped", self._freeze)]
        if self._databases.ports:
            self.faults.append(Fault(
                "database link cut", lambda: self._cut(self._database_links), 15))

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
        base.wait_until(self._has_no_snapshot, _SNAPSHOT_ENDS)

    def _has_no_snapshot(self):
        """Return whether none is under way; False while a node that was killed is joining."""
        try:
            return not snapshot.is_wanted(self._store.database)
        except _AWAY:
            return False

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
            except _AWAY:
                time.sleep(0.1)
        if not works:
            raise TimeoutError("no relay had events to publish")
        number = int(holder.partition(".")[0].removeprefix("host"))
        self._restart(self._processes[number])

    def _relay(self, holder):
        """Return which process has the relay's lease, and whether there is anything to publish."""
        with self._store.database.reader() as tx:
            status = events.status(tx)
            holder = tx.execute(sa.select(models.leases.c.holder).where(
                models.leases.c.name == relay.LEASE)).scalar() or holder
        return holder, bool(holder) and bool(
            status["unpositioned"] or status["published_position"] < status["last_position"])

    def _cut(self, links):
        with links.are_cut():
            self._pause(_CUT_SECONDS, _CUT_SECONDS)

    def _delay(self):
        with (self._broker_links.are_delayed(_DELAY_SECONDS),
              self._database_links.are_delayed(_DELAY_SECONDS)):
            self._pause(_CUT_SECONDS, _CUT_SECONDS)

    def _freeze(self):
        self._processes[1].freeze()
        try:
            self._pause(STOPPED_SECONDS, STOPPED_SECONDS)
        finally:
            self._processes[1].thaw()


