# SPDX-License-Identifier: Apache-2.0
"""A clock of one machine was wrong, and is right again: what it has left does no harm."""

import datetime
import time

import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.db import models
from placement_rpc.db.queries import bulk, events, leases
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base
from tests.functional.reconciliation_case import ReconciliationCase

_AHEAD = datetime.timedelta(hours=2)


class LeaseTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(placement_fixtures.Store()).database
        self.seconds = 0.0
        self.patch(time, "monotonic", lambda: self.seconds)

    def acquire(self, watch=None):
        return self.database.write(lambda tx: leases.acquire(tx, "task", "this", 5, watch))

    def hold(self):
        """Hold the lease as another process whose clock is ahead."""
        self.database.write(lambda tx: leases.acquire(tx, "task", "other", 5))
        self.database.write(lambda tx: tx.execute(sa.update(models.leases).values(
            expires_at=bulk.now() + _AHEAD + datetime.timedelta(seconds=self.seconds))))

    def test_one_that_nobody_renews_is_taken_although_it_ends_later(self):
        watch = leases.Watch()
        self.hold()
        for self.seconds in (0, 30, 50):
            self.assertFalse(self.acquire(watch))
        self.seconds = 51
        self.assertFalse(self.acquire())
        self.assertTrue(self.acquire(watch))

    def test_one_that_is_renewed_is_not(self):
        watch = leases.Watch()
        for self.seconds in range(0, 200, 40):
            self.hold()
            self.assertFalse(self.acquire(watch))


class PruningTest(base.TestCase):

    def test_an_event_of_the_future_is_as_old_as_those_that_follow_it(self):
        self.prune([90, -120, 90, -120, 10], [3, 0])

    def test_many_of_them_in_a_row(self):
        self.prune([90, -120, -120, -120, -120, 90, 10], [2, 2, 2, 0], limit=2)
        self.prune([-120, -120, -120, -120, 10, 90], [0], limit=2)
        self.prune([-120, -120, -120, -120], [0], limit=2)

    def prune(self, ages, wanted, limit=5000):
        """Prune what is older than 50 minutes, several times.

        :param ages: the minutes since each event
        :param wanted: how many are deleted each time
        """
        database = self.useFixture(placement_fixtures.Store()).database
        now = bulk.now()
        with database.writer() as tx:
            events.state(tx, lock=True)
            tx.execute(sa.insert(models.events), [{
                "event_id": base.new_uuid(), "event_type": "trait.create", "payload": "{}",
                "occurred_at": now - datetime.timedelta(minutes=age), "position": position}
                for position, age in enumerate(ages, 1)])
            tx.execute(sa.update(models.relay_state).values(
                last_position=len(ages), published_position=len(ages)))
            before = now - datetime.timedelta(minutes=50)
            self.assertEqual(wanted, [events.prune(tx, before, limit) for _ in wanted])


class RestoreTest(ReconciliationCase):
    """The newest event of a backup has the time of a wrong clock."""

    def lose_two(self):
        """Lose two changes, after which the store begins with an event of the wrong time."""
        self.save()
        self.claim(2)
        self.claim(4, self.kept)
        return self.lose()

    def put_ahead(self, how_far):
        self.database.write(lambda tx: tx.execute(
            sa.update(models.events).values(occurred_at=bulk.now() + how_far)))

    def assert_found(self, last):
        found, _ = self.reconcile()
        self.assertEqual((2, last - 2, last), (len(found.lost), found.agreed, found.last))
        self.assert_books()

    def test_it_is_in_the_future(self):
        last = self.lose_two()
        self.put_ahead(_AHEAD)
        self.assert_found(last)

    def test_it_is_after_the_last_event_of_the_stream(self):
        last, read = self.lose_two(), self.stream.read

        def read_nothing(start):
            if start != "first":
                raise exception.ServiceUnavailable(reason="nothing came")
            return read(start)

        self.patch(self.stream, "read", read_nothing)
        self.assert_found(last)

    def test_it_is_after_events_that_are_lost(self):
        last, read = self.lose_two(), self.stream.read
        self.patch(self.stream, "read", lambda start: read(start)[0 if start == "first" else -1:])
        self.assert_found(last)

    def test_a_broker_that_is_lost_while_it_is_read_is_an_error(self):
        self.lose_two()
        read = self.stream.read

        def read_one(start):
            yield read(start)[0]
            raise exception.ServiceUnavailable(reason="the broker is away")

        self.patch(self.stream, "read", read_one)
        self.assertRaises(exception.ServiceUnavailable, self.compare)
