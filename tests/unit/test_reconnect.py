# SPDX-License-Identifier: Apache-2.0
"""The reconnect loop, with a simulated result for each attempt to connect."""

import struct
import threading
import time

from placement_rpc.amqp import reconnect
from placement_rpc.amqp.publisher import Unconfirmed
from placement_rpc.backoff import Backoff
from tests import base


class _Connection:

    def __init__(self):
        self.ended = None

    def close(self):
        self.ended = "closed"

    def drop(self, lost=True):
        self.ended = "dropped"


class _Broker:
    """Accepts or refuses connections.

    :param refusals: how many attempts it refuses; None for all
    """

    def __init__(self, refusals=0):
        self.refusals = refusals
        # The numbers of the attempts that it refuses, from 0.
        self.refused = ()
        self.attempts = []
        self.connections = []
        self.options = None
        # What the library raises about handshakes that it cannot parse.
        self.broken_handshakes = []

    @staticmethod
    def backoff():
        return Backoff()

    def connect(self, **options):
        self.options = options
        self.attempts.append(time.monotonic())
        if self.broken_handshakes:
            raise self.broken_handshakes.pop()
        if self.refusals is None or len(self.attempts) <= self.refusals or (
                len(self.attempts) - 1 in self.refused):
            raise ConnectionRefusedError(111, "refused")
        self.connections.append(_Connection())
        return self.connections[-1]


class _Pauses:
    """Records the pauses of a loop and makes none; the loop ends after ``limit`` of them."""

    def __init__(self, limit):
        self.made = []
        self._limit = limit

    def is_set(self):
        return len(self.made) == self._limit

    def wait(self, seconds):
        self.made.append(seconds)


class PauseTest(base.TestCase):
    """The first attempt to reconnect is made at once, and later ones at random times."""

    def pauses(self, refusals):
        """Lose a connection that worked, and be refused; return the pauses before the attempts."""
        self.patch(reconnect, "_STEADY", 0)
        pauses, broker = _Pauses(refusals + 2), _Broker()
        broker.refused = range(1, refusals + 1)
        for session in reconnect.Reconnect("Test", broker, pauses).sessions():
            with session:
                raise ConnectionResetError(104, "reset")
        return pauses.made

    def test_the_first_attempt_is_immediate(self):
        self.assertEqual(0.0, self.pauses(0)[0])

    def test_clients_whose_broker_returns_come_at_different_times(self):
        """A thousand clients that lose their connections together must not return together."""
        clients = [self.pauses(8) for _ in range(1000)]
        self.assertEqual({0.0}, {made[0] for made in clients})
        for number, pause in enumerate((0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0), 1):
            found = [made[number] for made in clients]
            self.assertTrue(all(pause / 2 <= each <= pause for each in found))
            # No tenth of the clients comes within a hundredth of the time.
            found.sort()
            self.assertGreater(min(later - earlier for earlier, later in zip(
                found, found[100:], strict=False)), pause / 200)
        # They are spread over more than a second when the broker is back.
        arrivals = sorted(sum(made) for made in clients)
        self.assertGreater(arrivals[-50] - arrivals[50], 1)


class ReconnectTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.stopped = threading.Event()

    def run_loop(self, broker, work, survives=(), until=lambda: False):
        """Run sessions; ``work`` gets the connection of each."""
        for session in reconnect.Reconnect(
                "Test", broker, self.stopped, survives, patience=7).sessions(until):
            with session as connection:
                work(connection)

    def test_a_handshake_that_cannot_be_parsed_does_not_end_it(self):
        broker = _Broker()
        broker.broken_handshakes = [
            struct.error("unpack requires 4 bytes"),
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "")]
        self.run_loop(broker, lambda connection: self.stopped.set(), survives=(Exception,))
        self.assertEqual((3, 1), (len(broker.attempts), len(broker.connections)))

    def test_it_ends_after_the_session_in_which_it_is_stopped(self):
        broker = _Broker()
        self.run_loop(broker, lambda connection: self.stopped.set())
        self.assertEqual(["closed"], [each.ended for each in broker.connections])
        self.assertEqual({"patience": 7}, broker.options)

    def test_it_connects_until_a_broker_is_there_and_warns_once(self):
        broker = _Broker(refusals=3)
        self.run_loop(broker, lambda connection: self.stopped.set())
        self.assertEqual(4, len(broker.attempts))
        self.assertEqual(1, self.log.output.count("Test: no connection to the broker"))
        pauses = [later - earlier for earlier, later in zip(
            broker.attempts, broker.attempts[1:], strict=False)]
        self.assertTrue(all(0.04 < pause < 2 for pause in pauses), pauses)

    def test_a_connection_that_worked_is_replaced_at_once(self):
        self.patch(reconnect, "_STEADY", 0)
        broker, ended = _Broker(), []

        def work(connection):
            if len(broker.connections) > 20:
                self.stopped.set()
                return
            ended.append(time.monotonic())
            raise ConnectionResetError(104, "reset")

        self.run_loop(broker, work)
        again = broker.attempts[1:]
        self.assertLess(sum(later - earlier for earlier, later in zip(
            ended, again, strict=True)), 1)
        self.assertEqual(["dropped"] * 20 + ["closed"],
                         [each.ended for each in broker.connections])

    def test_a_session_that_fails_at_its_beginning_makes_no_busy_loop(self):
        broker = _Broker()

        def work(connection):
            if len(broker.connections) == 4:
                self.stopped.set()
            raise Unconfirmed("no such queue")

        self.run_loop(broker, work)
        self.assertGreater(broker.attempts[-1] - broker.attempts[0], 0.3)

    def test_any_other_error_is_raised(self):
        broker = _Broker()
        self.assertRaises(ZeroDivisionError, self.run_loop, broker, lambda connection: 1 / 0)
        self.assertEqual("dropped", broker.connections[0].ended)

    def test_a_defect_that_it_survives_is_logged_with_its_trace(self):
        broker = _Broker()

        def work(connection):
            if len(broker.connections) == 2:
                self.stopped.set()
                return
            raise KeyError("a defect")

        self.run_loop(broker, work, survives=(Exception,))
        self.assertEqual(2, len(broker.connections))
        self.assertIn("Traceback", self.log.output)

    def test_it_ends_while_the_broker_is_away(self):
        broker = _Broker(refusals=None)
        self.run_loop(broker, None, until=lambda: len(broker.attempts) == 3)
        self.assertEqual(3, len(broker.attempts))
        thread = threading.Thread(target=self.run_loop, args=(broker, None))
        thread.start()
        self.stopped.set()
        thread.join(10)
        self.assertFalse(thread.is_alive())

    def test_the_last_failure_is_kept(self):
        broker = _Broker(refusals=1)
        loop = reconnect.Reconnect("Test", broker, self.stopped)
        self.assertIsNone(loop.failure)
        for session in loop.sessions():
            with session:
                self.stopped.set()
        self.assertIn("refused", str(loop.failure))
