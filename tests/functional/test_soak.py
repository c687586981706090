# SPDX-License-Identifier: Apache-2.0
"""The parts of the soak on a service in this process: right is right, and faults are found."""

import pathlib
import threading

import fixtures
import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import events
from placement_rpc.notifications.event import Event
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base
from tests.soak import verdict
from tests.soak.client import Client
from tests.soak.history import Provider, Recorder
from tests.soak.progress import Progress
from tests.stream_books import StreamBooks

_CAPACITY = {"VCPU": 40, "MEMORY_MB": 30_000}
_CLIENTS = 3
_REQUESTS = 60


class SoakPartsTest(base.TestCase):
    """Clients work on a service without a bus, and some of their calls are lost or doubled."""

    def setUp(self):
        super().setUp()
        self.running = self.useFixture(placement_fixtures.RunningService())
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = directory / "history"
        recorder = Recorder(self.path)
        self.addCleanup(recorder.close)
        self.providers = [self.new_provider(recorder, number) for number in range(3)]
        self.useFixture(placement_fixtures.FaultyCaller(self.running.api, [
            None, "lost", None, "unanswered", None, None, "twice", None] * 40))
        order = {"providers": self.providers, "seed": "7", "until": str(directory / "until"),
                 "casts": 0.0, "deadline": 60}
        self.clients = [Client(self.running.api, order, recorder, number)
                        for number in range(_CLIENTS)]
        self.load()

    def new_provider(self, recorder, number):
        uuid = self.running.api.create_provider(None, f"provider {number}").uuid
        self.running.api.set_inventory(None, uuid, [
            base.inventory(*each) for each in _CAPACITY.items()])
        recorder.provider(Provider(uuid, 1, _CAPACITY))
        return uuid

    def load(self):
        threads = [threading.Thread(target=each.run, kwargs={"requests": _REQUESTS})
                   for each in self.clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for each in self.clients:
            each.resolve()
        last = base.wait_published(self.running.database)
        self.books = StreamBooks()
        with self.running.database.reader() as tx:
            for row in events.after(tx, 0, last):
                self.books.apply(Event.of_row(row))
        self.assertEqual(last, self.books.position)

    def judge(self):
        with self.running.database.reader() as tx:
            last = events.last_position(tx)
        return verdict.of(self.running.database, [each.report() for each in self.clients],
                          [self.path], self.books, last)

    def spoil(self, statement):
        self.running.database.write(lambda tx: tx.execute(statement))

    def test_what_is_right(self):
        self.assertEqual((), tuple(self.judge().faults))
        accepted = sum(each.counts["accepted"] for each in self.clients)
        self.assertGreater(accepted, _REQUESTS)
        self.assertEqual(accepted, Progress([self.path]).accepted)
        self.assertGreater(sum(each.counts["refused"] for each in self.clients), 0)

    def test_an_allocation_that_is_lost(self):
        self.spoil(models.allocations.delete().where(models.allocations.c.id == (
            sa.select(sa.func.max(models.allocations.c.id)).scalar_subquery())))
        found = self.judge()
        self.assertEqual((1, 1), (found.lost, found.over_committed))

    def test_a_generation_that_no_answer_names(self):
        self.spoil(models.resource_providers.update().values(
            generation=models.resource_providers.c.generation + 1))
        self.assertEqual(3, self.judge().doubled)

    def test_a_stream_that_lacks_an_event(self):
        self.books.position -= 1
        self.assertIn("the listener is at position", str(self.judge().faults))
