# SPDX-License-Identifier: Apache-2.0
"""Pauses between attempts."""

from placement_rpc.backoff import Backoff
from tests import base


class BackoffTest(base.TestCase):

    def test_pauses_grow_up_to_the_longest(self):
        backoff = Backoff(first=0.1, longest=1.0, factor=3, jitter=0)
        self.assertEqual([0.1, 0.3, 0.9, 1.0, 1.0],
                         [round(backoff.next(), 6) for _ in range(5)])

    def test_it_starts_again_after_a_reset(self):
        backoff = Backoff(first=0.5, jitter=0)
        for _ in range(3):
            backoff.next()
        backoff.reset()
        self.assertEqual(0.5, backoff.next())

    def test_jitter_takes_its_share_of_a_pause(self):
        pauses = [Backoff(first=1.0, jitter=0.25).next() for _ in range(200)]
        self.assertTrue(all(0.75 <= pause <= 1.0 for pause in pauses), pauses)
        self.assertGreater(len(set(pauses)), 1)
