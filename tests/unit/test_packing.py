# SPDX-License-Identifier: Apache-2.0
"""How many things of several kinds fit: compared with trying all."""

import functools

import numpy as np

from placement_rpc.candidates.packing import Packed, pack
from tests import base

_PROBLEMS = 300


def tried(uses, room):
    """Return how many things fit, by trying every order."""
    kinds = list(map(tuple, uses.T.tolist()))

    @functools.cache
    def best(left):
        return max((1 + best(after) for kind in kinds if min(
            after := tuple(np.subtract(left, kind).tolist())) >= 0), default=0)

    return best(tuple(room.tolist()))


class PackingTest(base.TestCase):

    def packed(self, uses, room, most=10 ** 6):
        return pack(np.array(uses, np.int64), np.array(room, np.int64), most)

    def test_random_problems(self):
        random = np.random.default_rng(1539)
        for number in range(_PROBLEMS):
            rows, kinds = random.integers(1, 6), random.integers(1, 7)
            uses = random.integers(0, 4, (rows, kinds))
            uses = uses[:, uses.any(axis=0)]
            room = random.integers(0, 7, rows)
            if uses.size:
                most = tried(uses, room)
                self.assertEqual(Packed(most, most), pack(uses, room, 10 ** 6), number)
                self.assertEqual(Packed(most, most), pack(uses, room, most), number)

    def test_numbers_beyond_floating_point(self):
        large = 2 ** 62 - 1
        self.assertEqual((large, large), self.packed([[1]], [large], large))
        self.assertEqual((large // 3, large // 3), self.packed([[3, 3], [1, 2]], [large] * 2,
                                                               large))

    def test_a_kind_that_never_fits_is_ignored(self):
        self.assertEqual((2, 2), self.packed([[1, 5], [1, 0]], [2, 9]))
        self.assertEqual((0, 0), self.packed([[5]], [4]))

    def test_a_problem_that_is_too_large_has_bounds(self):
        # Each thing takes one unit of two of many resources.
        kinds = [(one, other) for one in range(60) for other in range(one)]
        uses = np.zeros((60, len(kinds)), np.int64)
        for number, (one, other) in enumerate(kinds):
            uses[[one, other], number] = 1
        found = pack(np.tile(uses, 3)[:, :4000], np.full(60, 10), 1000)
        self.assertLessEqual(found.least, 300)
        self.assertGreaterEqual(found.most, 300)
        self.assertGreater(found.least, 150)
