# SPDX-License-Identifier: Apache-2.0
"""``GET /allocation_candidates`` answers what the model of candidates has."""

import collections
import random

from tests import base, candidates_http, candidates_random, candidates_store, http
from tests import candidates_model as model

_WORLDS = base.examples(40)
_QUERIES = 8


class AnswersTest(http.HTTPTest):

    time_limit = 1200

    def setUp(self):
        super().setUp()
        candidates_store.prepare(self.api)
        self.counts = collections.Counter()

    def load(self, world):
        """Replace the store of the service by a world."""
        candidates_store.load(self.database, world)
        index = self.running.manager.candidates.index
        index.drop("another world")
        index.wait_until_ready()

    def differences(self, world, query):
        """Return what is wrong with the answer to a query, as a list of texts."""
        answer = self.send("GET", f"/allocation_candidates?{candidates_http.query_string(query)}",
                           version=f"1.{query.minor}")
        self.counts[query.minor] += 1
        try:
            found = model.candidates(world, query)
        except model.Unknown as error:
            return [] if answer.status_code == 400 else [f"{answer.text}: there is no {error}"]
        if answer.status_code != 200:
            return [answer.text]
        self.counts["not empty"] += bool(found)
        return candidates_http.differences(
            world, query, found, candidates_http.read(answer.json, query.minor))

    def test_random_queries_of_every_microversion(self):
        wrong = []
        for seed in range(_WORLDS):
            rng = random.Random(seed)
            world = candidates_random.world(rng)
            self.load(world)
            for number in range(_QUERIES):
                minor = 10 + (_QUERIES * seed + number) % 30
                query = candidates_random.query(rng, world, minor)
                wrong += [f"seed {seed}, query {number}, 1.{minor} "
                          f"{candidates_http.query_string(query)}: {each}"
                          for each in self.differences(world, query)]
        self.assertEqual([], wrong)
        self.assertLess(_WORLDS * _QUERIES, 5 * self.counts["not empty"])
        self.assertLessEqual(set(range(10, 40)), set(self.counts))
