# SPDX-License-Identifier: Apache-2.0
"""The schema, the plans of hot queries, and the command that checks them."""

import itertools
import re
import subprocess
import sys
import threading
from concurrent import futures

import sqlalchemy as sa
import testscenarios
from testtools import matchers

from placement_rpc import exception
from placement_rpc.accounting import batch, idempotency, inventory_batch, traits
from placement_rpc.accounting import claims as claim_changes
from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.db import migration, models, schema_version, standards
from placement_rpc.db.queries import bulk, claims, events, requests
from placement_rpc.objects import class_names
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers
from tests.benchmarks import fleet

_TEXTS = ("a\x1eb", "", "\x1e", "it's :now %s", '"{},\\', "\\u0041\n\t", "ü€𝄞", "null", "{}")


def _request(method):
    return idempotency.Request(base.new_uuid(), method, "f" * 64)


def _claim(database, uuids):
    """A claim on each provider, all in one transaction."""
    return batch.settle(database, [claim_changes.ClaimChange(
        _request("claim_allocations"), base.claim({uuid: dict.fromkeys(fleet.AMOUNTS, 1)}))
        for uuid in uuids])


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
        self.assertEqual(schema_version.newest(), schema_version.current(database))

    def test_syncing_again_changes_nothing(self):
        migration.sync(self.database, class_names.STANDARD_IDS, traits.STANDARD)
        with self.database.reader() as tx:
            names = dict(tuple(row) for row in tx.execute(sa.select(
                models.resource_classes.c.name, models.resource_classes.c.id)))
        self.assertEqual(class_names.STANDARD_IDS, names)

    def test_standard_names_are_inserted_by_several_conductors_at_once(self):
        """Each finds what another has inserted meanwhile; what is there stays as it is."""
        names = ["HW_CPU_X86_AVX2", "COMPUTE_NODE"]
        with self.database.writer() as tx:
            tx.execute(sa.insert(models.traits), {
                "name": "CUSTOM_A", "created_at": bulk.now(), "updated_at": bulk.now()})
            tx.execute(sa.delete(models.traits).where(models.traits.c.name.in_(names)))
            tx.execute(sa.delete(models.resource_classes).where(
                models.resource_classes.c.name == "PCPU"))
        before = self.standards()
        barrier = threading.Barrier(6)

        def begin():
            barrier.wait()
            standards.insert_missing(self.database, class_names.STANDARD_IDS, traits.STANDARD)

        with futures.ThreadPoolExecutor(6) as pool:
            for done in [pool.submit(begin) for _ in range(6)]:
                done.result()
        classes, found = self.standards()
        self.assertEqual(class_names.STANDARD_IDS, classes)
        self.assertEqual({*traits.STANDARD, "CUSTOM_A"}, set(found))
        self.assertEqual(set(names), {name for name, row in found.items()
                                      if row not in before[1].values()})

    def standards(self):
        """Return a dict of name to id of all classes, and of all traits."""
        with self.database.reader() as tx:
            return [dict(tuple(row) for row in tx.execute(sa.select(
                table.c.name, table.c.id))) for table in (models.resource_classes, models.traits)]

    def test_the_time_of_the_database_is_that_of_the_tables(self):
        before = bulk.now()
        with self.database.reader() as tx:
            at = bulk.now_of(tx)
        # On this machine both have the same clock.
        self.assertTrue(before <= at <= bulk.now(), (before, at))

    def test_an_empty_database_is_refused(self):
        directory = self.useFixture(placement_fixtures.fixtures.TempDir())
        url = servers.new_empty_database(self.kind) or f"sqlite:///{directory.join('empty')}"
        empty = db.Database(
            configuration.new_config(config_files=[], database__connection=url), create=True)
        self.addCleanup(empty.close)
        error = self.assertRaises(exception.SchemaOutdated, schema_version.check, empty)
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
        """What has a meaning in JSON, in SQL or in arrays is stored too, and so is nothing."""
        insert = bulk.Insert(models.consumers, "uuid", "project_id", "user_id", "generation",
                             returning=("uuid", "id"))
        for texts in (_TEXTS, [""]):
            rows = [(base.new_uuid(), text, "user", 1) for text in texts]
            with self.database.writer() as tx:
                ids = dict(map(tuple, insert.execute(tx, rows)))
                found = dict(map(tuple, tx.execute(sa.select(
                    models.consumers.c.uuid, models.consumers.c.project_id))))
            for uuid, text, _, _ in rows:
                self.assertEqual(text, found[uuid])
                self.assertIn(uuid, ids or found)

    def test_the_changes_of_claims_are_stored_as_they_are(self):
        occurred_at = bulk.now()
        fleet.grow(self.database, 1)
        consumers = [claims.NewConsumer(base.new_uuid(), text, "user", 1) for text in _TEXTS]
        with self.database.writer() as tx:
            provider, = tx.execute(sa.select(models.resource_providers)).all()
            inventory = claims.inventories_of(tx, [provider.id])[0]
            self.assertTrue(claims.write(tx, {
                "consumers": consumers,
                "allocations": [claims.NewAllocation(
                    None, each.uuid, provider.id, inventory.resource_class_id, 1)
                    for each in consumers],
                "used": [claims.UsedAmount(inventory.id, len(consumers))],
                "generations": [claims.GenerationChange(provider.id, provider.generation, 9)],
                "events": [events.NewEvent(base.new_uuid(), "type", occurred_at, text, touched)
                           for text, touched in zip(
                               _TEXTS, ["", None, *_TEXTS[2:]], strict=True)],
                "requests": [requests.NewRequest(f"id {number}", "method", "fingerprint", text)
                             for number, text in enumerate(_TEXTS)]}))
            held = claims.held(tx, [row.id for row in claims.lock_consumers(
                tx, [each.uuid for each in consumers])])
            stored = tx.execute(sa.select(models.events).order_by(models.events.c.id)).all()
            outcomes = requests.find(tx, [f"id {number}" for number in range(len(_TEXTS))])
            after, = claims.lock_providers(tx, [provider.uuid])
            used = [row.used for row in claims.inventories_of(tx, [provider.id])
                    if row.id == inventory.id]
        self.assertEqual([1] * len(consumers), [row.used for row in held])
        self.assertEqual(len(consumers), len({row.consumer_id for row in held}))
        self.assertEqual([(text, occurred_at) for text in _TEXTS],
                         [(row.payload, row.occurred_at) for row in stored])
        self.assertEqual(["", None, *_TEXTS[2:]], [row.touched for row in stored])
        self.assertEqual(list(_TEXTS), [
            outcomes[f"id {number}"].outcome for number in range(len(_TEXTS))])
        self.assertEqual((9, [len(consumers)]), (after.generation, used))

    def test_claims_are_not_written_over_another_generation(self):
        fleet.grow(self.database, 1)
        with self.database.writer() as tx:
            provider, = tx.execute(sa.select(models.resource_providers)).all()
            self.assertFalse(claims.write(tx, {
                "consumers": [], "allocations": [], "used": [], "events": [], "requests": [],
                "generations": [claims.GenerationChange(
                    provider.id, provider.generation + 1, provider.generation + 2)]}))
            after, = claims.lock_providers(tx, [provider.uuid])
        self.assertEqual(provider.generation, after.generation)

    def test_every_hot_statement_goes_by_an_index(self):
        uuids = fleet.grow(self.database, 2000, analyse=False)
        for start in range(0, 1500, 500):
            _claim(self.database, uuids[start:start + 500])
        fleet.grow(self.database, 2001)
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
        """Return a pattern for a plan that reads all of a table."""
        return re.compile({
            "sqlite": rf"SCAN {table.name}\b",
            "postgresql": rf"Seq Scan on {table.name}\b",
            "mariadb": rf"\t{table.name}\tALL\t"}[self.kind])


class PlansTestCase(base.TestCase):
    """The rows that PostgreSQL reads for claims and inventories, with plans of any age.

    Autovacuum is off: nothing is analysed unless a test does it.
    """

    size = 3000

    def setUp(self):
        super().setUp()
        # Thousands of rows are made within a transaction.
        self.database = self.useFixture(placement_fixtures.Store(
            servers.new_database("postgresql"), transactions__idle_timeout=60.0)).database
        with self.database.writer() as tx:
            for name in models.metadata.tables:
                tx.exec_driver_sql(f"ALTER TABLE {name} SET (autovacuum_enabled = false)")

    def analyse(self):
        with self.database.engine.connect() as connection:
            connection.execution_options(
                isolation_level="AUTOCOMMIT").exec_driver_sql("ANALYZE")

    def grow(self, size):
        return fleet.grow(self.database, size, analyse=False)

    def work(self, uuids, times):
        for number in range(times):
            self.settle([uuids[number % len(uuids)]])

    def settle(self, uuids):
        """A claim and a report of inventories for each provider, all of them together."""
        claimed = _claim(self.database, uuids)
        reported = batch.settle(self.database, [inventory_batch.InventoryReplacement(
            _request("set_inventory"), uuid, [
                base.inventory(name, 10_000 + next(self.totals)) for name in fleet.AMOUNTS])
            for uuid in uuids])
        self.assertEqual([None] * 2 * len(uuids), [each.error for each in claimed + reported])

    totals = itertools.count()

    def read_by(self, uuids, together=1):
        """Return the number of rows that full scans of the tables that grew have read."""
        before = self.rows_read()
        for start in range(0, len(uuids), together):
            self.settle(uuids[start:start + together])
        return self.rows_read() - before

    def rows_read(self):
        with self.database.reader() as tx:
            tx.exec_driver_sql("SELECT pg_stat_force_next_flush()")
            return int(tx.exec_driver_sql(
                "SELECT sum(seq_tup_read) FROM pg_stat_user_tables"
                " WHERE relname IN ('resource_providers', 'inventories')").scalar())


class GrowingStoreTest(testscenarios.WithScenarios, PlansTestCase):

    scenarios = [(name, {"analysed": analysed}) for name, analysed in (
        ("never", ()), ("empty", ("empty",)), ("small", ("small",)),
        ("empty and small", ("empty", "small")))]

    def test_no_table_is_read_whole_for_each_row(self):
        if "empty" in self.analysed:
            self.analyse()
        self.work(self.grow(3), times=20)
        if "small" in self.analysed:
            self.analyse()
        self.work(self.grow(4), times=20)
        # Statistics of a few providers say that each of those has a large share of all rows.
        uuids = self.grow(self.size)[4:]
        # As if so many seconds had passed.
        self.database.plan_lifetime = 0
        self.assertThat(self.read_by(uuids[:10]), matchers.LessThan(self.size))
        self.assertThat(self.read_by(uuids[:100], together=100), matchers.LessThan(10 * self.size))
        self.analyse()
        self.assertThat(self.read_by(uuids[:10]), matchers.LessThan(self.size))
        self.assertThat(self.read_by(uuids[:100], together=100), matchers.LessThan(10 * self.size))


class KeptPlansTest(PlansTestCase):

    def test_plans_are_kept_until_their_time_is_over(self):
        """Otherwise the test of a growing store would prove nothing."""
        self.work(self.grow(3), times=20)
        self.analyse()
        self.work(self.grow(4), times=20)
        self.database.plan_lifetime = 1000
        self.assertThat(self.read_by(self.grow(self.size)[:100], together=100),
                        matchers.GreaterThan(100 * self.size))


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
        # A file of SQLite does not exist before.
        self.assertEqual((1, "" if self.kind == "sqlite" else "empty\n"),
                         (before.returncode, before.stdout))
        self.assertIn("db sync", before.stderr)
        synced = self.manage("--database", url, "db", "sync")
        self.assertEqual(0, synced.returncode, synced.stderr)
        after = self.manage("--database", url, "db", "version")
        self.assertEqual((0, f"{schema_version.newest()}\n"), (after.returncode, after.stdout))
        again = self.manage("--database", url, "db", "sync")
        self.assertIn("already", again.stdout)
