# SPDX-License-Identifier: Apache-2.0
"""Many events wait for their positions: what the relay reads of them for a batch."""

import sqlalchemy as sa
import testscenarios

from placement_rpc.db import models
from placement_rpc.db.queries import bulk, events, leases, relaying
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers

_MANY, _BATCH = 3000, 10


class _WaitingTest(base.TestCase):

    kind = "postgresql"

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(
            placement_fixtures.Store(servers.new_database(self.kind))).database
        with self.database.writer() as tx:
            self.assertTrue(leases.acquire(tx, "relay", "test", 600))

    def write_events(self, number):
        """Write events; return their ids in order."""
        found = [base.new_uuid() for _ in range(number)]
        self.database.write(lambda tx: events.insert(tx, [
            events.NewEvent(each, "allocation.create", bulk.now(), "{}", "") for each in found]))
        return found

    @staticmethod
    def next_batch(tx, confirmed=None):
        """Return the ids and the positions of the next events."""
        batch = relaying.next_batch(tx, "relay", "test", confirmed, _BATCH)
        return [(row.event_id, row.position) for row in batch.rows]


class OrderTest(testscenarios.WithScenarios, _WaitingTest):

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def test_they_are_read_in_their_order_batch_by_batch(self):
        written = self.write_events(3 * _BATCH)
        found, confirmed = [], None
        for start in range(0, 3 * _BATCH, _BATCH):
            with self.database.writer() as tx:
                found += self.next_batch(tx, confirmed)
            confirmed = start, start + _BATCH
        self.assertEqual(list(zip(written, range(1, 3 * _BATCH + 1), strict=True)), found)


class ManyWaitTest(_WaitingTest):
    """PostgreSQL; MariaDB reads all that wait."""

    @staticmethod
    def rows_read(tx):
        """Return how many events this session has read."""
        return tx.exec_driver_sql(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables"
            " WHERE relname = 'events'").scalar()

    def test_a_batch_does_not_read_all_that_wait(self):
        """Even if none waited when the server made its statistics."""
        self.assertEqual([], self.database.write(self.next_batch))
        self.write_events(_MANY)
        with self.database.writer() as tx:
            tx.execute(sa.update(models.events).values(position=models.events.c.id))
            tx.execute(sa.update(models.relay_state).values(
                last_position=_MANY, published_position=_MANY))
        with self.database.engine.connect().execution_options(
                isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE events")
        self.write_events(_MANY)
        with self.database.writer() as tx:
            before = self.rows_read(tx)
            self.assertEqual(_BATCH, len(self.next_batch(tx)))
            # Each is read once, and once more to get its position.
            self.assertEqual(2 * _BATCH, self.rows_read(tx) - before)

    def test_the_index_has_no_event_that_got_its_position(self):
        with self.database.reader() as tx:
            found = tx.exec_driver_sql("SELECT pg_get_indexdef('ix_events_waiting'::regclass)")
            self.assertIn('WHERE ("position" IS NULL)', found.scalar())
