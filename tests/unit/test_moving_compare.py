# SPDX-License-Identifier: Apache-2.0
"""Streams of rows are compared in one pass, in the order of their keys."""

import datetime

import hypothesis
from hypothesis import strategies as st

from placement_rpc import exception
from placement_rpc.moving import rows
from placement_rpc.moving.compare import Difference, compare
from tests import base

_DAY = datetime.datetime(2026, 1, 1)


def _allocation(consumer, used=1, provider="p", resource_class="VCPU", **times):
    return rows.AllocationRow(consumer, provider, resource_class, used, **times)


def _compared(source, target, kind="allocations"):
    return list(compare(kind, iter(source), iter(target)))


def _stores():
    keys = st.tuples(*[st.sampled_from("abcAZ-_é0")] * 3)
    return st.dictionaries(keys, st.integers(1, 3), max_size=12)


class CompareTest(base.TestCase):

    def test_equal_streams_have_no_differences(self):
        stream = [_allocation("a"), _allocation("b")]
        self.assertEqual([], _compared(stream, stream))
        self.assertEqual([], _compared([], []))

    def test_a_row_that_one_side_lacks(self):
        a, b, c = (_allocation(name) for name in "abc")
        self.assertEqual([
            Difference("allocations", a.key, a, None),
            Difference("allocations", b.key, None, b),
            Difference("allocations", c.key, c, None)], _compared([a, c], [b]))

    def test_values_differ(self):
        one, other = _allocation("a", 1), _allocation("a", 2)
        self.assertEqual([Difference("allocations", ("a", "p", "VCPU"), one, other)],
                         _compared([one, _allocation("b")], [other, _allocation("b")]))

    def test_times_are_not_compared(self):
        self.assertEqual([], _compared(
            [_allocation("a", created_at=_DAY)], [_allocation("a", updated_at=_DAY)]))

    def test_a_root_and_a_child_differ(self):
        root = rows.ProviderRow("a", "name", 1, None, "a")
        child = root._replace(parent="b", root="b")
        self.assertEqual(1, len(_compared([root], [child], "providers")))

    def test_a_stream_that_does_not_ascend_is_an_error(self):
        for wrong in ([_allocation("b"), _allocation("a")], [_allocation("a"), _allocation("a")]):
            for source, target in ((wrong, []), ([], wrong), (wrong, wrong[:1])):
                error = self.assertRaises(
                    exception.StreamOutOfOrder, _compared, source, target)
                self.assertIn(f"{wrong[1].consumer}/p/VCPU came after", str(error))

    @hypothesis.settings(max_examples=base.examples(40), deadline=None)
    @hypothesis.given(source=_stores(), target=_stores())
    def test_the_differences_are_those_of_dicts(self, source, target):
        def stream(store):
            return [rows.AllocationRow(*key, used) for key, used in sorted(store.items())]

        expected = [key for key in sorted({*source, *target})
                    if source.get(key) != target.get(key)]
        found = _compared(stream(source), stream(target))
        self.assertEqual(expected, [each.key for each in found])
        for each in found:
            self.assertEqual(
                (source.get(each.key), target.get(each.key)),
                tuple(row and row.used for row in (each.source, each.target)))


class RowsTest(base.TestCase):

    def test_every_kind_has_a_key_values_and_times(self):
        for kind, cls in rows.KINDS.items():
            row = cls(*[f"{kind}{number}" for number in range(len(cls._fields))])
            self.assertEqual(tuple(row)[:-2], row.key + row.values)
            self.assertEqual(("created_at", "updated_at"), cls._fields[-2:])

    def test_a_row_refers_to_kinds_before_it(self):
        kinds = list(rows.KINDS)
        for later, earlier in (("inventories", "providers"), ("allocations", "consumers"),
                               ("allocations", "inventories"), ("consumers", "consumer_types")):
            self.assertLess(kinds.index(earlier), kinds.index(later))
