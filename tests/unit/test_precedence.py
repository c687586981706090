# SPDX-License-Identifier: Apache-2.0
"""Threads that make large answers rest while there are quick calls."""

import contextlib
import queue
import threading

from placement_rpc.rpc.precedence import Precedence
from placement_rpc.rpc.turns import Turns
from tests import base


class PrecedenceTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.now, self.rests = 1000.0, []
        self.precedence = Precedence(lambda: self.now, self.rests.append)

    def test_nobody_rests_without_quick_calls(self):
        self.precedence.give_way(0.1)
        with self.precedence.quick():
            self.now += 1
        self.now += 1
        self.precedence.give_way(0.1)
        self.assertEqual([], self.rests)

    def test_a_rest_is_longer_than_the_work(self):
        with self.precedence.quick():
            self.precedence.give_way(0.01)
        # The clients of those will call again in a moment.
        self.now += 0.1
        self.precedence.give_way(0.02)
        self.assertEqual([0.08, 0.16], [round(each, 3) for each in self.rests])

    def test_a_rest_has_an_end(self):
        with self.precedence.quick():
            self.precedence.give_way(60)
        self.assertEqual([0.25], self.rests)

    def test_a_failure_among_the_quick_calls_is_an_end_of_them(self):
        with contextlib.suppress(KeyError), self.precedence.quick():
            raise KeyError
        self.now += 1
        self.precedence.give_way(1)
        self.assertEqual([], self.rests)

    def test_a_thread_rests_after_the_work_for_a_client_with_many_calls(self):
        began, go_on, rests = threading.Event(), threading.Event(), queue.Queue()

        def first():
            began.set()
            go_on.wait(10)

        turns = Turns(1, "large", rests.put)
        self.addCleanup(turns.shutdown, True)
        turns.submit("client", first)
        self.assertTrue(began.wait(10))
        for _ in range(4):
            turns.submit("client", lambda: sum(range(10 ** 5)))
        turns.submit("other", lambda: None)
        go_on.set()
        base.wait_until(lambda: not turns.queue.held("client") and not turns.queue.held("other"))
        # Neither the other one nor a client with few calls makes it rest.
        self.assertGreater(rests.get(timeout=10), 0)
        self.assertTrue(rests.empty())
