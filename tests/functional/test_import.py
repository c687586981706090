# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage placement import``, on SQLite; tests/integration has the other databases."""

import contextlib
import io
import json

import sqlalchemy as sa

from placement_rpc.cmd import manage
from placement_rpc.db import models
from placement_rpc.moving import own_store, placement_store, rows
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, placement_cloud, placement_contents


class ImportCase(base.TestCase):
    """A cloud of Placement, and an empty store."""

    source_kind = "sqlite"

    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(placement_cloud.PlacementCloud(self.source_kind))
        self.store = self.useFixture(placement_fixtures.Store(self.store_url()))
        self.database = self.store.database

    def store_url(self):
        """Return the URL of the store; None for a file of SQLite."""

    def manage(self, *arguments, code=0):
        """Run a command; return its standard output as JSON, None if there is none."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as errors:
            found = manage.main([
                "--database", self.store.conf.database.connection, "placement", *arguments])
        self.errors = errors.getvalue()
        self.assertEqual(code, found, self.errors)
        return json.loads(out.getvalue()) if out.getvalue() else None

    def run_import(self, *arguments, code=0):
        return self.manage("import", "--from", self.cloud.url, *arguments, code=code)

    def work(self, done):
        """Return what was done: a set of kinds."""
        return {each["kind"] for each in done["kinds"]
                if each["created"] or each["changed"] or each["deleted"]}

    def assert_equal(self):
        """Check that the store has the rows of the cloud, and that it is consistent."""
        with placement_store.opened(self.cloud.url) as source:
            wanted = {kind: list(source.rows(kind)) for kind in rows.KINDS}
        with own_store.opened(self.database) as target:
            for kind, expected in wanted.items():
                self.assertEqual(
                    [each[:each.compared_size()] for each in expected],
                    [each[:each.compared_size()] for each in target.rows(kind)], kind)
        self.assertEqual([], inconsistent(self.database))


def inconsistent(database):
    """Return the inventories whose used amount is not the sum of their allocations."""
    held = models.allocations
    of = models.inventories
    total = sa.select(sa.func.coalesce(sa.func.sum(held.c.used), 0)).where(
        held.c.resource_provider_id == of.c.resource_provider_id,
        held.c.resource_class_id == of.c.resource_class_id).scalar_subquery()
    with database.reader() as tx:
        return tx.execute(sa.select(of.c.id, of.c.used, total).where(of.c.used != total)).all()


class ImportTest(ImportCase):

    def test_all_rows_are_brought_over_and_a_second_run_writes_nothing(self):
        placement_contents.fill(self.cloud)
        self.run_import()
        self.assert_equal()
        self.assertEqual(set(), self.work(self.run_import()))
