# SPDX-License-Identifier: Apache-2.0
"""The schema, the plans of hot queries, and the command that looks after them."""

import re
import subprocess
import sys

import sqlalchemy as sa
import testscenarios

from placement_rpc import exception
from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.db import migration, models
from placement_rpc.db.queries import bulk
from placement_rpc.objects import class_names
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers
from tests.benchmarks import fleet


class StoreTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(
            placement_fixtures.Store(servers.new_database(self.kind)))
        self.database = self.store.database

    def test_migrations_make_what_the_models_say(self):
        database = self.useFixture(
            placement_fixtures.Store(servers.new_empty_database(self.kind))).database
        self.assertEqual([], migration.differences(database))
        self.assertEqual(migration.newest(), migration.current(database))

    def test_syncing_again_changes_nothing(self):
        migration.sync(self.database, class_names.STANDARD_IDS)
        with self.database.reader() as tx:
            names = dict(tuple(row) for row in tx.execute(sa.select(
                models.resource_classes.c.name, models.resource_classes.c.id)))
        self.assertEqual(class_names.STANDARD_IDS, names)

    def test_an_empty_database_is_refused(self):
        directory = self.useFixture(placement_fixtures.fixtures.TempDir())
        url = servers.new_empty_database(self.kind) or f"sqlite:///{directory.join('empty')}"
        empty = db.Database(configuration.new_config(config_files=[], database__connection=url))
        self.addCleanup(empty.close)
        error = self.assertRaises(exception.SchemaOutdated, migration.check, empty)
        self.assertIn("placement-rpc-manage db sync", error.text)

    def test_a_ratio_keeps_its_digits(self):
        with self.database.writer() as tx:
            tx.execute(sa.insert(models.resource_providers), {
                "id": 1, "uuid": base.new_uuid(), "name": "p", "generation": 0,
                "created_at": bulk.now(), "updated_at": bulk.now()})
            tx.execute(sa.insert(models.inventories).values(
                resource_provider_id=1, resource_class_id=0, total=1, reserved=0, min_unit=1,
                max_unit=1, step_size=1, allocation_ratio=16.123456789, capacity=2 ** 62,
                used=0, created_at=bulk.now(), updated_at=bulk.now()))
            row = tx.execute(sa.select(models.inventories)).one()
        self.assertEqual((16.123456789, 2 ** 62), (row.allocation_ratio, row.capacity))

    def test_any_text_is_stored_as_it_is(self):
        """Also what separates texts on their way into PostgreSQL, and none at all."""
        insert = bulk.Insert(models.consumers, "uuid", "project_id", "user_id", "generation",
                             returning=("uuid", "id"))
        for texts in (["a\x1eb", "c"], ["", ""], [""], ["\x1e"], ["it's", '"{},\\'], ["ü", "x"]):
            rows = [(base.new_uuid(), text, "user", 1) for text in texts]
            with self.database.writer() as tx:
                ids = dict(map(tuple, insert.execute(tx, rows)))
                found = dict(map(tuple, tx.execute(sa.select(
                    models.consumers.c.uuid, models.consumers.c.project_id))))
            for uuid, text, _, _ in rows:
                self.assertEqual(text, found[uuid])
                self.assertIn(uuid, ids or found)

    def test_every_hot_statement_goes_by_an_index(self):
        fleet.grow(self.database, 2000)
        for column in (models.consumers.c.uuid, models.resource_providers.c.uuid,
                       models.requests.c.request_id, models.allocations.c.consumer_id,
                       models.inventories.c.resource_provider_id):
            value = base.new_uuid() if isinstance(column.type, sa.String) else 5
            plan = self.explain(sa.select(column.table).where(column == value))
            self.assertNotRegex(plan, self.full_scan(column.table), str(column))

    def explain(self, statement):
        keyword = "EXPLAIN QUERY PLAN" if self.kind == "sqlite" else "EXPLAIN"
        with self.database.reader() as tx:
            sql = str(statement.compile(tx.engine, compile_kwargs={"literal_binds": True}))
            rows = tx.execute(sa.text(f"{keyword} {sql.replace('%%', '%')}")).all()
        return "\n".join("\t".join(str(value) for value in row) for row in rows)

    def full_scan(self, table):
        """A pattern of what a plan says when all of a table is read."""
        return re.compile({
            "sqlite": rf"SCAN {table.name}\b",
            "postgresql": rf"Seq Scan on {table.name}\b",
            "mariadb": rf"\t{table.name}\tALL\t"}[self.kind])


class ManageTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = StoreTest.scenarios

    def manage(self, *arguments):
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.manage", *arguments],
            check=False, capture_output=True, text=True)

    def test_sync_and_version(self):
        directory = self.useFixture(placement_fixtures.fixtures.TempDir())
        url = servers.new_empty_database(self.kind) or f"sqlite:///{directory.join('new')}"
        before = self.manage("--database", url, "db", "version")
        self.assertEqual((1, "empty\n"), (before.returncode, before.stdout))
        self.assertIn("db sync", before.stderr)
        synced = self.manage("--database", url, "db", "sync")
        self.assertEqual(0, synced.returncode, synced.stderr)
        after = self.manage("--database", url, "db", "version")
        self.assertEqual((0, f"{migration.newest()}\n"), (after.returncode, after.stdout))
        again = self.manage("--database", url, "db", "sync")
        self.assertIn("already", again.stdout)
