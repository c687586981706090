# SPDX-License-Identifier: Apache-2.0
"""Explanations of requests with groups say of each tree what the model of candidates says."""

import collections

from placement_rpc import exception
from placement_rpc.candidates import funnel, tree_explanation, tree_views
from tests import base, candidates_headroom, candidates_index, candidates_random
from tests import candidates_model as model

_WORLDS = base.examples(130)
_QUERIES = 8


class RandomWorldsTest(base.TestCase):

    time_limit = 600

    def setUp(self):
        super().setUp()
        self.counts = collections.Counter()

    def test_random_worlds(self):
        candidates_random.check_seeds(_WORLDS, self.check)
        for name in (True, False, "group_policy", "required", "forbidden",
                     "member_of", "in_tree", "capacity", "inventory", "max_unit",
                     "root_required"):
            self.assertTrue(self.counts[name], f"{name}: {self.counts}")

    def check(self, rng):
        world = candidates_random.world(rng, 7)
        index = candidates_index.index_of(world)
        for _ in range(_QUERIES):
            query = candidates_random.query(rng, world, 39)
            wanted = candidates_index.groups_query(query)
            try:
                roots = {each.uuid: bool(candidates_headroom.of_root(world, query, each))
                         for each in world.providers if each.parent is None}
                found = tree_explanation.explain(wanted, tree_views.views_of(index, wanted))
            except (model.Unknown, exception.ResourceClassNotFound, exception.TraitNotFound):
                # An unknown name is refused here also after a group that nothing can serve.
                continue
            self.assertEqual(roots, {
                each.provider_uuid: each.fits for each in found.objects}, query)
            self.check_reasons(world, query, found.objects)
            self.check_funnel(world, roots, funnel.funnel(index, wanted).finished(60), query)

    def check_reasons(self, world, query, explanations):
        suffixes = {group.suffix for group in query.groups}
        for each in explanations:
            self.counts[each.fits] += 1
            self.assertEqual(each.fits, not each.reasons)
            for reason in each.reasons:
                self.counts[reason["rule"]] += 1
                self.assertIn(reason["group"], {*suffixes, None})
                self.assertIn(reason["provider_uuid"], {*world.by_uuid, None})

    def check_funnel(self, world, roots, steps, query):
        self.assertEqual(("fleet", len(world.providers), len(roots)), (
            steps[0]["rule"], steps[0]["providers"], steps[0]["trees"]))
        trees = [step["trees"] for step in steps]
        self.assertEqual(sorted(trees, reverse=True), trees, query)
        self.assertEqual(sum(roots.values()), trees[-1], f"{query}: {steps}")
