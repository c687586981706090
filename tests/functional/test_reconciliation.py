# SPDX-License-Identifier: Apache-2.0
"""A store that has lost events which were published, and the relay that notices it."""

import datetime
import threading
from unittest import mock

import fixtures
import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.accounting import reconciliation
from placement_rpc.db import models
from placement_rpc.db.queries import bulk, events, relaying
from placement_rpc.notifications import divergence
from placement_rpc.notifications.event import Event
from placement_rpc.notifications.publishers import Unconfirmed
from placement_rpc.notifications.usage import UsageAccount
from tests import base
from tests.functional.reconciliation_case import ReconciliationCase


class ReconciliationTest(ReconciliationCase):

    def test_the_relay_stops_and_goes_on(self):
        self.save()
        gone = self.claim(2)
        self.claim(4, self.kept)
        last = self.lose()
        waiting = self.claim(8)
        base.wait_until(lambda: self.relay.difference)
        self.assertIn(f"up to position {last}", self.relay.difference)
        self.assertEqual(last, self.stream.events[-1].position)
        self.assertEqual(1, self.log.output.count("No events are published"))
        found, epoch = self.reconcile()
        self.assertEqual((2, [], last - 2, last),
                         (len(found.lost), found.moved, found.agreed, found.last))
        base.wait_until(lambda: self.relay.difference is None)
        self.claim(16)
        books = self.assert_books()
        self.assertEqual(epoch, books.epochs[-1])
        self.assertNotIn(gone, books.held)
        self.assertIn(waiting, books.held)
        self.assertFalse(self.compare().differs)

    def test_the_broker_is_away_for_long_after_the_loss(self):
        """Changes have positions meanwhile, the newest long after the events that are lost."""
        self.save()
        gone = self.claim(2)
        last = self.published()
        self.relay.stop()
        self.put_back()
        self.stream.is_away = True
        waiting = [self.claim(amount) for amount in (4, 8)]
        later = bulk.now() + datetime.timedelta(hours=1)
        self.database.write(lambda tx: tx.execute(sa.update(models.events).where(
            models.events.c.position.is_(None)).values(occurred_at=later)))
        self.relay = self.started("three")
        base.wait_until(lambda: self.last_position() > last)
        self.stream.is_away = False
        base.wait_until(lambda: self.relay.difference)
        found, _ = self.reconcile()
        self.assertEqual((1, last - 1, last), (len(found.lost), found.agreed, found.last))
        books = self.assert_books()
        self.assertNotIn(gone, books.held)
        self.assertTrue(set(waiting) < set(books.held))

    def test_a_store_that_has_everything(self):
        self.claim(2)
        self.published()
        reads = self.stream.reads
        self.claim(4)
        self.published()
        self.assertEqual(reads, self.stream.reads)
        found = self.compare()
        self.assertFalse(found.differs)
        with self.database.reader() as tx:
            self.assertIsNone(divergence.difference(tx, self.stream.events))
            self.assertIsNone(divergence.difference(tx, []))
        self.assertEqual(found.last, found.agreed)
        self.assertIsNone(divergence.emptied(found.last, self.stream.events))
        self.assertIn("has none", divergence.emptied(found.last, []))
        self.assertIsNone(divergence.emptied(0, []))
        self.assertEqual(0, divergence.compare(self.database, lambda _start: ()).last)
        self.database.write(lambda tx: events.prune(tx, bulk.now()))
        self.assertFalse(self.compare().differs)

    def test_much_is_told_in_parts(self):
        self.save()
        for _ in range(201):
            self.claim(1)
        self.lose()
        self.reconcile()
        books = self.assert_books()
        self.assertEqual([(1, 2), (2, 2)], [
            (each.payload["part"], each.payload["parts"]) for each in books.reconciled])
        self.assertEqual({1}, {sum(sum(amounts.values()) for amounts in held.values())
                               for held in books.held.values()})

    def test_what_is_told_is_written_on_a_node_of_a_cluster(self):
        self.save()
        self.claim(2, self.kept)
        self.lose()
        touched = []
        self.useFixture(fixtures.MonkeyPatch(
            "placement_rpc.db.galera.touch",
            lambda _tx, table, ids: touched.extend((table.name, each) for each in ids)))
        self.reconcile()
        self.assertEqual(["consumers", "resource_providers"], [name for name, _ in touched])

    def test_listeners_read_everything_again_if_an_import_is_lost(self):
        """No event names what it had brought."""
        last = self.published()
        self.relay.stop()
        at = datetime.datetime.now(datetime.UTC).isoformat()
        with self.database.reader() as tx:
            state = events.state(tx)
        lost = [Event(base.new_uuid(), "store.import", last + 1, at, {"epoch": state.epoch})]
        reconciliation.reconcile(self.database, events.Comparison(
            lost, [], last, last + 1, state))
        with self.database.reader() as tx:
            self.assertEqual(["outbox.reconciled", "store.import", "allocation.snapshot.begin"],
                             [each.event_type for each in events.waiting(tx)])

    def test_it_happens_twice(self):
        self.save()
        self.claim(2)
        self.lose()
        self.reconcile()
        self.assert_books()
        self.claim(3)
        self.lose()
        self.reconcile()
        self.assertEqual(3, len(self.assert_books().epochs))

    def test_a_running_relay_notices_it_before_anything_waits(self):
        """As after a failover, in which no call of the relay's fails."""
        self.published()
        self.forget(1)
        base.wait_until(lambda: self.relay.difference)

    def test_positions_that_are_lost_while_the_broker_is_away_are_not_given_again(self):
        """Others get so many positions meanwhile that their number alone shows no loss."""
        self.claim(2)
        last = self.published()

        def publish(*_arguments):
            self.stream.is_away = True
            self.forget(3)
            for _ in range(6):
                self.claim(1)
            raise Unconfirmed("the broker is away")

        with mock.patch.object(self.stream, "publish", publish):
            self.claim(4)
            base.wait_until(lambda: self.relay.difference)
            self.assertEqual(last - 2, self.last_position())
        self.stream.is_away = False
        base.wait_until(lambda: f"up to position {last}," in (self.relay.difference or ""))
        self.reconcile()
        base.wait_until(lambda: self.relay.difference is None)
        self.published()
        self.assert_no_position_twice()

    def test_a_new_epoch_begins_if_lost_positions_were_given_and_not_published(self):
        """HTTP clients have read them."""
        last = self.published()
        epoch = self.stream.events[-1].epoch
        self.stream.is_away = True
        for _ in range(2):
            self.claim(2)
        base.wait_until(lambda: self.last_position() == last + 2)
        self.forget(1)
        base.wait_until(lambda: self.relay.difference)
        self.stream.is_away = False
        self.claim(4)
        self.assertEqual(last + 2, self.published())
        base.wait_until(lambda: self.relay.difference is None)
        self.assertEqual([epoch, self.stream.events[-1].epoch], self.stream.books().epochs)
        self.assertNotEqual(epoch, self.stream.events[-1].epoch)
        self.assert_no_position_twice()

    def test_a_relay_that_has_published_nothing_notices_it(self):
        self.published()
        self.relay.stop()
        reads = self.stream.reads
        relay = self.started("two")
        base.wait_until(lambda: self.stream.reads > reads)
        self.forget(1)
        self.claim(2)
        base.wait_until(lambda: relay.difference)
        self.assert_no_position_twice()

    def test_a_relay_that_was_replaced_during_a_pause_notices_it(self):
        self.published()
        self.store.conf.set_override("lease", 1, "notifications")
        self.stream.pause = threading.Event()
        self.addCleanup(self.stream.pause.set)
        self.claim(2)
        base.wait_until(lambda: self.stream.pausing)
        paused, pause, self.stream.pause = self.relay, self.stream.pause, None
        self.relay = self.started("two")
        self.published()
        self.claim(4)
        self.published()
        self.relay.stop()
        self.forget(1)
        pause.set()
        self.claim(8)
        base.wait_until(lambda: paused.difference)
        self.assert_no_position_twice()

    def test_no_positions_are_given_after_a_loss(self):
        """HTTP clients would read them, and listeners know them from the stream."""
        self.save()
        self.claim(2)
        self.lose()
        self.claim(4)
        base.wait_until(lambda: self.relay.difference)
        self.stream.is_away, reads, last = True, self.stream.reads, self.last_position()
        base.wait_until(lambda: self.stream.reads > reads + 1)
        self.assertEqual(last, self.last_position())

    def forget(self, number):
        """Lose the last events that have positions, and these."""
        def change(tx):
            tx.exec_driver_sql(
                "DELETE FROM events WHERE position > "
                f"(SELECT max(position) FROM events) - {number}")
            tx.exec_driver_sql(
                f"UPDATE relay_state SET last_position = last_position - {number}, "
                f"published_position = min(published_position, last_position - {number})")

        self.database.write(change)

    def assert_no_position_twice(self):
        found = {}
        for event in self.stream.events:
            self.assertEqual(
                event.event_id, found.setdefault(event.position, event.event_id))

    def test_a_relay_that_stops_after_a_loss_marks_nothing(self):
        last = self.published()
        self.relay.stop()
        with self.database.reader() as tx:
            before = events.state(tx)
        self.database.write(lambda tx: relaying.mark_published(tx, last, last + 5))
        with self.database.reader() as tx:
            self.assertEqual(before, events.state(tx))

    def test_events_that_kept_everything_but_their_positions(self):
        self.save()
        last = self.published()
        self.relay.stop()
        self.database.write(lambda tx: tx.exec_driver_sql(
            f"UPDATE events SET position = NULL WHERE position = {last}"))
        self.database.write(lambda tx: tx.exec_driver_sql(
            f"UPDATE relay_state SET last_position = {last - 1}, "
            f"published_position = {last - 1}"))
        self.started("four")
        found, _ = self.reconcile()
        self.assertEqual((0, 1, last - 1), (len(found.lost), len(found.moved), found.agreed))
        self.assertFalse(self.compare().differs)
        self.assert_books()
        self.assertFalse(self.compare().differs)
        account = self.usage()
        self.assertTrue(account.complete)
        self.assertEqual([1], [line.held for line in account.lines()])

    def usage(self):
        """Return the account of a listener that does not know the ids of events."""
        now = datetime.datetime.now(datetime.UTC)
        account = UsageAccount(now - datetime.timedelta(hours=1), now)
        for event in self.stream.events:
            account.apply(event)
        return account

    def assert_refused_after_a_comparison(self):
        """Give a position between the comparison and the reconciliation, which is refused then."""
        found = self.compare()
        self.database.write(lambda tx: tx.exec_driver_sql(
            "UPDATE relay_state SET last_position = last_position + 1"))
        self.assertRaises(exception.ServiceUnavailable, reconciliation.reconcile, self.database,
                          found)

    def test_positions_that_are_given_meanwhile(self):
        self.save()
        self.claim(2)
        self.lose()
        self.assert_refused_after_a_comparison()

    def test_a_reconciliation_in_parts_writes_none_if_positions_are_given_meanwhile(self):
        self.save()
        for _ in range(201):
            self.claim(1)
        self.lose()
        self.assert_refused_after_a_comparison()
        with self.database.reader() as tx:
            self.assertEqual([], events.waiting(tx))

    def test_what_a_busy_service_publishes_during_the_comparison_is_no_difference(self):
        def read(start):
            for _ in range(3):
                self.claim(1)
            self.published()
            return self.stream.read(start)

        found = divergence.compare(self.database, read)
        self.assertEqual(([], [], False), (found.lost, found.moved, found.differs))

