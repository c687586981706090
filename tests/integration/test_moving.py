# SPDX-License-Identifier: Apache-2.0
"""A cloud moves over from OpenStack Placement, and back, on all three databases.

What the services tell over HTTP is compared, in addition to what ``placement verify`` says.
"""

import contextlib
import functools
import itertools
import multiprocessing
import os
import pathlib
import random
import signal
import sys

import fixtures
import sqlalchemy as sa
import testscenarios

from placement_rpc.cmd import manage
from placement_rpc.db.placement import schema
from tests import (
    base,
    moving_stores,
    moving_under_load,
    placement_cloud,
    placement_contents,
    servers,
)
from tests.benchmarks import moving_cloud

# Each database is once the source and once the target; in full, each with each.
_PAIRS = [("mariadb", "postgresql"), ("postgresql", "sqlite"), ("sqlite", "mariadb")]


class ThereAndBackTest(testscenarios.WithScenarios, base.TestCase):
    """Import, verify, export, verify, import of the export: the same cloud each time."""

    scenarios = [(f"{source} to {target}", {"source": source, "target": target})
                 for source in servers.DATABASES for target in servers.DATABASES
                 if base.FULL or (source, target) in _PAIRS]

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(placement_cloud.PlacementCloud(self.source))
        placement_contents.fill(self.cloud)

    def store(self):
        return self.useFixture(moving_stores.MovedTo(self.target))

    def dump(self, store):
        return placement_contents.dump(self.useFixture(moving_stores.Serving(store.url)).send)

    def test_there_and_back(self):
        store = self.store()
        store.done("import", "--from", self.cloud.url)
        store.done("verify", "--from", self.cloud.url)
        placement_contents.change(self.cloud)
        store.done("verify", "--from", self.cloud.url, code=1)
        store.done("import", "--from", self.cloud.url)
        store.done("verify", "--from", self.cloud.url)
        placement_contents.change(self.cloud, 1)
        store.done("import", "--from", self.cloud.url, "--finish")
        there = placement_contents.dump(self.cloud.send)
        self.assertEqual(there, self.dump(store))
        back = self.useFixture(placement_cloud.PlacementCloud(self.source))
        store.done("export", "--to", back.url)
        store.done("verify", "--from", back.url)
        self.assertEqual(there, placement_contents.dump(back.send))
        again = self.store()
        again.done("import", "--from", back.url, "--finish")
        again.done("verify", "--from", self.cloud.url)
        self.assertEqual(there, self.dump(again))

    def test_placement_goes_on_with_an_export(self):
        store = self.store()
        store.done("import", "--from", self.cloud.url, "--finish")
        back = self.useFixture(placement_cloud.PlacementCloud(self.source))
        store.done("export", "--to", back.url)
        # Ids of new rows do not collide with those that the export gave.
        placement_contents.change(back)
        placement_contents.change(back, 1)
        placement_contents.change(self.cloud)
        placement_contents.change(self.cloud, 1)
        self.assertEqual(placement_contents.dump(self.cloud.send),
                         placement_contents.dump(back.send))


class OlderRevisionTest(testscenarios.WithScenarios, base.TestCase):
    """Databases of earlier revisions of Placement."""

    scenarios = [(f"{revision} on {kind}", {"revision": revision, "kind": kind})
                 for number, revision in enumerate(placement_cloud.REVISIONS[:-1])
                 for kind in servers.DATABASES
                 if base.FULL or kind == servers.DATABASES[number % 3]]

    def test_import(self):
        newest = self.useFixture(placement_cloud.PlacementCloud())
        placement_contents.fill(newest)
        cloud = self.useFixture(placement_cloud.PlacementCloud(self.kind, self.revision))
        _copy(newest, cloud)
        store = self.useFixture(moving_stores.MovedTo())
        store.done("import", "--from", cloud.url, "--finish")
        store.done("verify", "--from", cloud.url)
        expected = placement_contents.dump(newest.send)
        if self.revision in placement_cloud.REVISIONS[:3]:
            for consumer in expected["consumers"].values():
                consumer["consumer_type"] = "unknown"
        self.assertEqual(expected, placement_contents.dump(
            self.useFixture(moving_stores.Serving(store.url)).send))


def _copy(source, target):
    """Copy the rows of all tables, those columns that the target has."""
    columns = {table: {column["name"] for column in sa.inspect(target.engine).get_columns(table)}
               for table in sa.inspect(target.engine).get_table_names()}
    with source.engine.connect() as connection, target.without_foreign_keys() as tx:
        for table in schema.metadata.tables.values():
            if table.name not in columns or table is schema.alembic_version:
                continue
            tx.execute(sa.delete(table))
            rows = [{name: value for name, value in row._mapping.items()
                     if name in columns[table.name]}
                    for row in connection.execute(sa.select(table))]
            if rows:
                if tx.dialect.name == "mysql":
                    tx.exec_driver_sql("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
                tx.execute(sa.insert(table), rows)


class UnknownRevisionTest(base.TestCase):

    def test_refused_by_name(self):
        cloud = self.useFixture(placement_cloud.PlacementCloud())
        with cloud.engine.begin() as tx:
            tx.execute(sa.update(schema.alembic_version).values(version_num="0123456789ab"))
        for command in ("import", "verify"):
            store = self.useFixture(moving_stores.MovedTo())
            self.assertIn("0123456789ab", store.run(command, "--from", cloud.url).stderr)


class KilledTest(base.TestCase):
    """``kill -9`` at ten random writes, one run after the other: the result is the same."""

    time_limit = 300
    points = 10

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(placement_cloud.PlacementCloud("mariadb"))
        placement_contents.fill(self.cloud)
        self.store = self.useFixture(moving_stores.MovedTo("postgresql"))
        self.said = self.useFixture(fixtures.TempDir()).join("said")

    def start(self, *arguments, killed_at=None):
        """Start a command in a process of its own; return it.

        :param killed_at: int, the number of the write at which it kills itself
        """
        process = _forks().Process(target=_run, args=(
            self.said, killed_at, "--database", self.store.url, "placement", *arguments))
        process.start()
        self.addCleanup(process.join)
        self.addCleanup(process.kill)
        return process

    def killed(self, *arguments):
        """Kill a command just before a write or a COMMIT, ten times; then let it end."""
        rng = random.Random(16)
        for _ in range(self.points):
            process = self.start(*arguments, killed_at=rng.randint(1, 12))
            process.join()
            self.assertEqual(
                -signal.SIGKILL, process.exitcode, pathlib.Path(self.said).read_text())
        process = self.start(*arguments)
        process.join()
        self.assertEqual(0, process.exitcode, pathlib.Path(self.said).read_text())

    def test_import(self):
        self.killed("import", "--from", self.cloud.url, "--batch", "3")
        self.store.done("verify", "--from", self.cloud.url)
        self.store.done("import", "--from", self.cloud.url, "--finish")
        self.assertEqual(placement_contents.dump(self.cloud.send), placement_contents.dump(
            self.useFixture(moving_stores.Serving(self.store.url)).send))

    def test_export(self):
        self.store.done("import", "--from", self.cloud.url, "--finish")
        back = self.useFixture(placement_cloud.PlacementCloud("mariadb"))
        self.killed("export", "--to", back.url, "--batch", "3")
        self.store.done("verify", "--from", back.url)
        self.assertEqual(placement_contents.dump(self.cloud.send),
                         placement_contents.dump(back.send))


@functools.cache
def _forks():
    # A new process of Python takes seconds until all modules are loaded.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.integration.test_moving"])
    return context


def _run(output, killed_at, *arguments):
    """Run ``placement-rpc-manage``; what it prints is appended to a file."""
    if killed_at:
        _kill_at(killed_at)
    with open(output, "a") as file, contextlib.redirect_stdout(file), (
            contextlib.redirect_stderr(file)):
        sys.exit(manage.main(list(arguments)))


def _kill_at(number):
    """Make this process kill itself just before that write or COMMIT, in whichever database."""
    writes = itertools.count(1)

    def count():
        if next(writes) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    @sa.event.listens_for(sa.Engine, "before_cursor_execute")
    def execute(connection, cursor, statement, *_):
        if statement.startswith(("INSERT", "UPDATE", "DELETE")):
            count()

    @sa.event.listens_for(sa.Engine, "commit")
    def commit(connection):
        count()


class UnderLoadTest(base.TestCase):
    """The whole move while clients claim, change and release."""

    time_limit = 300
    size = moving_cloud.Size(20, 300)

    def test_nothing_is_lost_or_doubled(self):
        cloud = self.useFixture(placement_cloud.PlacementCloud("mariadb"))
        moving_cloud.fill(cloud, self.size)
        moved = self.useFixture(moving_under_load.UnderLoad(
            cloud, servers.new_empty_database("postgresql"),
            [moving_cloud.host(number) for number in range(10)])).move()
        moving_under_load.check(self, moved, moving_cloud.usages(self.size))
        # What one machine with other tests on it does in any case; the goal is 10 s for 10,000
        # computes, which the benchmark measures.
        self.assertLess(moved.silent, 60)
