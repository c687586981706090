# SPDX-License-Identifier: Apache-2.0
"""OpenStack Placement finds the candidates that the model has."""

import collections

import testscenarios

from tests import base
from tests.conformance import candidates_comparison
from tests.conformance.candidates_peer import Peer

_WORLDS = 700 if base.FULL else 90


class ComparisonTest(testscenarios.WithScenarios, base.TestCase):

    time_limit = 3600
    scenarios = [(f"seeds from {first}", {"first": first})
                 for first in (0, 100_000)]

    def test_model_and_peer_agree(self):
        peer, counts = self.useFixture(Peer()), collections.Counter()
        wrong = []
        for seed in range(self.first, self.first + _WORLDS):
            wrong += candidates_comparison.compare(peer, seed, counts)
        self.assertEqual([], wrong)
        # The comparison says little if nearly all answers are empty.
        self.assertLess(counts["queries"], 5 * counts["not empty"])
