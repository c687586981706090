# SPDX-License-Identifier: Apache-2.0
"""The line of the calls that wait until fewer are under way."""

import signal
import threading
import time

from placement_rpc.rpc.waiting_line import WaitingLine
from tests import base


class _Interrupt(Exception):
    pass


class WaitingLineTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.line = WaitingLine()
        self.free = 0
        self.entered = []

    def taker(self, name):
        def take():
            if not self.free:
                return False
            self.free -= 1
            self.entered.append(name)
            return True
        return take

    def wait(self, name, seconds=30):
        """Start a thread that waits; return it when it is in the line."""
        before = len(self.line)
        thread = threading.Thread(
            target=self.line.wait, args=(self.taker(name), time.monotonic() + seconds))
        thread.start()
        base.wait_until(lambda: len(self.line) == before + 1)
        return thread

    def test_who_came_first_goes_first(self):
        threads = [self.wait(name) for name in "abcde"]
        for expected in ("a", "ab", "abc", "abcd", "abcde"):
            self.free += 1
            self.line.move()
            base.wait_until(lambda: len(self.entered) == len(expected))  # noqa: B023
            self.assertEqual([*expected], self.entered)
        for thread in threads:
            thread.join()
        self.assertEqual(0, len(self.line))

    def test_several_places_at_once(self):
        threads = [self.wait(name) for name in "abc"]
        self.free = 3
        self.line.move()
        for thread in threads:
            thread.join()
        self.assertEqual([*"abc"], self.entered)

    def test_who_waits_too_long_leaves_the_line(self):
        self.assertFalse(self.line.wait(self.taker("late"), time.monotonic() + 0.05))
        first, second = self.wait("first", 2), self.wait("second")
        first.join()
        self.free = 1
        self.line.move()
        second.join()
        self.assertEqual(["second"], self.entered)

    def test_interrupted_threads_do_not_hold_up_the_line(self):
        """A signal's handler may raise an exception at any place."""
        def interrupt(_number, _frame):
            raise _Interrupt

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, interrupt))
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        for number in range(3000):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.00005 + number % 7 / 50_000)
                while True:
                    self.line.wait(lambda: False, 0)
            except _Interrupt:
                pass
        self.free = 1
        self.assertTrue(self.line.wait(self.taker("next"), time.monotonic() + 30))
        self.assertEqual(0, len(self.line))

    def test_a_place_that_is_free_already(self):
        self.free = 1
        self.assertTrue(self.line.wait(self.taker("only"), time.monotonic() + 30))
        self.line.move()
