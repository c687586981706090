# SPDX-License-Identifier: Apache-2.0
"""The search for candidates in groups finds what the model of candidates has."""


import hypothesis
import numpy as np
from hypothesis import strategies as st

from tests import base, candidates_http, candidates_index, candidates_random

_WORLDS = base.examples(300)
_QUERIES = 8


class ModelTest(base.TestCase):
    """The candidates of an index against those of the model."""

    time_limit = 1200

    def check(self, rng):
        """Compare the answers to random queries in a random world."""
        world = candidates_random.world(rng)
        index = candidates_index.index_of(world)
        generator = np.random.default_rng(rng.getrandbits(32))
        for _ in range(_QUERIES):
            query = candidates_random.query(rng, world, candidates_random.minor(rng))
            text = f"1.{query.minor} {candidates_http.query_string(query)}"
            try:
                self.assertEqual(
                    [], candidates_index.differences(world, query, index, generator))
            except Exception as error:
                error.add_note(text)
                raise

    def test_random_worlds(self):
        candidates_random.check_seeds(_WORLDS, self.check)

    def test_random_worlds_of_hypothesis(self):
        hypothesis.settings(max_examples=base.examples(100), deadline=None)(
            hypothesis.given(st.randoms(use_true_random=False))(self.check))()
