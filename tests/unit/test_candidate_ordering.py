# SPDX-License-Identifier: Apache-2.0
"""The order of candidates."""

import collections

import hypothesis
import numpy as np
from hypothesis import strategies as st

from placement_rpc.candidates import ordering
from placement_rpc.objects.request import ORDERS
from tests import base


class OrderingTest(base.TestCase):

    def choose(self, left, order, limit=None):
        return ordering.choose(
            len(left), order, limit, lambda: np.array(left, float),
            np.random.default_rng()).tolist()

    @hypothesis.settings(deadline=None)
    @hypothesis.given(st.lists(st.sampled_from((0.0, 0.25, 0.5, 1.0)), min_size=1, max_size=30),
                      st.one_of(st.none(), st.integers(1, 40)),
                      st.sampled_from(ORDERS))
    def test_each_candidate_comes_once_and_the_best_first(self, left, limit, order):
        chosen = self.choose(left, order, limit)
        self.assertEqual(min(len(left), limit or len(left)), len(chosen))
        self.assertEqual(len(chosen), len(set(chosen)))
        if order != ordering.RANDOM:
            best = sorted(left, reverse=order == ordering.SPREAD)
            self.assertEqual(best[:len(chosen)], [left[place] for place in chosen])

    def test_equal_candidates_come_in_random_order(self):
        for order in ORDERS:
            first = collections.Counter(
                self.choose([0.5] * 4, order, 1)[0] for _ in range(400))
            # Each of the four is expected 100 times; 30 is eight standard deviations less.
            self.assertEqual([0, 1, 2, 3], sorted(first))
            self.assertLess(30, min(first.values()))

    def test_the_scarcest_class_counts(self):
        left = ordering.room_left([
            (np.array([8, 8]), np.array([0, 4]), 2),
            (np.array([100, 100]), np.array([90, 0]), 5)])
        self.assertEqual([0.05, 0.25], [round(each, 6) for each in left.tolist()])
