# SPDX-License-Identifier: Apache-2.0
"""The relay on SQLite, with a publisher that the test plays."""

import threading
import time
import unittest.mock

from placement_rpc import api, exception, manager
from placement_rpc.amqp.publisher import Unconfirmed
from placement_rpc.db.queries import events, relaying
from placement_rpc.notifications import relay
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base


class _Publisher:
    """Records the positions of each batch.

    :param sent: called with the number of a batch, the first is 1, before ``meanwhile``
    :param confirming: the same after it: an error means that the batch is not confirmed
    :param confirms: whether a confirm ever comes
    :param making: called with the first position of a batch before its messages are made
    """

    is_kept = False

    def __init__(self, sent=lambda number: None, confirming=lambda number: None, confirms=True,
                 making=lambda position: None):
        self.batches, self.compared = [], 0
        self._sent, self._confirming, self._confirms = sent, confirming, confirms
        self._making = making

    def messages(self, rows):
        self._making(rows[0].position)
        return rows

    def publish(self, rows, still, meanwhile):
        self.batches.append([row.position for row in rows])
        number = len(self.batches)
        self._sent(number)
        meanwhile()
        still()
        while not self._confirms:
            time.sleep(0.02)
            still()
        self._confirming(number)

    def last_events(self, _position):
        self.compared += 1
        return []

    def idle(self):
        """Nothing to keep."""

    close = idle


class _RelayTest(base.TestCase):

    options = {}

    def setUp(self):
        super().setUp()
        self.store = self.useFixture(placement_fixtures.Store(**self.options))
        self.client = api.PlacementAPI("local", self.store.conf, manager=(
            manager.Manager(self.store.conf, self.store.database)))

    def create(self, first, last):
        for number in range(first, last + 1):
            self.client.create_provider(None, f"provider {number}")

    def start(self, **publisher):
        self.publisher = _Publisher(**publisher)
        self.relay = relay.Relay(self.store.conf, self.store.database, self.publisher, "holder")
        self.relay.start()
        self.addCleanup(self.relay.stop)

    def status(self):
        with self.store.database.reader() as tx:
            return events.status(tx)

    def wait_published(self, position):
        base.wait_until(lambda: self.status()["published_position"] == position)

    def wait_sent(self, position):
        base.wait_until(
            lambda: self.publisher.batches and self.publisher.batches[-1][-1] == position)

    def rewind(self):
        self.store.database.write(lambda tx: relaying.rewind(tx, 0))


class ReplayTest(_RelayTest):

    def test_a_replay_during_a_batch_is_not_overwritten(self):
        self.create(1, 5)
        self.start(sent=lambda number: number == 2 and self.rewind())
        self.wait_published(5)
        self.create(6, 6)
        self.wait_published(6)
        self.assertEqual([[1, 2, 3, 4, 5], [6], [1, 2, 3, 4, 5, 6]], self.publisher.batches)


class LeaseTest(_RelayTest):

    options = {"notifications__lease": 1}

    def test_a_lease_that_is_lost_while_publishing_ends_it(self):
        lost = threading.Event()

        def lose(_number):
            self.store.database.write(lambda tx: tx.exec_driver_sql(
                "UPDATE leases SET holder = 'other', expires_at = '2999-01-01'"))
            lost.set()

        self.create(1, 1)
        self.start(sent=lose, confirms=False)
        self.assertTrue(lost.wait(10))
        base.wait_until(lambda: not self.relay.active)
        self.assertEqual([[1]], self.publisher.batches)


class ManyEventsTest(_RelayTest):
    """More events wait than one batch has."""

    # With a pause after each batch it would take a minute.
    options = {"notifications__batch": 3, "notifications__gather": 60.0}

    def test_the_next_batch_is_read_while_the_last_one_is_confirmed(self):
        given = []
        self.create(1, 7)
        self.start(confirming=lambda number: given.append(self.status()["last_position"]))
        self.wait_sent(7)
        base.wait_until(lambda: len(given) == 3)
        self.assertEqual([[1, 2, 3], [4, 5, 6], [7]], self.publisher.batches)
        self.assertEqual([6, 7, 7], given)

    def test_the_messages_of_the_next_batch_are_made_while_the_last_one_is_confirmed(self):
        made = []
        self.create(1, 7)
        self.start(making=made.append, confirming=lambda number: made.append("confirmed"))
        self.wait_sent(7)
        base.wait_until(lambda: made.count("confirmed") == 3)
        self.assertEqual([1, 4, "confirmed", 7, "confirmed", "confirmed"], made)

    def test_a_batch_whose_messages_cannot_be_made_does_not_repeat_the_one_before_it(self):
        failures = [ValueError("it is not JSON")] * 3

        def fail(position):
            if position == 4 and failures:
                raise failures.pop()

        self.create(1, 7)
        self.start(making=fail)
        self.wait_sent(7)
        self.assertEqual([[1, 2, 3], [4, 5, 6], [7]], self.publisher.batches)
        self.assertEqual([], failures)

    def test_each_is_marked_once_it_is_confirmed(self):
        published = []
        self.create(1, 10)
        self.start(confirming=lambda number: published.append(
            self.status()["published_position"]))
        self.wait_sent(10)
        base.wait_until(lambda: len(published) == 4)
        # When a batch is under way, the one before it is marked, by the read of the one after it.
        self.assertEqual([0, 3, 6, 6], published)
        self.relay.stop()
        self.assertEqual(10, self.status()["published_position"])

    def test_after_one_that_is_not_confirmed_they_are_sent_again_in_order(self):
        def fail(number):
            if number == 2:
                raise Unconfirmed("the broker is away")

        self.create(1, 8)
        self.start(confirming=fail)
        self.wait_sent(8)
        self.assertEqual([[1, 2, 3], [4, 5, 6], [4, 5, 6], [7, 8]], self.publisher.batches)

    def test_an_error_of_the_store_meanwhile_does_not_end_the_wait_for_confirms(self):
        read, failed = relaying.next_batch, []

        def fail_once(*arguments):
            if arguments[-1] is not None and not failed:
                failed.append(True)
                # One that is not retried.
                raise exception.ServiceUnavailable(reason="away")
            return read(*arguments)

        self.create(1, 7)
        with unittest.mock.patch.object(relaying, "next_batch", fail_once):
            self.start()
            self.wait_sent(7)
        self.assertEqual([True], failed)
        self.assertEqual([[1, 2, 3], [4, 5, 6], [7]], self.publisher.batches)
        # The server that answers then may be another one.
        self.assertEqual(2, self.publisher.compared)


class ReplayOfManyTest(_RelayTest):
    """A replay is requested while the third batch is under way: the first one is marked."""

    options = {"notifications__batch": 3}
    again = [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10]]

    def setUp(self):
        super().setUp()
        self.create(1, 10)

    def test_before_the_next_batch_is_read(self):
        self.start(sent=lambda number: number == 3 and self.rewind())
        self.wait_published(10)
        self.assertEqual(self.again[:3] + self.again, self.publisher.batches)

    def test_after_the_next_batch_was_read(self):
        self.start(confirming=lambda number: number == 3 and self.rewind())
        self.wait_published(10)
        self.assertEqual(self.again + self.again, self.publisher.batches)

    def test_after_a_batch_was_read_that_is_too_old_when_its_turn_comes(self):
        self.patch(relay, "_FRESH", 0.0)
        self.start(confirming=lambda number: number == 3 and self.rewind())
        self.wait_published(10)
        # It was read again, which showed the replay.
        self.assertEqual(self.again[:3] + self.again, self.publisher.batches)
