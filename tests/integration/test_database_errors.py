# SPDX-License-Identifier: Apache-2.0
"""Transactions that a real database ends: which are retried, and the errors of the others."""

import threading

import sqlalchemy as sa
import testscenarios
import testtools
from oslo_db import exception as db_exc

from placement_rpc import exception
from placement_rpc.db import models
from placement_rpc.db.queries import providers, services, traits
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers as private_servers
from tests import base, database_sessions, servers
from tests.benchmarks import fleet

_READ_ONLY = {"postgresql": "SET TRANSACTION READ ONLY",
              "mariadb": "SET SESSION TRANSACTION READ ONLY"}
_TOO_LONG = {
    "postgresql": ("SET LOCAL statement_timeout = 10", "SELECT pg_sleep(30)"),
    "mariadb": ("SET STATEMENT max_statement_time = 0.01 FOR SELECT count(*) FROM"
                " seq_1_to_100000 AS a, seq_1_to_100000 AS b WHERE a.seq <> b.seq",)}


def _beat(tx):
    services.beat(tx, {"binary": "b", "host": "h", "worker": 1}, {
        "version": "1", "rpc_version": "1.0", "pin": None, "oldest_caller": None}, True)


class ServerErrorsTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES if kind != "sqlite"]

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(placement_fixtures.Store(
            servers.new_database(self.kind))).database

    def test_a_session_that_is_ended_is_a_lost_store(self):
        def end_and_go_on():
            with self.database.writer() as tx:
                database_sessions.end(self.kind, tx, self.database)
                _beat(tx)

        self.assertRaises(exception.StoreUnavailable, end_and_go_on)
        self.database.write(_beat)

    def test_a_change_whose_session_is_ended_is_made_again(self):
        """A server that restarts ends sessions, and so does one whose client pauses for long."""
        attempts = []

        def change(tx):
            attempts.append(tx)
            providers.insert(tx, base.new_uuid(), f"of attempt {len(attempts)}")
            if len(attempts) == 1:
                database_sessions.end(self.kind, tx, self.database)
                _beat(tx)

        self.database.write(change)
        with self.database.reader() as tx:
            self.assertEqual(
                ["of attempt 2"], [row.name for row in providers.page(tx, limit=10).rows])

    def test_a_change_whose_session_is_ended_again_is_given_up(self):
        attempts = []

        def change(tx):
            attempts.append(tx)
            database_sessions.end(self.kind, tx, self.database)
            _beat(tx)

        self.assertRaises(exception.StoreUnavailable, self.database.write, change)
        self.assertEqual(2, len(attempts))

    def test_a_change_whose_session_is_ended_before_commit_is_not_repeated(self):
        """The server may have committed it. The sender finds out by the id of its request."""
        attempts = []

        def change(tx):
            attempts.append(tx)
            _beat(tx)
            database_sessions.end(self.kind, tx, self.database)

        self.assertRaises(exception.StoreUnavailable, self.database.write, change)
        self.assertEqual(1, len(attempts))

    def test_a_server_that_only_reads_is_left(self):
        """As a primary becomes after a failover, while the connections to it stay open."""
        def change(tx):
            tx.exec_driver_sql(_READ_ONLY[self.kind])
            _beat(tx)

        self.assertRaises(exception.StoreUnavailable, self.database.write, change)
        self.database.write(_beat)

    def test_a_statement_that_is_cancelled_is_worth_another_try(self):
        def change(tx):
            for statement in _TOO_LONG[self.kind]:
                tx.exec_driver_sql(statement)

        self.assertRaises(exception.StoreBusy, self.database.write, change)

    def test_the_loser_of_a_deadlock_is_retried(self):
        names = sorted(fleet.grow(self.database, 2))
        meeting = threading.Barrier(2, timeout=30)
        attempts = []

        def change(tx, uuids):
            attempts.append(uuids)
            for uuid in uuids:
                tx.execute(sa.update(models.resource_providers).where(
                    models.resource_providers.c.uuid == uuid).values(
                        generation=models.resource_providers.c.generation + 1))
                if len(attempts) <= len(names) and uuid == uuids[0]:
                    meeting.wait()

        other = threading.Thread(target=self.database.write, args=(
            lambda tx: change(tx, names[::-1]),))
        other.start()
        self.database.write(lambda tx: change(tx, names))
        other.join()
        with self.database.reader() as tx:
            generations = tx.execute(sa.select(
                models.resource_providers.c.generation)).scalars().all()
        self.assertEqual([3, 3], generations)
        self.assertGreater(len(attempts), 2)


class ReferenceTest(testscenarios.WithScenarios, base.TestCase):
    """Foreign keys: what a change has read is deleted before it is referred to."""

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(placement_fixtures.Store(
            servers.new_database(self.kind))).database
        self.attempts = 0

    def give_a_trait(self, lost):
        """Return a change that gives a provider a trait, which is gone in the first attempts."""
        def change(tx):
            self.attempts += 1
            providers.insert(tx, base.new_uuid(), "its provider")
            trait = max(traits.ids(tx, ["HW_CPU_X86_AVX"]).values())
            provider = tx.execute(sa.select(models.resource_providers.c.id)).scalar()
            traits.link(tx, provider, [trait + 100_000 if self.attempts <= lost else trait])
        return change

    def test_a_change_is_made_although_it_was_late_several_times(self):
        self.database.write(self.give_a_trait(lost=8))
        self.assertEqual(9, self.attempts)
        with self.database.reader() as tx:
            self.assertEqual(
                ["its provider"], [row.name for row in providers.page(tx, limit=10).rows])

    def test_a_row_that_really_is_missing_is_reported(self):
        self.assertRaises(
            db_exc.DBReferenceError, self.database.write, self.give_a_trait(lost=99))
        self.assertEqual(10, self.attempts)


class SqliteErrorsTest(base.TestCase):

    def test_a_file_that_stays_locked_is_worth_another_try(self):
        database = self.useFixture(placement_fixtures.Store()).database

        with database.writer() as tx:
            self.assertRaises(exception.StoreBusy, self._write_at_once, database)
            _beat(tx)
        database.write(_beat)

    @staticmethod
    def _write_at_once(database):
        with database.reader() as tx:
            tx.exec_driver_sql("PRAGMA busy_timeout = 1")
            _beat(tx)


class LongStatementTest(testscenarios.WithScenarios, base.TestCase):
    """Statements that take longer than ``answer_timeout``."""

    scenarios = [
        ("postgresql", {"kind": "postgresql", "sleep": "SELECT 7 FROM (SELECT pg_sleep(2.5)) AS s"
                        }),
        ("mariadb", {"kind": "mariadb", "sleep": "SELECT 7 + sleep(2.5)"})]

    def test_one_is_not_given_up_while_the_server_executes_it(self):
        database = self.useFixture(placement_fixtures.Store(
            servers.new_database(self.kind), transactions__answer_timeout=1.0)).database
        attempts = []

        def write(tx):
            attempts.append(tx)
            _beat(tx)
            return tx.exec_driver_sql(self.sleep).scalar()

        self.assertEqual(7, database.write(write))
        self.assertEqual(1, len(attempts))


class FrozenServerTest(base.TestCase):
    """A MariaDB that does not answer, although its machine does."""

    def test_it_is_given_up(self):
        server = self.useFixture(private_servers.MariaDB())
        database = self.useFixture(placement_fixtures.Store(
            server.create_database(), transactions__answer_timeout=1.0)).database
        database.write(_beat)
        with testtools.ExpectedException(exception.StoreUnavailable), database.reader() as tx:
            server.freeze()
            self.addCleanup(server.thaw)
            # Its threads do not all stop at once.
            while True:
                tx.exec_driver_sql("SELECT 1")
        server.thaw()
        database.write(_beat)


class LockedTableTest(base.TestCase):
    """MariaDB would wait for a day for the lock of a table."""

    def test_a_statement_that_waits_for_it_is_given_up(self):
        database = self.useFixture(placement_fixtures.Store(
            servers.new_database("mariadb"), transactions__answer_timeout=1.0)).database
        with database.engine.connect() as other:
            other.exec_driver_sql("LOCK TABLES services WRITE")
            with database.reader() as tx:
                self.assertRaises(db_exc.DBConnectionError, tx.exec_driver_sql,
                                  "SELECT count(*) FROM services")
            other.exec_driver_sql("UNLOCK TABLES")
        database.write(_beat)


class PostgreSQLTest(base.TestCase):
    """What concerns PostgreSQL with standbys."""

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(placement_fixtures.Store(
            servers.new_database("postgresql"))).database

    def test_no_connection_to_a_standby_stays_in_the_pool(self):
        def session(tx):
            return tx.exec_driver_sql("SELECT pg_backend_pid()").scalar()

        with self.database.reader() as one, self.database.reader() as other:
            before = {session(one), session(other)}

        def write():
            with self.database.writer() as tx:
                tx.exec_driver_sql(_READ_ONLY["postgresql"])
                _beat(tx)

        self.assertRaises(exception.StoreUnavailable, write)
        with self.database.reader() as one, self.database.reader() as other:
            self.assertEqual(set(), before & {session(one), session(other)})
