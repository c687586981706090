# SPDX-License-Identifier: Apache-2.0
"""Heartbeats go on while housekeeping is stuck, and housekeeping keeps to its time."""

import contextlib
import datetime
import threading
from unittest import mock

import sqlalchemy as sa
import testscenarios

from placement_rpc import manager
from placement_rpc.candidates import live_index
from placement_rpc.candidates.search import CandidateSearch
from placement_rpc.db import models
from placement_rpc.db.queries import bulk
from placement_rpc.service.heartbeat import Heartbeat
from placement_rpc.service.housekeeping import StoreHousekeeping
from placement_rpc.service.http import HTTPService
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.upgrade import gate
from tests import base


class _HeldStore:
    """A database of which some transactions wait until ``release`` is set.

    :param database: :class:`placement_rpc.db.api.Database`
    :param held: str, what the writing transactions that wait are for; ``read`` for those that read
    """

    def __init__(self, database, held):
        self._database = database
        self._held = held
        self.asked, self.release = threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self._database, name)

    def _hold(self, what):
        if what == self._held:
            self.asked.set()
            self.release.wait()

    def write(self, change, method="change", **options):
        self._hold(method)
        return self._database.write(change, method, **options)

    @contextlib.contextmanager
    def reader(self, snapshot=False, causal=True):
        self._hold("read")
        with self._database.reader(snapshot, causal) as tx:
            yield tx


class HeartbeatTest(testscenarios.WithScenarios, base.TestCase):
    """A worker whose housekeeping waits for the store still shows that it is alive."""

    scenarios = [("pruning", {"held": "prune"}), ("a snapshot", {"held": "snapshot"}),
                 ("index verification", {"held": "read"})]

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(placement_fixtures.Store(
            conductor__report_interval=1, conductor__service_down_time=2))
        self.manager = manager.Manager(self.store.conf, self.store.database)
        self.manager.candidates.index.wait_until_ready()

    def seen(self):
        with self.store.database.reader() as tx:
            return tx.execute(sa.select(models.services.c.last_seen_at)).scalar()

    def test_heartbeats_go_on(self):
        held = _HeldStore(self.store.database, self.held)
        if self.held == "read":
            self.manager.candidates = CandidateSearch(held)
            held.release.set()
            self.manager.candidates.index.wait_until_ready()
            held.release.clear()
            held.asked.clear()
        else:
            self.manager.database = held
        heartbeat = Heartbeat(self.store.conf, self.manager, "conductor", "host", 0)
        housekeeping = StoreHousekeeping(self.store.conf, self.manager, "holder")
        heartbeat.start()
        self.addCleanup(heartbeat.stop)
        housekeeping.start()
        self.addCleanup(housekeeping.stop)
        self.addCleanup(held.release.set)
        self.assertTrue(held.asked.wait(60))
        for _ in range(2):
            before = self.seen()
            base.wait_until(lambda: self.seen() > before)  # noqa: B023
        # It does not count as down, although it is stuck for longer than that takes.
        base.wait_until(lambda: self.seen() > bulk.now() - datetime.timedelta(seconds=1))
        with self.store.database.reader() as tx:
            self.assertEqual(1, len(gate.alive(tx, 2)))
        self.assertFalse(held.release.is_set())


class FacadeTest(base.TestCase):

    def test_it_ends_while_its_index_is_built(self):
        store = self.useFixture(placement_fixtures.Store())
        is_built, began = threading.Event(), threading.Event()
        build = live_index.FollowedIndex

        def slow(reader):
            began.set()
            is_built.wait(60)
            return build(reader)

        self.addCleanup(is_built.set)
        with mock.patch.object(live_index, "FollowedIndex", slow):
            service = HTTPService(store.conf)
            self.assertTrue(began.wait(60))
            closing = threading.Thread(target=service.close)
            closing.start()
            closing.join(60)
            self.assertFalse(closing.is_alive())
            self.assertFalse(is_built.is_set())


class PruneTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(placement_fixtures.Store())
        self.housekeeping = StoreHousekeeping(self.store.conf, manager.Manager(
            self.store.conf, self.store.database), "holder")
        old = bulk.now() - datetime.timedelta(days=30)
        with self.store.database.writer() as tx:
            tx.execute(sa.insert(models.requests), [
                {"request_id": f"r{number}", "method": "m", "fingerprint": "f", "outcome": "{}",
                 "created_at": old} for number in range(12_000)])
            tx.execute(sa.insert(models.command_attempts), [
                {"command_id": f"c{number}", "attempts": 1, "tried_at": old}
                for number in range(10)])

    def left(self):
        with self.store.database.reader() as tx:
            return [tx.execute(sa.select(sa.func.count()).select_from(table)).scalar()
                    for table in (models.requests, models.command_attempts)]

    def test_it_stops_in_time_and_every_kind_gets_its_share(self):
        self.assertFalse(self.housekeeping.prune(seconds=0))
        self.assertEqual([7_000, 0], self.left())
        self.assertTrue(self.housekeeping.prune(seconds=60))
        self.assertEqual([0, 0], self.left())
