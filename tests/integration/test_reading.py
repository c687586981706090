# SPDX-License-Identifier: Apache-2.0
"""Reading transactions leave the connections of the pool as writing ones need them."""

import sqlalchemy as sa
import testscenarios

from placement_rpc import exception
from placement_rpc.db import api as db
from placement_rpc.db.queries import providers
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, database_sessions, servers


class ReadingTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def setUp(self):
        super().setUp()
        conf = self.useFixture(placement_fixtures.Store(servers.new_database(self.kind))).conf
        # One connection, which all transactions use in turn.
        self.database = db.Database(conf, connections=1)
        self.addCleanup(self.database.close)
        self.other = db.Database(conf)
        self.addCleanup(self.other.close)

    def names(self):
        with self.database.reader() as tx:
            return [row.name for row in providers.page(tx, limit=10).rows]

    def fail_to_write(self):
        def change(tx):
            providers.insert(tx, base.new_uuid(), "forgotten")
            raise ZeroDivisionError

        self.assertRaises(ZeroDivisionError, self.database.write, change)

    def test_a_change_that_fails_is_rolled_back(self):
        self.assertEqual([], self.names())
        self.fail_to_write()
        self.database.write(lambda tx: providers.insert(tx, base.new_uuid(), "kept"))
        self.assertEqual(["kept"], self.names())

    def test_reads_that_fail(self):
        def fails(tx):
            tx.execute(sa.select(sa.literal(1)))
            raise ZeroDivisionError

        def wrong(tx):
            tx.exec_driver_sql("SELECT nothing FROM nowhere")

        for snapshot in (False, True):
            for read, error in ((fails, ZeroDivisionError), (wrong, Exception)):
                def attempt(read=read, snapshot=snapshot):
                    with self.database.reader(snapshot) as tx:
                        read(tx)

                self.assertRaises(error, attempt)
                self.fail_to_write()
                self.assertEqual([], self.names())

    def test_a_snapshot_sees_one_state(self):
        with self.database.reader(snapshot=True) as tx:
            self.assertEqual([], providers.page(tx, limit=10).rows)
            self.other.write(lambda tx: providers.insert(tx, base.new_uuid(), "later"))
            self.assertEqual([], providers.page(tx, limit=10).rows)
        self.assertEqual(["later"], self.names())

    def test_a_session_that_was_ended(self):
        if self.kind == "sqlite":
            # It has no sessions.
            return

        def attempt():
            with self.database.reader() as tx:
                database_sessions.end(self.kind, tx, self.other)
                providers.page(tx, limit=1)

        self.assertRaises(exception.StoreUnavailable, attempt)
        self.assertEqual([], self.names())
        self.fail_to_write()
        self.assertEqual([], self.names())

    def test_a_session_that_was_ended_after_its_last_statement(self):
        """What was read is right; the one that has the connection next may learn of it."""
        if self.kind == "sqlite":
            # It has no sessions.
            return

        def read(fails, snapshot):
            with self.database.reader(snapshot) as tx:
                found = [row.name for row in providers.page(tx, limit=10).rows]
                database_sessions.end(self.kind, tx, self.other)
                if fails:
                    raise ZeroDivisionError
                return found

        for snapshot in (False, True):
            self.assertEqual([], read(False, snapshot))
            self.await_connection()
            self.assertRaises(ZeroDivisionError, read, True, snapshot)
            self.await_connection()
            self.fail_to_write()
            self.assertEqual([], self.names())

    def await_connection(self):
        """Read once more, which is refused at the most once."""
        try:
            self.names()
        except exception.StoreUnavailable:
            self.names()
