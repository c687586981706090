# SPDX-License-Identifier: Apache-2.0
"""Each rule of the search for candidates in groups, in a small world of its own."""

import collections

import numpy as np

from placement_rpc import exception
from placement_rpc.candidates import groups
from tests import base, candidates_index
from tests import candidates_model as model

_TRAITS = ("T1", "T2", "T3", model.SHARES)
_CLASSES = ("VCPU", "DISK_GB", "VGPU", "CUSTOM_UNUSED")
_UUIDS = {name: f"00000000-0000-4000-8000-{number:012x}" for number, name in enumerate(
    ("root", "a", "b", "c", "d", "other", "share", "share2", "X", "Y", "Z"), 1)}
_NAMES = {uuid: name for name, uuid in _UUIDS.items()}


def provider(name, parent=None, traits=(), aggregates=(), **amounts):
    """Return a provider of the model; amounts are totals or inventories, by class."""
    return model.Provider(
        _UUIDS[name], parent and _UUIDS[parent],
        {each: value if isinstance(value, model.Inventory) else model.Inventory(value)
         for each, value in amounts.items()},
        set(traits), {_UUIDS[each] for each in aggregates})


def group(suffix="", in_tree=None, **how):
    """Return a group; classes are in capitals, the rest are fields of the model's group.

    Aggregates are given by name, and a provider is in each of ``member_of``.
    """
    amounts = {name: how.pop(name) for name in list(how) if name.isupper()}
    how["member_of"] = [[_UUIDS[each]] for each in how.get("member_of", ())]
    how["not_member_of"] = [_UUIDS[each] for each in how.get("not_member_of", ())]
    return model.Group(suffix, amounts, in_tree=in_tree and _UUIDS[in_tree], **how)


class RulesTest(base.TestCase):
    """A test in a world of a few providers."""

    def find(self, providers, *asked, **how):
        """Return candidates: list of texts such as "VCPU:2@root 1=a"."""
        found = self.search(providers, *asked, **how)
        return sorted(" ".join(
            sorted(f"{name}:{amount}@{_NAMES[uuid]}" for uuid, name, amount in each.resources)
            + sorted(f"{suffix}={','.join(sorted(_NAMES[uuid] for uuid in uuids))}"
                     for suffix, uuids in each.mappings if suffix)) for each in found)

    def search(self, providers, *asked, strategy=groups.BREADTH_FIRST, maximum=None, **how):
        """Return candidates of the model, which have to be those that the model has."""
        world = model.World(providers, _CLASSES, _TRAITS)
        query = model.Query(list(asked), **how)
        found = candidates_index.search(
            candidates_index.index_of(world), query, np.random.default_rng(), limit=maximum,
            strategy=strategy)
        if query.limit is None and maximum is None:
            self.assertEqual(model.candidates(world, query), set(found))
        self.assertEqual(len(set(found)), len(found))
        return found


class UnsuffixedTest(RulesTest):

    def test_classes_may_come_from_different_providers_and_one_class_may_not(self):
        tree = [provider("root", VCPU=4), provider("a", "root", DISK_GB=5, VCPU=2)]
        self.assertEqual(
            ["DISK_GB:5@a VCPU:2@a", "DISK_GB:5@a VCPU:2@root"],
            self.find(tree, group(VCPU=2, DISK_GB=5)))
        self.assertEqual([], self.find(tree, group(VCPU=5)))

    def test_required_traits_are_met_together(self):
        tree = [provider("root", traits=["T1"], VCPU=4),
                provider("a", "root", ["T2"], DISK_GB=5), provider("b", "root", DISK_GB=5),
                provider("c", "root", ["T3"])]
        self.assertEqual(["DISK_GB:5@a VCPU:2@root"], self.find(
            tree, group(VCPU=2, DISK_GB=5, required=[["T1"], ["T2", "T3"]])))
        # A provider that gives nothing does not count.
        self.assertEqual([], self.find(tree, group(VCPU=2, DISK_GB=5, required=[["T3"]])))
        self.assertEqual(["DISK_GB:5@b VCPU:2@root"], self.find(
            tree, group(VCPU=2, DISK_GB=5, forbidden=["T2"])))
        self.assertEqual([], self.find(tree, group(VCPU=2, required=[["T2"]])))

    def test_more_requirements_than_one_number_has_bits(self):
        names = [f"CUSTOM_{number}" for number in range(150)]
        world = model.World(
            [provider("root", traits=names[:149], VCPU=1),
             provider("a", "root", names[149:], DISK_GB=1), provider("b", "root", DISK_GB=1)],
            _CLASSES, tuple(names))
        query = model.Query([group(VCPU=1, DISK_GB=1, required=[[name] for name in names])])
        self.assertEqual([], candidates_index.differences(
            world, query, candidates_index.index_of(world), np.random.default_rng()))
        self.assertEqual(1, len(model.candidates(world, query)))

    def test_the_root_speaks_for_its_tree_about_aggregates(self):
        tree = [provider("root", aggregates="X", VCPU=4), provider("a", "root", VGPU=1),
                provider("b", "root", aggregates="Y", VGPU=1)]
        self.assertEqual(["VGPU:1@a", "VGPU:1@b"],
                         self.find(tree, group(VGPU=1, member_of=["X"])))
        self.assertEqual(["VGPU:1@b"], self.find(tree, group(VGPU=1, member_of=["Y"])))
        # One of the two has to be in all of them.
        self.assertEqual([], self.find(tree, group(VGPU=1, member_of=["X", "Y"])))
        self.assertEqual(["VGPU:1@a"], self.find(tree, group(VGPU=1, not_member_of=["Y"])))
        self.assertEqual([], self.find(tree, group(VGPU=1, not_member_of=["X"])))
        # The root does not speak for a group with a suffix.
        self.assertEqual([], self.find(tree, group("1", VGPU=1, member_of=["X"])))
        self.assertEqual(["VGPU:1@a 1=a"],
                         self.find(tree, group("1", VGPU=1, not_member_of=["Y"])))

    def test_units(self):
        tree = [provider("root", VCPU=model.Inventory(16, min_unit=2, step_size=2, max_unit=8))]
        self.assertEqual([[], [1], [], [1], [], []], [
            [len(found)] if found else [] for found in (
                self.find(tree, group(VCPU=amount)) for amount in (1, 2, 3, 8, 10, 2 ** 63 - 1))])


class SharingTest(RulesTest):

    shared = (provider("share", traits=[model.SHARES], aggregates="X", DISK_GB=9),)

    def test_a_shared_disk_is_an_alternative(self):
        trees = [provider("root", aggregates="X", VCPU=4, DISK_GB=5),
                 provider("other", VCPU=4), *self.shared]
        self.assertEqual(["DISK_GB:5@root VCPU:1@root", "DISK_GB:5@share VCPU:1@root"],
                         self.find(trees, group(VCPU=1, DISK_GB=5)))
        self.assertEqual(["DISK_GB:5@root VCPU:1@root"],
                         self.find(trees, group(VCPU=1, DISK_GB=5, in_tree="root")))
        self.assertEqual(["DISK_GB:5@share VCPU:1@root D=share"], self.find(
            trees, group(VCPU=1, in_tree="root"), group("D", DISK_GB=5, in_tree="share")))

    def test_any_provider_of_a_tree_makes_it_an_anchor(self):
        trees = [provider("root", VCPU=4), provider("a", "root", aggregates="X"), *self.shared]
        self.assertEqual(["DISK_GB:1@share VCPU:1@root"],
                         self.find(trees, group(VCPU=1, DISK_GB=1)))

    def test_the_same_candidate_of_several_trees_comes_once(self):
        trees = [provider("root", aggregates="X", VCPU=1),
                 provider("other", aggregates="X", VCPU=1), *self.shared,
                 provider("share2", traits=[model.SHARES], aggregates="X", DISK_GB=9)]
        self.assertEqual(["DISK_GB:1@share", "DISK_GB:1@share2"],
                         self.find(trees, group(DISK_GB=1)))
        self.assertEqual(4, len(self.find(
            trees, group("1", DISK_GB=1), group("2", DISK_GB=1), group_policy="none")))
        for strategy in (groups.BREADTH_FIRST, groups.DEPTH_FIRST):
            self.assertEqual(2, len(self.find(trees, group(DISK_GB=1), strategy=strategy,
                                              limit=2)))

    def test_every_anchor_keeps_its_candidates(self):
        # OpenStack Placement loses one of the two.
        trees = [provider("root", aggregates="X", VCPU=1),
                 provider("other", aggregates="X", VCPU=1), *self.shared]
        self.assertEqual(["DISK_GB:1@share VCPU:1@other C=other",
                          "DISK_GB:1@share VCPU:1@root C=root"],
                         self.find(trees, group(DISK_GB=1), group("C", VCPU=1)))

    def test_a_nested_sharing_provider(self):
        # OpenStack Placement answers 500.
        trees = [provider("root", aggregates="X", VCPU=4), provider("other"),
                 provider("a", "other", [model.SHARES], "X", DISK_GB=9)]
        self.assertEqual(["DISK_GB:1@a VCPU:1@root"],
                         self.find(trees, group(VCPU=1, DISK_GB=1)))

    def test_aggregates_of_a_sharing_provider_are_its_own(self):
        trees = [provider("root", aggregates="XY", VCPU=4), *self.shared]
        self.assertEqual([], self.find(trees, group(VCPU=1, DISK_GB=1, member_of=["Y"])))
        self.assertEqual(["DISK_GB:1@share VCPU:1@root"],
                         self.find(trees, group(VCPU=1, DISK_GB=1, member_of=["X"])))
        self.assertEqual([], self.find(
            trees, group("C", VCPU=1), group(DISK_GB=1, not_member_of=["Y"])))

    def test_a_tree_that_only_has_guests_is_not_hidden_by_one_that_may_not(self):
        trees = [provider("root", traits=["T1"], aggregates="XY"),
                 provider("other", traits=["T1"], aggregates="XZ"), *self.shared]
        # From whichever tree the search begins.
        for _ in range(20):
            self.assertEqual(["DISK_GB:1@share"], self.find(
                trees, group(DISK_GB=1, not_member_of=["Y"]), root_required=["T1"]))


class SuffixedTest(RulesTest):

    def test_one_provider_has_all(self):
        tree = [provider("root", traits=["T1"], VCPU=4, DISK_GB=5),
                provider("a", "root", ["T2"], VCPU=4), provider("b", "root", DISK_GB=5)]
        self.assertEqual(["DISK_GB:1@root VCPU:1@root 1=root"],
                         self.find(tree, group("1", VCPU=1, DISK_GB=1)))
        self.assertEqual([], self.find(tree, group("1", VCPU=1, required=[["T1"], ["T2"]])))
        self.assertEqual(["VCPU:1@a 1=a"], self.find(tree, group("1", VCPU=1, forbidden=["T1"])))

    def test_all_groups_have_one_tree(self):
        trees = [provider("root", VCPU=4), provider("other", VGPU=1)]
        self.assertEqual([], self.find(trees, group(VCPU=1), group("1", VGPU=1)))

    def test_root_traits(self):
        trees = [provider("root", traits=["T1", "T2"], VCPU=1), provider("a", "root", VGPU=1),
                 provider("other", traits=["T1"], VCPU=1)]
        self.assertEqual(["VCPU:1@root"], self.find(trees, group(VCPU=1), root_required=["T2"]))
        self.assertEqual(["VCPU:1@other"], self.find(
            trees, group(VCPU=1), root_required=["T1"], root_forbidden=["T2"]))
        self.assertEqual(["VGPU:1@a"], self.find(trees, group(VGPU=1), root_required=["T2"]))

    def test_isolate_is_about_groups_with_a_suffix(self):
        tree = [provider("root", VGPU=4), provider("a", "root", VGPU=4)]
        two = group("1", VGPU=1), group("2", VGPU=1)
        self.assertEqual(4, len(self.find(tree, *two, group_policy="none")))
        self.assertEqual(["VGPU:1@a VGPU:1@root 1=a 2=root", "VGPU:1@a VGPU:1@root 1=root 2=a"],
                         self.find(tree, *two, group_policy="isolate"))
        self.assertEqual(4, len(self.find(tree, group(VGPU=1), *two, group_policy="isolate")))

    def test_amounts_of_groups_are_summed(self):
        tree = [provider("root"), provider("a", "root", VGPU=3),
                provider("b", "root", VGPU=model.Inventory(9, max_unit=2)),
                provider("c", "root", VGPU=model.Inventory(4, used=2))]
        # The unsuffixed group and another one: OpenStack Placement returns wrong amounts.
        self.assertEqual(
            ["VGPU:1@a VGPU:2@b 1=a", "VGPU:1@a VGPU:2@c 1=a", "VGPU:1@b VGPU:2@a 1=b",
             "VGPU:1@b VGPU:2@c 1=b", "VGPU:1@c VGPU:2@a 1=c", "VGPU:1@c VGPU:2@b 1=c",
             "VGPU:3@a 1=a"], self.find(tree, group(VGPU=2), group("1", VGPU=1)))

    def test_groups_without_resources(self):
        tree = [provider("root", traits=["T1"], VCPU=1), provider("a", "root", ["T2"], "X"),
                provider("b", "root", ["T2", "T3"])]
        asked = group(VCPU=1)
        self.assertEqual(["VCPU:1@root 1=a", "VCPU:1@root 1=b"], self.find(
            tree, asked, group("1", required=[["T2"]]), same_subtree=[["1"]]))
        self.assertEqual(["VCPU:1@root 1=a"], self.find(
            tree, asked, group("1", required=[["T2"]], forbidden=["T3"]), same_subtree=[["1"]]))
        self.assertEqual(["VCPU:1@root 1=a"], self.find(
            tree, asked, group("1", member_of=["X"]), same_subtree=[["1"]]))
        # Nothing positive finds nothing.
        self.assertEqual([], self.find(
            tree, asked, group("1", forbidden=["T3"]), same_subtree=[["1"]]))
        self.assertEqual([], self.find(
            tree, asked, group("1", in_tree="root"), same_subtree=[["1"]]))
        # in_tree of such a group is ignored, but has to exist.
        trees = [*tree, provider("other")]
        self.assertEqual(2, len(self.find(
            trees, asked, group("1", "other", required=[["T2"]]), same_subtree=[["1"]])))
        self.assertEqual([], self.find(
            tree, asked, group("1", "Z", required=[["T2"]]), same_subtree=[["1"]]))

    def test_same_subtree(self):
        tree = [provider("root", VCPU=1), provider("a", "root", ["T1"]),
                provider("b", "a", VGPU=1), provider("c", "root", ["T1"]),
                provider("d", "c", VGPU=1, DISK_GB=1)]
        numa, gpu = group("N", required=[["T1"]]), group("G", VGPU=1)
        self.assertEqual(["VGPU:1@b G=b N=a", "VGPU:1@d G=d N=c"], self.find(
            tree, numa, gpu, group_policy="none", same_subtree=[["N", "G"]]))
        self.assertEqual(["DISK_GB:1@d VGPU:1@d D=d G=d N=c"], self.find(
            tree, numa, gpu, group("D", DISK_GB=1), group_policy="none",
            same_subtree=[["N", "G", "D"]]))
        # Each list by itself; a list of one is always met.
        self.assertEqual(2, len(self.find(
            tree, numa, gpu, group("D", DISK_GB=1), group_policy="none",
            same_subtree=[["N", "D"], ["G"]])))
        # Brothers have no ancestor among them.
        self.assertEqual([], self.find(
            tree, group("1", VGPU=1), group("2", VGPU=1), group_policy="isolate",
            same_subtree=[["1", "2"]]))

    def test_no_two_providers_of_a_tree_for_old_callers(self):
        trees = [provider("root", aggregates="X", VCPU=1), provider("a", "root", VGPU=1),
                 *SharingTest.shared]
        self.assertEqual([], self.find(trees, group(VCPU=1, VGPU=1), minor=28))
        self.assertEqual(["VGPU:1@a"], self.find(trees, group(VGPU=1), minor=28))
        self.assertEqual(["DISK_GB:1@share VCPU:1@root"],
                         self.find(trees, group(VCPU=1, DISK_GB=1), minor=28))


class ErrorsTest(RulesTest):

    tree = (provider("root", traits=["T1"], VCPU=1), provider("a", "root", DISK_GB=1))

    def assert_unknown(self, name, *asked, **how):
        error = self.assertRaises(model.Unknown, self.find, list(self.tree), *asked, **how)
        self.assertIn(name, str(error))

    def test_unknown_classes_and_traits(self):
        self.assert_unknown("NOPE", group(VCPU=1), group("1", NOPE=1))
        self.assert_unknown("NOPE", group(VCPU=1), group("1", VCPU=1, required=[["T1", "NOPE"]]))
        self.assert_unknown("NOPE", group(VCPU=1, forbidden=["NOPE"]))
        self.assert_unknown("NOPE", group(VCPU=1), root_required=["NOPE"])
        self.assert_unknown("NOPE", group(VCPU=9), root_forbidden=["NOPE"])

    def test_a_group_that_finds_nothing_hides_the_errors_after_it(self):
        tree, wrong = list(self.tree), group("1", NOPE=1)
        for nothing in (group(VCPU=9), group(VGPU=1), group(CUSTOM_UNUSED=1),
                        group(VCPU=1, required=[["T2"]]), group(VCPU=1, in_tree="Z"),
                        # All classes are there, but not the trait on what gives them.
                        group(VCPU=1, DISK_GB=1, required=[["T1"], ["T3"]])):
            self.assertEqual([], self.find(tree, nothing, wrong))
        self.assertEqual([], self.find(tree, group(VCPU=1), wrong, root_required=["T2"]))
        # Unknown traits of a group whose aggregates no provider is in are not looked at.
        self.assertEqual([], self.find(
            tree, group(VCPU=1, member_of=["X"], required=[["NOPE"]])))
        self.assert_unknown("NOPE", wrong, group(VCPU=9))

    def test_too_many_parts(self):
        index = candidates_index.index_of(model.World(list(self.tree), _CLASSES, _TRAITS))
        query = candidates_index.groups_query(model.Query(
            [group(str(number), VCPU=1) for number in range(groups.MAX_PARTS + 1)]))
        error = self.assertRaises(exception.RequestTooComplex, groups.find, index, query,
                                  np.random.default_rng())
        self.assertEqual(400, error.http_status)


class LimitTest(base.TestCase):
    """What a limit and a maximum leave, and in which order."""

    def setUp(self):
        super().setUp()
        providers = []
        for _ in range(40):
            root = model.Provider(base.new_uuid(), None, {"VCPU": model.Inventory(4)})
            providers.append(root)
            providers += [model.Provider(base.new_uuid(), root.uuid, {"VGPU": model.Inventory(2)})
                          for _ in range(3)]
        self.world = model.World(providers, _CLASSES, _TRAITS)
        self.index = candidates_index.index_of(self.world)
        # Each tree has 3 candidates, and 9 for two groups.
        self.one = (group(VCPU=1), group("1", VGPU=1))
        self.two = (*self.one, group("2", VGPU=1))

    def find(self, asked, limit=None, maximum=None, strategy=groups.BREADTH_FIRST):
        found = groups.find(self.index, candidates_index.groups_query(
            model.Query(list(asked), group_policy="none", limit=limit)),
            np.random.default_rng(), maximum, strategy)
        trees = collections.Counter(
            self.index.tree[found.rows[:, 0]].tolist() if len(found.rows) else ())
        self.assertEqual(len(found.rows), len(np.unique(found.rows, axis=0)))
        return found, trees

    def test_breadth_first_takes_from_all_trees_alike(self):
        for asked, limit, expected in (
                (self.one, 10, {1: 10}), (self.one, 40, {1: 40}), (self.one, 50, {1: 30, 2: 10}),
                (self.one, 100, {2: 20, 3: 20}), (self.one, 500, {3: 40}),
                (self.two, 40, {1: 40}), (self.two, 80, {2: 40}), (self.two, None, {9: 40})):
            _, trees = self.find(asked, limit)
            self.assertEqual(expected, dict(collections.Counter(trees.values())))

    def test_depth_first_takes_all_of_a_tree(self):
        for asked, limit, expected in (
                (self.one, 2, {2: 1}), (self.one, 10, {3: 3, 1: 1}), (self.one, None, {3: 40}),
                (self.two, 20, {9: 2, 2: 1}), (self.two, None, {9: 40})):
            _, trees = self.find(asked, limit, strategy=groups.DEPTH_FIRST)
            self.assertEqual(expected, dict(collections.Counter(trees.values())))

    def test_combinations_come_before_their_other_orders(self):
        found, trees = self.find(self.two, 240)
        # Six combinations of each tree, of which three have another order.
        self.assertEqual({6: 40}, dict(collections.Counter(trees.values())))
        columns = [column.suffix for column in found.columns]
        both = np.sort(found.rows[:, [columns.index("1"), columns.index("2")]], axis=1)
        self.assertEqual(240, len(np.unique(both, axis=0)))

    def test_a_search_begins_at_a_random_tree(self):
        first = {next(iter(self.find(self.one, 1)[1])) for _ in range(200)}
        # Each of 40 trees is missed with a probability of 0.6 %.
        self.assertLess(25, len(first))

    def test_what_the_maximum_cuts_is_said(self):
        for limit, maximum, count, is_cut in (
                (None, 120, 120, False), (None, 119, 119, True), (200, 119, 119, True),
                (119, 119, 119, False), (10, 119, 10, False), (None, None, 120, False)):
            for strategy in (groups.BREADTH_FIRST, groups.DEPTH_FIRST):
                found, _ = self.find(self.one, limit, maximum, strategy)
                self.assertEqual((count, is_cut), (len(found.rows), found.is_cut))

    def test_columns(self):
        found, _ = self.find((group("b", VGPU=2), group(VCPU=1, VGPU=1), group("a", VCPU=1)), 1)
        ids = self.index.class_ids
        self.assertEqual(
            [("", {ids["VCPU"]: 1}), ("", {ids["VGPU"]: 1}), ("b", {ids["VGPU"]: 2}),
             ("a", {ids["VCPU"]: 1})], [(each.suffix, each.amounts) for each in found.columns])
        self.assertEqual([True, False, False, True],
                         (self.index.parent[found.rows[0]] < 0).tolist())
