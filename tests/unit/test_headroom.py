# SPDX-License-Identifier: Apache-2.0
"""How many more requests fit: compared with claiming in every order until nothing fits."""

import collections

from placement_rpc import exception
from placement_rpc.candidates import headroom, taking
from tests import base, candidates_headroom, candidates_index, candidates_random
from tests import candidates_model as model

_WORLDS = base.examples(40)
_QUERIES = 8


class RandomWorldsTest(base.TestCase):
    """Headroom in random worlds is what claims in every order could reach."""

    time_limit = 1200

    def setUp(self):
        super().setUp()
        self.counts = collections.Counter()

    def test_random_worlds(self):
        candidates_random.check_seeds(_WORLDS, self.check)
        # The worlds and the queries are not trivial.
        for name in ("room", "groups", "aggregate", "trait"):
            self.assertGreater(self.counts[name], _WORLDS // 4, self.counts)

    def check(self, rng):
        world = candidates_headroom.shrunk(candidates_random.world(rng, 7))
        index = candidates_index.index_of(world)
        for _ in range(_QUERIES):
            query = candidates_random.query(rng, world, 39)
            if rng.random() < 0.5:
                query.groups, query.same_subtree, query.group_policy = query.groups[:1], [], None
            if not any(group.amounts for group in query.groups):
                continue
            try:
                found = model.candidates(world, query)
                taken = {by: taking.take(index, candidates_index.groups_query(query), by)
                         for by in (taking.AGGREGATE, taking.TRAIT, taking.CLASS)}
            except (model.Unknown, exception.ResourceClassNotFound, exception.TraitNotFound):
                # An unknown name is refused here also after a group that nothing can serve.
                continue
            self.compare(world, query, found, taken)

    def compare(self, world, query, found, taken):
        expected = candidates_headroom.headroom(world, found)
        if expected is None:
            return
        answers = {by: headroom.headroom(each, by, seconds=60) for by, each in taken.items()}
        for answer in answers.values():
            self.assertEqual((expected, expected), (answer.count, answer.at_most), query)
        self.counts["room"] += expected > 0
        self.counts["groups"] += expected > 0 and len(query.groups) > 1
        for name in candidates_random.aggregates(world):
            self.compare_part(world, answers[taking.AGGREGATE], name,
                              candidates_headroom.in_aggregate(world, query, name), query)
        for name in world.traits:
            self.compare_part(world, answers[taking.TRAIT], name, {
                each for each in found if any(name in world.by_uuid[uuid].traits
                                              for _, uuids in each.mappings for uuid in uuids)},
                query)

    def compare_part(self, world, answer, name, candidates, query):
        """Compare one part of an answer with the headroom of some of the candidates."""
        expected = candidates_headroom.headroom(world, candidates)
        parts = {part["name"]: (part["count"], part["at_most"]) for part in answer.parts}
        self.assertEqual((expected, expected), parts.get(name, (0, 0)), f"{name}: {query}")
        self.counts[answer.by] += expected > 0


class HurriedTest(base.TestCase):
    """Without time, groups that compete in trees that share providers are counted in bounds."""

    def test_groups_of_trees_that_share(self):
        zone = base.new_uuid()
        nodes = [model.Provider(base.new_uuid(), inventories={"VCPU": model.Inventory(8)},
                                aggregates={zone}) for _ in range(2)]
        storage = model.Provider(base.new_uuid(), inventories={"DISK_GB": model.Inventory(100)},
                                 traits={model.SHARES}, aggregates={zone})
        world = model.World([*nodes, storage], ("VCPU", "DISK_GB"), (model.SHARES,))
        query = model.Query([
            model.Group("", {"DISK_GB": 1}), model.Group("_A", {"VCPU": 1}),
            model.Group("_B", {"VCPU": 2})], "none")
        taken = taking.take(
            candidates_index.index_of(world), candidates_index.groups_query(query))
        found = [headroom.headroom(taken, None, seconds) for seconds in (60, 0)]
        # 8 would fit if the groups did not compete.
        self.assertEqual([(4, 4), (0, 8)], [(each.count, each.at_most) for each in found])
