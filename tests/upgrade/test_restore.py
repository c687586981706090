# SPDX-License-Identifier: Apache-2.0
"""The backup that is restored is of the last release; the steps are those of the guide."""

import json
import types

import fixtures

from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from tests import backups, base, stream_books
from tests.upgrade import side_by_side
from tests.upgrade.release_case import ReleasesTest, claim


class OlderBackupTest(ReleasesTest):

    scenarios = [(kind, {"kind": kind}) for kind in (
        ("postgresql", "mariadb") if base.FULL else ("postgresql",))]

    def make_store(self):
        """Have the old release make a store, whose schema stays as it is."""
        self.directory = self.useFixture(fixtures.TempDir()).path
        conf = configuration.new_config(config_files=[], database__connection=self.new_database())
        database = db.Database(conf)
        self.addCleanup(database.close)
        store = types.SimpleNamespace(conf=conf, database=database)
        side_by_side.manage(
            self.old, self.directory, conf.database.connection, "db", "sync")
        return store

    def manage(self, *arguments):
        return side_by_side.manage(
            self.new, self.directory, self.store.conf.database.connection, *arguments,
            transport_url=self.url)

    def claim(self, client, provider, amount):
        consumer = base.new_uuid()
        client.call("claim_allocations", claim=claim({provider: {"VCPU": amount}}, consumer))
        return consumer

    def books(self):
        """Return the books of a listener that reads the stream from its first event on."""
        return stream_books.read(self.url, "placement_events")

    def test_the_store_and_its_listeners_are_brought_together(self):
        conductor, client = self.conductor(self.old), self.client(self.old)
        kept = self.provider(client)
        consumer = self.claim(client, kept, 1)
        base.wait_until(lambda: consumer in self.books().held)
        backup = backups.BACKUPS[self.kind](
            self.store.conf.database.connection, self.directory)
        backup.take()
        self.end(conductor)
        self.manage("db", "sync")
        self.start(conductor, self.new)
        self.claim(client, self.provider(client), 2)
        self.events()
        self.end(conductor)
        backup.restore()
        self.manage("db", "sync")
        self.manage("outbox", "reconcile")
        self.start(conductor, self.new)
        self.claim(client, kept, 3)
        self.events()
        books = self.books()
        self.assertEqual(stream_books.stored(self.store.database), books.as_stored())
        self.assertEqual(([], []), (books.gaps, books.broken))
        found, = json.loads(self.manage("outbox", "status"))
        self.assertEqual("", found["difference"])
