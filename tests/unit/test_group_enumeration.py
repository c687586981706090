# SPDX-License-Identifier: Apache-2.0
"""How the search for candidates in groups keeps its work within bounds."""

import itertools
import time
import types

import hypothesis
import numpy as np
from hypothesis import strategies as st

from placement_rpc import exception
from placement_rpc.candidates import arrangements, changes, contention, groups
from placement_rpc.candidates.choices import Batch, Choices
from placement_rpc.candidates.enumeration import Budget
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.query import Group, GroupsQuery
from placement_rpc.candidates.windows import Windows
from tests import base


def index_of(trees, classes=3, traits=()):
    """Return an index of trees: lists of parent in the list, dict of class to capacity, traits."""
    index = CandidateIndex()
    index.class_ids = {f"C{number}": number for number in range(classes)}
    index.traits = {*traits, "MISC_SHARES_VIA_AGGREGATE"}
    providers, inventories, traits_of, aggregates_of = [], [], {}, {}
    for tree in trees:
        first = len(providers) + 1
        for parent, amounts, names, *aggregates in tree:
            id_ = len(providers) + 1
            providers.append(changes.Provider(
                id_, f"00000000-0000-4000-8000-{id_:012x}", str(id_), 1,
                None if parent is None else first + parent))
            inventories += [(id_, class_id, capacity, 0, 1, 2 ** 31 - 1, 1)
                            for class_id, capacity in amounts.items()]
            traits_of[id_], aggregates_of[id_] = names, aggregates
    changes.put(index, providers, inventories, traits_of, aggregates_of)
    return index


def wide(trees, children, **amounts):
    """Return trees of a root with children that have the same amounts, of classes C0, C1, ..."""
    of_child = {int(name[1:]): amount for name, amount in amounts.items()}
    return [[(None, {}, ()), *((0, of_child, ()) for _ in range(children))]
            for _ in range(trees)]


def equal(count, **amounts):
    return [Group(str(number), amounts) for number in range(count)]


class BoundsTest(base.TestCase):
    """Requests that a search which tries combinations blindly would not finish."""

    # Each of these takes a fraction of a second; a search that explodes takes minutes.
    seconds = 20

    def find(self, index, asked, policy="none", limit=1000, maximum=10000, **how):
        query = GroupsQuery(asked, policy, limit=limit, **how)
        for strategy in (groups.BREADTH_FIRST, groups.DEPTH_FIRST):
            began = time.process_time()
            found = groups.find(index, query, np.random.default_rng(), maximum, strategy)
            self.assertLess(time.process_time() - began, self.seconds)
            self.assertEqual(len(found.rows), len(np.unique(found.rows, axis=0)))
        return found

    def test_one_unit_is_missing_everywhere(self):
        index = index_of(wide(2000, 7, C0=1, C1=1))
        for policy in ("none", "isolate"):
            self.assertEqual(0, len(self.find(index, equal(8, C0=1), policy).rows))
        mixed = [Group(str(number), {"C0": 1, "C1": 1} if number % 2 else {"C0": 1})
                 for number in range(8)]
        self.assertEqual(0, len(self.find(index, mixed).rows))

    def test_as_many_equal_groups_as_units(self):
        index = index_of(wide(50, 8, C0=1))
        self.assertEqual(1000, len(self.find(index, equal(8, C0=1)).rows))
        found = self.find(index, equal(8, C0=1), limit=None)
        self.assertEqual((10000, True), (len(found.rows), found.is_cut))
        # One tree has 8! candidates.
        found = self.find(index_of(wide(1, 8, C0=1)), equal(8, C0=1), limit=None, maximum=None)
        self.assertEqual((40320, False), (len(found.rows), found.is_cut))

    def test_a_hundred_groups(self):
        index = index_of(wide(20, 100, C0=8))
        for policy in ("none", "isolate"):
            self.assertEqual(1000, len(self.find(index, equal(100, C0=1), policy).rows))
        self.assertEqual(0, len(self.find(index_of(wide(20, 99, C0=8)), equal(100, C0=1),
                                          "isolate").rows))
        different = [Group(str(number), {"C0": number + 1}) for number in range(100)]
        self.assertEqual(0, len(self.find(index, different).rows))

    def test_many_lists_of_same_subtree(self):
        index = index_of([[(None, {0: 1000}, ()), *((0, {0: 1000}, ()) for _ in range(9))]
                          for _ in range(10)])
        lists = [[str(number) for number in range(100) if (number + skip) % 3]
                 for skip in range(100)]
        self.assertEqual(100, len(self.find(
            index, equal(100, C0=1), limit=100, same_subtree=lists).rows))

    def test_brothers_in_one_subtree(self):
        index = index_of(wide(100, 20, **{f"C{number}": 1 for number in range(12)}), 12)
        asked = [Group(str(number), {f"C{number}": 1}) for number in range(12)]
        self.assertEqual(0, len(self.find(
            index, asked, "isolate", same_subtree=[[each.suffix for each in asked]]).rows))

    def test_an_impossible_pair_beside_many_combinations(self):
        tree = [(None, {}, ()), *((0, {0: 1}, ()) for _ in range(16)),
                (0, {1: 1}, ()), (0, {2: 1}, ())]
        asked = [*equal(8, C0=1), Group("x", {"C1": 1}), Group("y", {"C2": 1})]
        self.assertEqual(0, len(self.find(
            index_of([tree] * 200), asked, same_subtree=[["x", "y"]]).rows))

    def test_a_tree_that_takes_long_does_not_hide_the_others(self):
        # Three of these pieces fill a provider, so that 30 fit; no sum of a class shows it.
        pieces = [Group(str(number), {"C0": 1 + number % 5, "C1": 5 - number % 5})
                  for number in range(31)]
        hard = wide(1, 10, C0=10, C1=10)
        error = self.assertRaises(exception.RequestTooComplex, groups.find, index_of(hard),
                                  GroupsQuery(pieces, "none"), np.random.default_rng())
        self.assertIn("too complex", str(error))
        found = groups.find(index_of([*hard * 20, *wide(1, 10, C0=15, C1=15)]), GroupsQuery(
            pieces, "none", limit=5), np.random.default_rng())
        self.assertEqual((5, False), (len(found.rows), found.is_cut))
        found = groups.find(index_of([*hard, *wide(1, 1, C0=1000, C1=1000)]), GroupsQuery(
            pieces, "none"), np.random.default_rng())
        self.assertEqual((1, True), (len(found.rows), found.is_cut))

    def test_a_wide_tree_is_not_multiplied(self):
        index = index_of(wide(1, 20000, C0=9, C1=9, C2=9))
        asked = [Group("", {"C0": 1, "C1": 1, "C2": 1}), Group("a", {"C0": 1}),
                 Group("b", {"C1": 1})]
        self.assertEqual(1000, len(self.find(index, asked, "isolate").rows))

    def test_many_sharing_providers(self):
        shared = [[(None, {0: 1, 1: 1}, ["MISC_SHARES_VIA_AGGREGATE"], "x")]] * 300
        index = index_of(shared + [[(None, {2: 1}, (), "x")]] * 2000)
        self.assertEqual(1000, len(self.find(index, [Group("", {"C0": 1, "C2": 1})]).rows))
        found = self.find(index, [Group("", {"C0": 1, "C1": 1})], limit=None)
        self.assertEqual((10000, True), (len(found.rows), found.is_cut))

    def test_the_turns_of_a_budget(self):
        budget = Budget(1 << 20)
        turns = 0
        while not budget.is_spent:
            budget.begin_turn()
            turns += 1
            while budget.spend(1 << 10):
                pass
            self.assertTrue(budget.is_exceeded)
        self.assertTrue(5 < turns < 30)


class ArrangementsTest(base.TestCase):

    @hypothesis.settings(deadline=None)
    @hypothesis.given(st.lists(st.integers(0, 3), max_size=6))
    def test_each_order_comes_once(self, values):
        found = [tuple(each) for each in arrangements.arrangements(values)]
        self.assertEqual(len(set(found)), len(found))
        self.assertEqual(set(itertools.permutations(values)), set(found))

    @hypothesis.settings(deadline=None)
    @hypothesis.given(st.data())
    def test_the_orders_of_candidates(self, data):
        parts, parted = [0, 2, 3], [1, 4]
        rows = data.draw(st.sets(st.tuples(*[st.integers(0, 3)] * 5), max_size=6).map(
            lambda some: [each for each in some
                          if each[0] <= each[2] <= each[3] and each[1] <= each[4]]))
        count = data.draw(st.sampled_from((0, 3, 1000)))
        all_orders = {
            (a[0], b[0], a[1], a[2], b[1]) for row in rows
            for a in itertools.permutations([row[part] for part in parts])
            for b in itertools.permutations([row[part] for part in parted])} - set(rows)
        found = arrangements.more(
            np.array(rows, np.int32).reshape(-1, 5), [parts, parted], count)
        found = list(map(tuple, found.tolist()))
        self.assertEqual(len(set(found)), len(found))
        self.assertLessEqual(set(found), all_orders)
        self.assertEqual(min(count, len(all_orders)), len(found))


class ContentionTest(base.TestCase):

    @hypothesis.settings(deadline=None)
    @hypothesis.given(st.data())
    def test_equal_amounts_are_decided_exactly(self, data):
        """A tree is left if and only if units can be given to all parts."""
        sets = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True),
                        min_size=1, max_size=2)
        kinds = data.draw(sets)
        parts = data.draw(st.lists(st.integers(0, len(kinds) - 1), min_size=2, max_size=5))
        free = data.draw(st.lists(st.integers(0, 5), min_size=4, max_size=4))
        amount = data.draw(st.sampled_from((1, 2)))
        one_each = data.draw(st.booleans())
        units = [1 if one_each else each // amount for each in free]
        expected = any(
            all(choice.count(slot) <= units[slot] for slot in choice)
            for choice in itertools.product(*(kinds[part] for part in parts)))
        choices = [Choices(np.array(slots, np.int32), np.array([0]), np.array([len(slots)]),
                           {7: np.array([free[slot] for slot in slots])}) for slots in kinds]
        batch = Batch(np.zeros(1, np.int32), [choices[part] for part in parts])
        found = contention.enough(batch, [contention.Contention(
            range(len(parts)), [1 if one_each else amount] * len(parts),
            None if one_each else 7)])
        self.assertEqual(expected, len(found) == 1)


class WindowsTest(base.TestCase):

    @hypothesis.settings(deadline=None)
    @hypothesis.given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.data())
    def test_each_tree_is_in_one_window(self, sizes, data):
        root = np.cumsum([0, *sizes])[:-1]
        slots = sum(sizes)
        tree = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
        is_dead = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
        parent = np.where(np.isin(np.arange(slots), root), -1, 0).astype(np.int32)
        end = np.arange(1, slots + 1)
        end[root] = root + sizes
        tree[np.array(is_dead)[tree]] = -1
        index = types.SimpleNamespace(tree=tree, root=root, parent=parent, subtree_end=end)
        windows = Windows(index, 0, slots, data.draw(st.integers(0, slots - 1)))
        found = []
        while (window := windows.take(data.draw(st.integers(1, 8)))) is not None:
            self.assertLess(window.first, window.end)
            found += window.trees[window.trees >= 0].tolist()
            for slot in range(window.first, window.end):
                if tree[slot] >= 0:
                    number = window.numbers_of(np.array([slot]))[0]
                    self.assertEqual(tree[slot], window.trees[number])
                    self.assertEqual(root[tree[slot]], window.roots[number])
        self.assertEqual([each for each in range(len(sizes)) if not is_dead[each]],
                         sorted(found))
