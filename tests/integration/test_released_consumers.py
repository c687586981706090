# SPDX-License-Identifier: Apache-2.0
"""Deletions of allocations are found by their consumer, without reading the other events."""

import datetime

import sqlalchemy as sa
import testscenarios

from placement_rpc.db import models
from placement_rpc.db.queries import bulk, events
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers

_EVENTS = 4000
_INDEX = "ix_events_released"


class ReleasedTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(placement_fixtures.Store(
            servers.new_database(self.kind))).database
        self.now = bulk.now()

    def insert(self, count, event_type="allocation.delete", payload="{}", named=True, age=0):
        """Insert events; return the uuids of their consumers."""
        consumers = [base.new_uuid() for _ in range(count)]
        at = self.now - datetime.timedelta(seconds=age)
        with self.database.writer() as tx:
            tx.execute(sa.insert(models.events), [
                {"event_id": base.new_uuid(), "event_type": event_type, "occurred_at": at,
                 "payload": payload.replace("CONSUMER", consumer), "touched": "",
                 "released_consumer": consumer if named else None} for consumer in consumers])
        return consumers

    def released(self, consumers, age=100):
        with self.database.reader() as tx:
            return events.released_since(
                tx, consumers, self.now - datetime.timedelta(seconds=age))

    def test_those_of_this_release_and_of_older_ones(self):
        mine, theirs = self.insert(2), self.insert(2, payload='{"uuid": "CONSUMER"}', named=False)
        earlier = self.insert(2, age=200)
        claimed = self.insert(2, "allocation.create", '{"uuid": "CONSUMER"}', named=False)
        others = [base.new_uuid()]
        self.assertEqual({*mine, *theirs}, self.released(
            [*mine, *theirs, *earlier, *claimed, *others]))
        self.assertEqual(set(mine[:1]), self.released(mine[:1]))

    def test_both_statements_use_the_index(self):
        if self.kind == "sqlite":
            # Its planner is not told how the values are distributed.
            return
        self.insert(_EVENTS, age=10_000)
        self.insert(_EVENTS, "allocation.create", named=False, age=10_000)
        consumers = self.insert(2)
        with self.database.writer() as tx:
            tx.exec_driver_sql(
                "ANALYZE events" if self.kind == "postgresql" else "ANALYZE TABLE events")
        statements = []
        sa.event.listen(self.database.engine, "before_cursor_execute",
                        lambda *arguments: statements.append(arguments[2:4]))
        self.assertEqual(set(consumers), self.released(consumers))
        found = [each for each in statements if "released_consumer" in each[0]]
        self.assertEqual(2, len(found))
        with self.database.reader() as tx:
            for statement, parameters in found:
                plan = str(tx.exec_driver_sql(f"EXPLAIN {statement}", parameters).all())
                self.assertIn(_INDEX, plan)
