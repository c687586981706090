# SPDX-License-Identifier: Apache-2.0
"""What Placement's rows may hold and ours may not: the rules, without a database."""

import uuid

import hypothesis
from hypothesis import strategies as st

from placement_rpc.db.placement.reading import Stream
from placement_rpc.moving import placement_store, repairs, rows
from placement_rpc.objects import fields
from placement_rpc.objects.inventory import Inventory, capacity_of
from tests import base

_A, _B, _C, _D = (str(uuid.UUID(int=number)) for number in range(1, 5))


class _Case(base.TestCase):

    def setUp(self):
        super().setUp()
        self.findings = []

    def report(self, finding):
        self.findings.append(finding)

    def found(self):
        """Return what was reported, and of which key."""
        return [(each.what, each.key) for each in self.findings]


class UuidTest(_Case):

    def test_every_way_to_write_a_uuid_is_the_same_one(self):
        plain = "6f1d7d1e-6f0f-4c59-9b6c-0d4a6c1f3a11"
        for text in (plain, plain.upper(), plain.replace("-", ""), f"{{{plain}}}",
                     f"urn:uuid:{plain}"):
            self.assertEqual(plain, repairs.canonical_uuid(text))

    def test_another_text_becomes_a_uuid_that_is_always_the_same(self):
        one = repairs.canonical_uuid("not-a-uuid")
        self.assertEqual(one, str(uuid.UUID(one)))
        self.assertEqual(one, repairs.canonical_uuid("not-a-uuid"))
        self.assertNotEqual(one, repairs.canonical_uuid("not-a-uuid2"))
        self.assertEqual(one, "ce16c8c0-dd4e-5c45-ac2c-8cdc75f68c3c")


class NameTest(_Case):

    def test_usual_names_stay(self):
        for name in ("compute0", "ö", "x" * 200):
            self.assertEqual(name, repairs.provider_name(_A, name, self.report))
        self.assertEqual([], self.found())

    def test_other_names_of_providers_become_unique_ones(self):
        for name in (None, "", "a\nb", "x" * 201):
            changed = repairs.provider_name(_A, name, self.report)
            self.assertEqual(changed, fields.Name().coerce(None, "name", changed))
            self.assertIn(_A, changed)
        self.assertEqual([("name_missing", (_A,))] * 2 + [("name_changed", (_A,))] * 2,
                         self.found())

    def test_blanks_at_the_end_of_a_name_stay_if_they_make_no_difference(self):
        self.assertEqual("a ", repairs.provider_name(_A, "a ", self.report, {"b"}))
        self.assertEqual("a", repairs.provider_name(_A, "a", self.report, {"a"}))
        self.assertEqual([], self.found())
        self.assertEqual(f"a {_A}", repairs.provider_name(_A, "a  ", self.report, {"a"}))
        self.assertEqual([("name_changed", (_A,))], self.found())

    def test_names_of_classes(self):
        read = [(0, "VCPU"), (1, "CUSTOM_A_B"), (2, "custom_a-b"), (3, "a.b"), (4, "FUTURE"),
                (5, "é" * 300), (6, "é" * 301)]
        names = repairs.names("resource_classes", read, {"VCPU"}, self.report)
        self.assertEqual(
            {0: "VCPU", 1: "CUSTOM_A_B", 2: "CUSTOM_A_B_2", 3: "CUSTOM_A_B_3", 4: "FUTURE"},
            {id_: names[id_] for id_ in range(5)})
        self.assertEqual(len(read), len(set(names.values())))
        for name in names.values():
            self.assertTrue(fields.is_trait_name(name), name)
        self.assertEqual(
            ["name_changed", "name_changed", "standard_unknown", "name_changed", "name_changed"],
            [what for what, _ in self.found()])

    def test_names_of_types_have_no_prefix(self):
        self.assertEqual({1: "INSTANCE", 2: "A_B"}, repairs.names(
            "consumer_types", [(1, "INSTANCE"), (2, "a-b")], (), self.report))

    def test_project_and_user(self):
        for value, expected in (("p", "p"), (None, "none"), ("", "none"), ("a\x00b", "a?b"),
                                ("x" * 300, "x" * 255)):
            self.assertEqual(expected, repairs.keystone_id(
                "project", _A, value, "none", self.report))
        self.assertEqual(["project_missing"] * 2 + ["project_changed"] * 2,
                         [what for what, _ in self.found()])


class InventoryTest(_Case):

    def values(self, *values):
        return repairs.inventory_values((_A, "VCPU"), values, self.report)

    def test_usual_values_stay(self):
        for values in ((1, 0, 1, 1, 1, 1.0), (fields.MAX_INT, 5, 3, 2, 7, 0.9),
                       (10, 10, 1, 10, 1, 16.0)):
            self.assertEqual(values, self.values(*values))
        self.assertEqual([], self.found())

    def test_others_allow_no_more_than_before(self):
        for values, expected in (
                ((0, 0, 1, 1, 1, 1.0), (1, 1, 1, 1, 1, 1.0)),
                ((-5, -7, 1, 1, 1, 1.0), (1, 1, 1, 1, 1, 1.0)),
                ((10, 11, 1, 10, 1, 1.0), (10, 10, 1, 10, 1, 1.0)),
                ((10, 0, 1, 0, 1, 1.0), (10, 0, 2, 1, 1, 1.0)),
                ((10, 0, 0, 5, 0, 1.0), (10, 0, 1, 5, 1, 1.0)),
                ((10, 0, 1, 5, 1, float("nan")), (10, 0, 1, 5, 1, 0.0)),
                ((10, 0, 1, 5, 1, -1.0), (10, 0, 1, 5, 1, 0.0)),
                ((10, 0, 1, 5, 1, float("inf")), (10, 0, 1, 5, 1, fields.Ratio.maximum))):
            self.assertEqual(expected, self.values(*values))
            self.assertEqual(("values_changed", (_A, "VCPU")), self.found()[-1])

    @hypothesis.settings(max_examples=base.examples(200), deadline=None)
    @hypothesis.given(st.tuples(*[st.integers(-2 ** 31, 2 ** 31 - 1)] * 5, st.floats()))
    def test_the_store_accepts_every_result(self, values):
        changed = repairs.inventory_values((_A, "VCPU"), values, self.report)
        names = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
        inventory = Inventory(resource_class="VCPU", **dict(zip(names, changed, strict=True)))
        self.assertEqual(changed, tuple(getattr(inventory, name) for name in names))
        self.assertLessEqual(0, capacity_of(changed[0], changed[1], changed[-1]))
        # What was in order is not touched.
        self.assertEqual(changed, repairs.inventory_values(
            (_A, "VCPU"), changed, lambda finding: self.fail(finding)))

    def test_allocations_without_inventory_fill_one(self):
        self.assertEqual((7, 0, 1, 7, 1, 1.0),
                         repairs.filled_inventory((_A, "VCPU"), 7, self.report))
        self.assertEqual([("allocation_without_inventory", (_A, "VCPU"))], self.found())

    def test_over_capacity_is_said(self):
        for values, used, is_over in (
                ((10, 0, 1, 10, 1, 1.0), 10, False), ((10, 0, 1, 10, 1, 1.0), 11, True),
                ((10, 0, 1, 10, 1, 0.5), 6, True), ((10, 0, 1, 10, 1, 0.5), 5, False),
                ((10, 5, 1, 10, 1, 2.0), 10, False), ((10, 5, 1, 10, 1, 2.0), 11, True)):
            self.findings.clear()
            repairs.check_capacity((_A, "VCPU"), values, used, self.report)
            self.assertEqual(is_over, bool(self.findings), (values, used))

    def test_rows_of_one_allocation_are_added(self):
        key = _A, _B, "VCPU"
        self.assertEqual(4, repairs.amount(key, [4], self.report))
        self.assertEqual([], self.found())
        self.assertEqual(5, repairs.amount(key, [4, 1], self.report))
        self.assertEqual(fields.MAX_INT, repairs.amount(key, [fields.MAX_INT, 1], self.report))
        self.assertEqual([("allocation_twice", key)] * 2, self.found())


class _Counted(str):
    """A text that counts how often it is compared for equality."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other):
        _Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class TreeTest(_Case):

    def trees(self, *parents):
        """Return the trees of providers whose id is their place, given the ids of parents."""
        return repairs.trees(
            [(number, str(number), parent) for number, parent in enumerate(parents)],
            lambda text: text)

    def test_roots_are_computed_from_parents(self):
        self.assertEqual(
            {"0": (None, "0"), "1": ("0", "0"), "2": ("1", "0"), "3": (None, "3")},
            self.trees(None, 0, 1, None))

    def test_a_parent_that_does_not_exist(self):
        self.assertEqual({"0": (None, "0"), "1": ("0", "0")}, self.trees(77, 0))

    def test_the_smallest_of_a_loop_is_its_root(self):
        self.assertEqual(
            {"0": ("1", "1"), "1": (None, "1"), "2": ("1", "1"), "3": ("2", "1")},
            self.trees(1, 3, 1, 2))
        self.assertEqual({"0": (None, "0")}, self.trees(0))

    def test_the_work_for_a_deep_tree_is_linear(self):
        """Counted in comparisons of uuids, which a search of a list would make."""
        def compared(depth, last):
            _Counted.compared = 0
            rows_ = [(number, _Counted(f"{depth - number:05}"), number - 1 if number else last)
                     for number in range(depth)]
            found = repairs.trees(rows_, lambda text: text)
            root = f"{depth:05}" if last is None else "00001"
            self.assertEqual({root}, {each for _, each in found.values()})
            return _Counted.compared

        for last in (lambda depth: None, lambda depth: depth - 1):
            once, twice = (compared(depth, last(depth)) for depth in (3000, 6000))
            self.assertLess(twice, 3 * once)

    def test_of_two_rows_of_a_uuid_the_one_in_lower_case_counts(self):
        rows_ = [(1, "AB", None), (2, "ab", 3), (3, "cd", None)]
        for each in (rows_, rows_[::-1]):
            self.assertEqual({"ab": ("cd", "cd"), "cd": (None, "cd")},
                             repairs.trees(each, str.lower))

    @hypothesis.settings(max_examples=base.examples(200), deadline=None)
    @hypothesis.given(st.lists(st.none() | st.integers(0, 9), max_size=9))
    def test_every_result_is_a_forest(self, parents):
        found = self.trees(*parents)
        for uuid_, (parent, root) in found.items():
            path = {uuid_}
            while parent is not None:
                self.assertNotIn(parent, path)
                path.add(parent)
                self.assertEqual(root, found[parent][1])
                parent = found[parent][0]
            self.assertIn(root, path)
            self.assertIsNone(found[root][0])


class _Reader:
    """What :class:`placement_rpc.db.placement.reading.Reader` has read."""

    def __init__(self, **streams):
        self._streams = streams
        self.oddities = self

    def __getattr__(self, name):
        if name in ("resource_classes", "traits", "consumer_types"):
            return lambda: self._streams.get(name, [])
        unusual, usual = self._streams.get(name, ([], []))
        return lambda: Stream(list(unusual), iter(usual))

    def unusual(self, table):
        return [row[0] for row in self._streams.get(table, ([], []))[0]]

    def has_broken_trees(self):
        return False

    def ambiguous_names(self):
        return set()

    def parents(self):
        return [(number, row[0], None) for number, row in enumerate(
            [*self._streams["providers"][0], *self._streams["providers"][1]])]


class StreamTest(_Case):
    """Rows of one uuid, written in several ways, become one."""

    def rows(self, kind, **streams):
        return list(placement_store.PlacementStore(_Reader(**streams), "x").rows(
            kind, self.report if kind == "providers" else None))

    def test_unusual_uuids_are_merged_where_they_belong(self):
        found = self.rows("provider_traits", traits=[(1, "ONE"), (2, "TWO")], provider_traits=(
            [(_B.upper().replace("-", ""), 2, None, None), (_D.replace("-", ""), 1, None, None)],
            [(_A, 1, None, None), (_B, 1, None, None), (_C, 2, None, None)]))
        self.assertEqual([(_A, "ONE"), (_B, "ONE"), (_B, "TWO"), (_C, "TWO"), (_D, "ONE")],
                         [row.key for row in found])

    def test_consumers_of_one_uuid(self):
        def consumer(text, generation):
            return text, 0, "p", "u", None, generation, None, None

        def holder(text):
            return text, 1, *[None] * 6

        plain, other = _B, _B.replace("-", "")
        for unusual, usual, generation in (
                ([consumer(other, 9)], [consumer(plain, 2), holder(plain)], 2),
                ([consumer(other, 2), consumer(f"{{{plain}}}", 9)], [holder(plain)], 9),
                ([holder(other)], [consumer(plain, 2)], 2)):
            found = self.rows("consumers", consumers=(unusual, usual))
            self.assertEqual([(_B, generation)], [(row.uuid, row.generation) for row in found])
        self.assertEqual([], self.rows("consumers", consumers=([consumer(other, 1)], [])))

    def test_providers_of_one_uuid(self):
        def provider(text, name):
            return text, name, 1, None, 1, None, text, None, None

        found = self.rows("providers", providers=(
            [provider(_A.replace("-", ""), "other")], [provider(_A, "name")]))
        self.assertEqual([rows.ProviderRow(_A, "name", 1, None, _A)], found)
        self.assertEqual(["uuid_unusual", "uuid_twice"], [what for what, _ in self.found()])

    def test_allocations_of_two_ways_to_write_a_consumer_are_added(self):
        found = self.rows("allocations", resource_classes=[(0, "VCPU")], allocations=(
            [(_B.replace("-", ""), _A, 0, 3, None, None)], [(_B, _A, 0, 2, None, None)]))
        self.assertEqual([rows.AllocationRow(_B, _A, "VCPU", 5)], found)
