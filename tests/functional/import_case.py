# SPDX-License-Identifier: Apache-2.0
"""A cloud of OpenStack Placement to import, and a store to import it into."""

import contextlib
import io
import itertools
import json
import types

import fixtures
import sqlalchemy as sa

from placement_rpc import api, manager
from placement_rpc.cmd import manage
from placement_rpc.db import api as db
from placement_rpc.db import models
from placement_rpc.moving import hold, own_store, placement_store, rows
from placement_rpc.notifications.event import Event
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, placement_cloud, placement_contents

# The progress of an import, and what processes write about themselves.
NOT_CONTENTS = {"import_state", "leases", "services"}


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
            self.errors_so_far = errors.getvalue
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


class FilledCase(ImportCase):
    """A cloud that is not empty."""

    def setUp(self):
        super().setUp()
        placement_contents.fill(self.cloud)
        self.writer = placement_contents.Writer(self.cloud)

    def interrupt(self, number):
        """Run an import whose process ends after some batches; return whether it did."""
        writes = itertools.count()

        def write(database, change, *more, **named):
            if more == ("import",) and next(writes) > number:
                raise KeyboardInterrupt
            return original(database, change, *more, **named)

        original = db.Database.write
        with fixtures.MonkeyPatch("placement_rpc.db.api.Database.write", write), (
                contextlib.redirect_stdout(io.StringIO())), contextlib.redirect_stderr(
                    io.StringIO()):
            code = manage.main([
                "--database", self.store.conf.database.connection, "placement", "import",
                "--from", self.cloud.url, "--batch", "40"])
        self.assertIn(code, (0, 130))
        return code == 130

    def api(self):
        """Return a client of this store, in this process."""
        client = api.PlacementAPI("local", self.store.conf, manager=manager.Manager(
            self.store.conf, self.database))
        self.addCleanup(client.close)
        return client

    def contents(self):
        """Return all rows of the store: dict of table to list."""
        with self.database.reader() as tx:
            return {name: tx.execute(sa.select(table).order_by(
                *table.primary_key.columns)).all() for name, table in (
                    models.metadata.tables.items()) if name not in NOT_CONTENTS}

    def types(self):
        """Return the types of the events, in order."""
        return [row.event_type for row in self.contents()["events"]]

    def imports(self):
        return [each for each in self.types() if each == hold.EVENT]

    def published(self):
        """Return the events, in order, with positions."""
        return [Event.of_row(types.SimpleNamespace(**{
            **row._mapping, "position": position, "epoch": None}))
            for position, row in enumerate(self.contents()["events"], 1)]
