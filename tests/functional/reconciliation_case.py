# SPDX-License-Identifier: Apache-2.0
"""A store whose last changes are lost while its service runs, and a stream that has them."""

import json
import pathlib
import shutil

import fixtures

from placement_rpc import api, manager
from placement_rpc.accounting import reconciliation
from placement_rpc.db.queries import events
from placement_rpc.notifications import divergence, envelope
from placement_rpc.notifications.event import Event
from placement_rpc.notifications.publishers import Unconfirmed
from placement_rpc.notifications.relay import Relay
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, stream_books


class Stream:
    """A publisher whose events are kept apart from the store, as RabbitMQ keeps them."""

    is_kept = True

    def __init__(self):
        self.events = []
        self.reads = 0
        self.is_away = self.pausing = False
        self.pause = None

    @staticmethod
    def messages(rows):
        return rows

    def publish(self, rows, _still=None, meanwhile=lambda: None):
        if self.pause is not None:
            self.pausing = True
            self.pause.wait()
        if self.is_away:
            raise Unconfirmed("the broker is away")
        self.events += [Event.of_message(json.dumps(envelope.message(row))) for row in rows]
        meanwhile()

    def last_events(self, _position):
        self.reads += 1
        if self.is_away:
            raise Unconfirmed("the broker is away")
        return self.events[-3:]

    def read(self, start):
        return [each for each in self.events if start == "first" or each.time >= start]

    def idle(self):
        pass

    def close(self):
        pass

    def books(self):
        books = stream_books.StreamBooks()
        for event in self.events:
            books.apply(event)
        return books


class ReconciliationCase(base.TestCase):
    """A SQLite file is copied and put back while the service runs."""

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(placement_fixtures.Store(notifications__interval=0.02))
        self.database = self.store.database
        self.path = pathlib.Path(self.database.engine.url.database)
        self.backup = self.useFixture(fixtures.TempDir()).join("backup")
        self.manager = manager.Manager(self.store.conf, self.database)
        self.api = api.PlacementAPI("local", self.store.conf, manager=self.manager)
        self.stream = Stream()
        self.relay = self.started("one")
        self.provider = self.api.create_provider(None, "a").uuid
        self.api.set_inventory(None, self.provider, [base.inventory("VCPU", 1000)])
        self.kept = self.claim(1)

    def started(self, holder):
        relay = Relay(self.store.conf, self.database, self.stream, holder)
        relay.start()
        self.addCleanup(relay.stop)
        return relay

    def claim(self, amount, consumer=None, provider=None):
        wanted = base.claim({provider or self.provider: {"VCPU": amount}}, consumer)
        self.api.claim_allocations(None, wanted)
        return wanted.consumer_uuid

    def published(self):
        return base.wait_published(self.database)

    def save(self):
        self.published()
        self.relay.stop()
        self.database.close()
        with self.database.engine.connect() as tx:
            tx.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        self.database.close()
        shutil.copyfile(self.path, self.backup)
        self.relay = self.started("two")

    def lose(self):
        """Put the saved file back; return the last position that was published."""
        last = self.published()
        self.relay.stop()
        self.put_back()
        self.relay = self.started("three")
        return last

    def put_back(self):
        self.database.close()
        for suffix in ("", "-wal", "-shm"):
            pathlib.Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        shutil.copyfile(self.backup, self.path)

    def compare(self):
        return divergence.compare(self.database, self.stream.read)

    def reconcile(self):
        found = self.compare()
        return found, reconciliation.reconcile(self.database, found)

    def assert_books(self):
        self.published()
        books = self.stream.books()
        self.assertEqual(stream_books.stored(self.database), books.as_stored())
        self.assertEqual(([], []), (books.gaps, books.broken))
        return books

    def last_position(self):
        with self.database.reader() as tx:
            return events.last_position(tx)
