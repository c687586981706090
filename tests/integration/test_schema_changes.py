# SPDX-License-Identifier: Apache-2.0
"""Changes of the schema that are interrupted, that two processes make, or that have to wait."""

import contextlib
import queue
import threading

import fixtures
import sqlalchemy as sa
import testscenarios

from placement_rpc import exception
from placement_rpc.accounting import traits
from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.db import migration, schema_version
from placement_rpc.db.migrations import online
from placement_rpc.objects import class_names
from tests import base, servers


class Killed(BaseException):
    """Ends a change in the middle, as the end of its process does."""


class SchemaTest(testscenarios.WithScenarios, base.TestCase):
    """A test with an empty database."""

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def setUp(self):
        super().setUp()
        directory = self.useFixture(fixtures.TempDir())
        self.url = servers.new_empty_database(self.kind) or f"sqlite:///{directory.join('store')}"
        self.database = self.connect()

    def connect(self):
        """Return the store as another process has it."""
        database = db.Database(configuration.new_config(
            config_files=[], database__connection=self.url), create=True)
        self.addCleanup(database.close)
        return database

    def sync(self, database=None):
        return migration.sync(
            database or self.database, class_names.STANDARD_IDS, traits.STANDARD)


class InterruptionTest(SchemaTest):

    def killed_after_each_statement(self, change):
        """Repeat a change until it ends; it is killed once after each statement of the schema.

        :returns: int, how often it was killed
        """
        seen = set()

        def kill(connection, _cursor, statement, *_arguments):
            if statement.strip().startswith(("CREATE", "ALTER", "DROP")) and (
                    statement not in seen):
                seen.add(statement)
                if self.kind != "sqlite":
                    # So that its server notices, as at the end of a process.
                    connection.connection.dbapi_connection.close()
                raise Killed

        sa.event.listen(self.database.engine, "after_cursor_execute", kill)
        while True:
            with contextlib.suppress(Killed):
                change()
                sa.event.remove(self.database.engine, "after_cursor_execute", kill)
                return len(seen)

    def test_one_that_is_killed_goes_on_when_it_is_run_again(self):
        self.assertGreater(self.killed_after_each_statement(self.sync), 30)
        self.assertEqual([], migration.differences(self.database))
        self.assertGreater(self.killed_after_each_statement(
            lambda: migration.contract(self.database)), 0)
        self.assertTrue(schema_version.is_contracted(self.database))


class TwoAtOnceTest(SchemaTest):

    def test_they_wait_for_each_other(self):
        for change in (self.sync, migration.contract):
            done = queue.SimpleQueue()
            barrier = threading.Barrier(2)

            def begin(change=change, barrier=barrier, done=done):
                database = self.connect()
                barrier.wait()
                try:
                    done.put(change(database))
                except Exception as error:
                    done.put(error)

            for _ in range(2):
                threading.Thread(target=begin, daemon=True).start()
            first, second = (done.get(timeout=60) for _ in range(2))
            self.assertEqual((str, first), (type(first), second))
        self.assertTrue(schema_version.is_contracted(self.database))

    def test_the_other_one_is_of_a_later_release(self):
        """It applies revisions that this release does not know."""
        self.sync()
        for later, change in (("0013", self.sync), ("c002", migration.contract)):
            with self.database.writer() as tx:
                tx.execute(sa.text("DELETE FROM alembic_version"))
            wait = migration._wait_for_others

            def others(connection, later=later, wait=wait):
                wait(connection)
                connection.execute(sa.text("INSERT INTO alembic_version VALUES (:it)"), {
                    "it": later})

            self.patch(migration, "_wait_for_others", others)
            change(self.database)
            self.patch(migration, "_wait_for_others", wait)
            with self.database.reader() as tx:
                self.assertEqual([later], tx.scalars(
                    sa.text("SELECT version_num FROM alembic_version")).all())
        with self.database.writer() as tx:
            tx.execute(sa.text("UPDATE alembic_version SET version_num = '0013'"))
        self.assertRaises(exception.SchemaLater, migration.contract, self.database)


class WaitingTest(SchemaTest):

    # Readers do not keep SQLite from changes.
    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES if kind != "sqlite"]

    def test_a_contraction_does_not_stop_reports_for_as_long_as_a_backup_takes(self):
        self.sync()
        self.patch(online, "PATIENCE", 1)
        backup = self.connect()
        with backup.engine.connect() as reading:
            reading.execute(sa.text("SELECT count(*) FROM compute_nodes"))
            self.assertRaises(exception.StoreBusy, migration.contract, self.database)
        self.assertFalse(schema_version.is_contracted(self.database))
        migration.contract(self.database)
        self.assertTrue(schema_version.is_contracted(self.database))
