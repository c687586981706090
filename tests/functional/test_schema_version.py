# SPDX-License-Identifier: Apache-2.0
"""Which version of the schema a store has, as Alembic recorded it."""

import importlib.resources

import alembic.command
import fixtures
import sqlalchemy as sa
from alembic import script

from placement_rpc import exception
from placement_rpc.accounting import traits
from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.db import migration, migrations, schema_version
from placement_rpc.objects import class_names
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base


class SchemaVersionTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(placement_fixtures.Store()).database

    def record(self, *revisions):
        """Make the last applied revisions of the store others."""
        with self.database.writer() as tx:
            tx.execute(sa.text("DELETE FROM alembic_version"))
            for revision in revisions:
                tx.execute(sa.text("INSERT INTO alembic_version VALUES (:it)"), {"it": revision})

    def test_the_newest_are_the_last_that_alembic_knows(self):
        scripts = script.ScriptDirectory(str(importlib.resources.files(migrations)))
        self.assertEqual({schema_version.newest(), schema_version.newest(schema_version.CONTRACT)},
                         set(scripts.get_heads()))

    def test_of_this_release(self):
        schema_version.check(self.database)
        self.assertEqual(schema_version.newest(), schema_version.current(self.database))
        self.assertFalse(schema_version.is_contracted(self.database))
        migration.contract(self.database)
        self.assertEqual(schema_version.newest(), schema_version.current(self.database))
        self.assertTrue(schema_version.is_contracted(self.database))

    def test_what_is_missing_is_applied_one_after_the_other(self):
        """A bar shows it, since a change of a large table takes long."""
        self.assertEqual(0, migration.missing(self.database))
        self.assertEqual(1, migration.missing(self.database, schema_version.CONTRACT))
        seen = []
        migration.contract(self.database, seen.append)
        self.assertEqual([schema_version.newest(schema_version.CONTRACT)], seen)
        self.assertEqual(0, migration.missing(self.database, schema_version.CONTRACT))
        directory = self.useFixture(fixtures.TempDir())
        empty = db.Database(configuration.new_config(
            config_files=[], database__connection=f"sqlite:///{directory.join('empty')}"),
            create=True)
        self.addCleanup(empty.close)
        number, seen = migration.missing(empty), []
        migration.sync(empty, class_names.STANDARD_IDS, traits.STANDARD, seen.append)
        self.assertEqual((number, schema_version.newest()), (len(seen), seen[-1]))
        self.assertEqual(0, migration.missing(empty))

    def sync(self):
        """Bring the store up to this release, without a revision; return its version."""
        return migration.sync(self.database, class_names.STANDARD_IDS, traits.STANDARD, self.fail)

    def test_one_that_is_up_to_date_is_not_upgraded(self):
        self.patch(alembic.command, "upgrade", self.fail)
        self.assertEqual(schema_version.newest(), self.sync())

    def test_an_older_one_is_refused(self):
        self.record("0009")
        error = self.assertRaises(exception.SchemaOutdated, schema_version.check, self.database)
        self.assertIn("0009", error.text)

    def test_a_later_one_is_served(self):
        self.record("0999", "c999")
        schema_version.check(self.database)
        self.assertEqual("0999", self.sync())
        self.assertEqual("0999", schema_version.current(self.database))
        self.assertTrue(schema_version.is_contracted(self.database))

    def test_a_later_contraction_is_served(self):
        self.record("c999")
        schema_version.check(self.database)
        self.assertEqual(schema_version.newest(), self.sync())
        self.assertEqual(schema_version.newest(), schema_version.current(self.database))
        self.assertTrue(schema_version.is_contracted(self.database))

    def test_what_the_contraction_needs_is_applied(self):
        """Alembic does not record a revision that another one of the store depends on."""
        self.record("c001")
        self.assertEqual("0004", schema_version.current(self.database))
        self.assertRaises(exception.SchemaOutdated, schema_version.check, self.database)
        self.assertTrue(schema_version.is_contracted(self.database))

    def test_nothing(self):
        self.record()
        self.assertIsNone(schema_version.current(self.database))
        with self.database.writer() as tx:
            tx.execute(sa.text("DROP TABLE alembic_version"))
        self.assertIsNone(schema_version.current(self.database))
        error = self.assertRaises(exception.SchemaOutdated, schema_version.check, self.database)
        self.assertIn("nothing", error.text)
