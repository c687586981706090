# SPDX-License-Identifier: Apache-2.0
"""When a client sends a call once more."""

import itertools
import math

from placement_rpc.rpc.repeats import Repeats
from tests import base


class RepeatsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.repeats = Repeats(0.2)

    def pauses(self, method="claim_allocations", count=4):
        return [round(each, 6) for each in itertools.islice(self.repeats.pauses(method), count)]

    def test_the_first_pauses_are_equal_and_the_others_grow(self):
        self.assertEqual([0.2, 0.2, 0.2, 0.3, 0.45], self.pauses(count=5))

    def test_five_copies_are_sent_within_a_second(self):
        # The first has no pause before it.
        self.assertLess(sum(self.pauses(count=4)), 1)

    def test_a_slow_service_gets_fewer_copies(self):
        for _ in range(40):
            self.repeats.answered("claim_allocations", 0.5)
        self.assertEqual(2.0, self.pauses()[0])
        for _ in range(40):
            self.repeats.answered("claim_allocations", 0.01)
        self.assertEqual(0.2, self.pauses()[0])

    def test_calls_that_wait_for_a_stopped_server_or_its_locks_change_nothing(self):
        for number in range(60):
            self.repeats.answered("claim_allocations", 5.0 if number % 3 else 0.01)
        self.assertEqual(0.2, self.pauses()[0])

    def test_calls_with_long_answers_are_repeated_later(self):
        self.repeats.answered("explain", 1.0)
        self.assertEqual([4.0, 0.2], [self.pauses("explain")[0], self.pauses()[0]])
        self.assertEqual(1.6, next(Repeats(0.2).pauses("get_by_request")))

    def test_an_unknown_call_is_not_repeated(self):
        self.repeats.answered("say", 1.0)
        self.assertEqual([math.inf], list(self.repeats.pauses("say")))
