# SPDX-License-Identifier: Apache-2.0
"""The answer about allocation candidates at each microversion, and the same as written plainly."""

import dataclasses
import json
import random
import re
import uuid

import hypothesis
import numpy as np
from hypothesis import strategies as st

from placement_rpc.candidates import changes, rendering, text_rows
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.query import Column, Found
from placement_rpc.candidates.uuid_columns import to_halves
from tests import base

_CLASSES = {"VCPU": 0, "MEMORY_MB": 1, "DISK_GB": 2, "CUSTOM_A": 10000, "CUSTOM_B": 10001}
_NAMES = {class_id: name for name, class_id in _CLASSES.items()}


@dataclasses.dataclass
class _Provider:
    """A provider of a fleet, whose number is its place in the list of all.

    :param inventories: class name to a tuple of capacity and used
    """

    parent: int | None
    root: int
    traits: frozenset
    inventories: dict
    uuid: str = dataclasses.field(default_factory=base.new_uuid)


def _index(fleet):
    """Return an index of a fleet, in which trees have been written again, and their slots.

    :returns: the index, and an array of slots by number of the provider
    """
    index = CandidateIndex()
    index.class_ids = _CLASSES
    rows = [changes.Provider(number + 1, each.uuid, f"provider {number}", 1,
                             None if each.parent is None else each.parent + 1)
            for number, each in enumerate(fleet)]
    # The children come later.
    changes.put(index, [row for row in rows if row.parent_id is None])
    changes.put(index, rows, [
        (number + 1, _CLASSES[name], capacity, used, 1, 2 ** 31 - 1, 1)
        for number, each in enumerate(fleet)
        for name, (capacity, used) in each.inventories.items()
    ], {number + 1: each.traits for number, each in enumerate(fleet)})
    return index, index.slots_of(range(1, len(fleet) + 1))


def _take(fleet, found, minor):
    """Take the answer of candidates whose rows are numbers of providers."""
    index, slots = _index(fleet)
    return rendering.take(index, dataclasses.replace(found, rows=slots[found.rows]), minor)


def _fleet(draw, trees):
    """Return a random fleet.

    :param draw: random.Random
    """
    fleet = []
    for _ in range(trees):
        root, path = len(fleet), []
        for _ in range(draw.randint(1, 6)):
            # A child of the last provider or of one of its ancestors: depth first.
            path = path[:draw.randint(1, len(path))] if path else path
            fleet.append(_Provider(
                path[-1] if path else None, root,
                frozenset(draw.sample(("CUSTOM_T", "HW_CPU_X86_AVX2", "COMPUTE_NODE"),
                                      draw.choice((0, 0, 1, 3)))),
                {name: (draw.choice((0, 1, 64, 2 ** 63 - 1)), draw.randint(0, 1500))
                 for name in draw.sample(sorted(_CLASSES), draw.choice((0, 1, 1, 3)))}))
            path = [*path, len(fleet) - 1]
    return fleet


def _found(draw, fleet, count):
    """Return random candidates: the unsuffixed group, and some with and without resources."""
    columns = [Column("", {class_id: draw.randint(1, 9)}) for class_id in draw.sample(
        sorted(_NAMES), draw.randint(0, 2))]
    columns += [Column(suffix, {class_id: draw.randint(1, 10 ** 6) for class_id in draw.sample(
        sorted(_NAMES), draw.randint(0, 2))}) for suffix in draw.sample(
            ("_A", "1", "_net-2", "x"), draw.randint(0, 3))]
    if not any(column.amounts for column in columns):
        columns.append(Column("_R", {0: 1}))
    rows = {tuple(draw.randrange(len(fleet)) for _ in columns) for _ in range(count)}
    return Found(columns, np.array(sorted(rows), np.int32).reshape(-1, len(columns)))


def _plainly(fleet, found, minor):
    """Return the answer as nested dicts and lists."""
    requests = []
    for row in found.rows.tolist():
        allocations, mappings = {}, {}
        for column, number in zip(found.columns, row, strict=True):
            mappings.setdefault(column.suffix, set()).add(fleet[number].uuid)
            for class_id, amount in column.amounts.items():
                of_provider = allocations.setdefault(fleet[number].uuid, {})
                name = _NAMES[class_id]
                of_provider[name] = of_provider.get(name, 0) + amount
        request = {"allocations": {each: {"resources": amounts}
                                   for each, amounts in allocations.items()}}
        if minor < 12:
            request["allocations"] = [{"resource_provider": {"uuid": each}, "resources": amounts}
                                      for each, amounts in allocations.items()]
        if minor >= 34:
            request["mappings"] = {suffix: sorted(uuids) for suffix, uuids in mappings.items()}
        requests.append(request)
    requested = {_NAMES[each] for column in found.columns for each in column.amounts}
    used = {number for row in found.rows.tolist()
            for column, number in zip(found.columns, row, strict=True) if column.amounts}
    trees = {fleet[number].root for number in used}
    shown = [each for number, each in enumerate(fleet) if (
        each.root in trees if minor >= 29 else number in used)]
    return {"allocation_requests": requests, "provider_summaries": {
        each.uuid: _summary(fleet, each, minor, requested) for each in shown}}


def _summary(fleet, provider, minor, requested):
    summary = {"resources": {
        name: {"capacity": capacity, "used": used}
        for name, (capacity, used) in provider.inventories.items()
        if minor >= 27 or name in requested}}
    if minor >= 17:
        # Standard traits first.
        summary["traits"] = sorted(provider.traits, key=lambda trait: (
            trait.startswith("CUSTOM_"), trait))
    if minor >= 29:
        summary["parent_provider_uuid"] = (
            None if provider.parent is None else fleet[provider.parent].uuid)
        summary["root_provider_uuid"] = fleet[provider.root].uuid
    return summary


def _read(answer):
    """Return the decoded answer with its mappings in order, and check that no key repeats."""
    def unique(pairs):
        found = dict(pairs)
        assert len(found) == len(pairs), pairs
        return found

    found = json.loads("".join(answer.parts()), object_pairs_hook=unique)
    for request in found["allocation_requests"]:
        for uuids in request.get("mappings", {}).values():
            uuids.sort()
    return found


class ShapeTest(base.TestCase):
    """A host that takes part of its disk from a sharing provider, at each microversion."""

    def setUp(self):
        super().setUp()
        host, numa, share = (str(uuid.UUID(int=number)) for number in (1, 2, 2 ** 100 + 3))
        self.host, self.numa, self.share = host, numa, share
        self.fleet = [
            _Provider(None, 0, frozenset({"CUSTOM_FAST", "COMPUTE_NODE", "HW_NUMA_ROOT"}),
                      {"VCPU": (64, 3), "MEMORY_MB": (4096, 0)}, host),
            _Provider(0, 0, frozenset(), {}, numa),
            _Provider(None, 2, frozenset({"MISC_SHARES_VIA_AGGREGATE"}), {"DISK_GB": (100, 9)},
                      share)]
        self.found = Found([Column("", {0: 4}), Column("", {2: 10}), Column("_X", {0: 1}),
                            Column("_Y", {})], np.array([[0, 2, 0, 1]], np.int32))

    def _answer(self, minor):
        answer = _take(self.fleet, self.found, minor)
        self.assertEqual(1, answer.count)
        return _read(answer)

    def _expect(self, minor, allocations, summaries, **more):
        self.assertEqual(
            {"allocation_requests": [{"allocations": allocations, **more}],
             "provider_summaries": summaries}, self._answer(minor), f"1.{minor}")

    def test_allocations_are_a_list_at_first(self):
        for minor in (10, 11):
            self._expect(minor, [
                {"resource_provider": {"uuid": self.host}, "resources": {"VCPU": 5}},
                {"resource_provider": {"uuid": self.share}, "resources": {"DISK_GB": 10}},
            ], {self.host: {"resources": {"VCPU": {"capacity": 64, "used": 3}}},
                self.share: {"resources": {"DISK_GB": {"capacity": 100, "used": 9}}}})

    def test_allocations_are_an_object_from_1_12(self):
        for minor in (12, 16):
            self._expect(minor, {
                self.host: {"resources": {"VCPU": 5}},
                self.share: {"resources": {"DISK_GB": 10}},
            }, {self.host: {"resources": {"VCPU": {"capacity": 64, "used": 3}}},
                self.share: {"resources": {"DISK_GB": {"capacity": 100, "used": 9}}}})

    def test_summaries_have_traits_from_1_17(self):
        for minor in (17, 26):
            self._expect(minor, {
                self.host: {"resources": {"VCPU": 5}},
                self.share: {"resources": {"DISK_GB": 10}},
            }, {self.host: {"resources": {"VCPU": {"capacity": 64, "used": 3}},
                            "traits": ["COMPUTE_NODE", "HW_NUMA_ROOT", "CUSTOM_FAST"]},
                self.share: {"resources": {"DISK_GB": {"capacity": 100, "used": 9}},
                             "traits": ["MISC_SHARES_VIA_AGGREGATE"]}})

    def test_summaries_have_all_classes_from_1_27(self):
        for minor in (27, 28):
            summaries = self._answer(minor)["provider_summaries"]
            self.assertEqual({"VCPU": {"capacity": 64, "used": 3},
                              "MEMORY_MB": {"capacity": 4096, "used": 0}},
                             summaries[self.host]["resources"])
            self.assertEqual({self.host, self.share}, summaries.keys())

    def test_summaries_show_whole_trees_from_1_29(self):
        for minor in (29, 33):
            answer = self._answer(minor)
            self.assertNotIn("mappings", answer["allocation_requests"][0])
            summaries = answer["provider_summaries"]
            self.assertEqual({"resources": {}, "traits": [], "parent_provider_uuid": self.host,
                              "root_provider_uuid": self.host}, summaries[self.numa])
            self.assertEqual((None, self.share), (
                summaries[self.share]["parent_provider_uuid"],
                summaries[self.share]["root_provider_uuid"]))

    def test_requests_have_mappings_from_1_34(self):
        for minor in (34, 39):
            request = self._answer(minor)["allocation_requests"][0]
            self.assertEqual({"": [self.host, self.share], "_X": [self.host],
                              "_Y": [self.numa]}, request["mappings"])
            self.assertEqual({self.host: {"resources": {"VCPU": 5}},
                              self.share: {"resources": {"DISK_GB": 10}}},
                             request["allocations"])

    def test_no_candidates(self):
        self.found = Found(self.found.columns, np.empty((0, 4), np.int32))
        for minor in (10, 39):
            answer = _take(self.fleet, self.found, minor)
            self.assertEqual(0, answer.count)
            self.assertEqual('{"allocation_requests":[],"provider_summaries":{}}',
                             "".join(answer.parts()))

    def test_what_changes_later_is_not_shown(self):
        index, slots = _index(self.fleet)
        found = dataclasses.replace(self.found, rows=slots[self.found.rows])
        before = "".join(rendering.take(index, found, 39).parts())
        answer = rendering.take(index, found, 39)
        self.assertEqual([], changes.set_used(index, [(1, 1, 2, [_CLASSES["VCPU"], 60])]))
        changes.put(index, [changes.Provider(2, base.new_uuid(), "other", 7)],
                    traits={2: ["CUSTOM_OTHER"]}, removed=[3])
        self.assertEqual(before, "".join(answer.parts()))


class RandomAnswerTest(base.TestCase):

    @hypothesis.settings(deadline=None, max_examples=base.examples(100))
    @hypothesis.given(st.integers(0, 2 ** 32), st.integers(1, 12), st.integers(0, 40),
                      st.integers(10, 39))
    def test_it_is_what_a_plain_program_writes(self, seed, trees, count, minor):
        draw = random.Random(seed)
        fleet = _fleet(draw, trees)
        found = _found(draw, fleet, count)
        answer = _read(_take(fleet, found, minor))
        self.assertEqual(_plainly(fleet, found, minor), answer)


class LargeAnswerTest(base.TestCase):

    def _answer(self, trees, candidates):
        draw = random.Random(trees)
        fleet = [_Provider(None, number, frozenset({f"CUSTOM_{number % 3}"}), {
            "VCPU": (draw.randint(1, 10 ** 6), 0)}, str(uuid.UUID(int=draw.getrandbits(128))))
            for number in range(trees)]
        found = Found([Column("", {0: 1}), Column("_A", {0: 2})], np.array(
            [divmod(number, trees) for number in draw.sample(range(trees ** 2), candidates)],
            np.int32))
        return fleet, found, _take(fleet, found, 36)

    def test_many_candidates(self):
        """More than are divided into kinds at a time."""
        fleet, found, answer = self._answer(500, 5000)
        self.assertEqual(_plainly(fleet, found, 36), _read(answer))

    def test_many_summaries(self):
        """More than are divided into kinds at a time, of trees that must not be divided."""
        fleet = []
        for number in range(6000):
            root = len(fleet)
            fleet.append(_Provider(None, root, frozenset(), {"VCPU": (number, 1)}))
            fleet += [_Provider(root, root, frozenset({"CUSTOM_T"}), {"DISK_GB": (7, number)})
                      for _ in range(1 + number % 3)]
        found = Found([Column("", {0: 1})], np.array(
            [[number] for number, each in enumerate(fleet) if each.parent is None], np.int32))
        self.assertEqual(_plainly(fleet, found, 36), _read(_take(fleet, found, 36)))

    def test_parts_are_neither_large_nor_many(self):
        _, _, answer = self._answer(500, 20000)
        parts = list(answer.parts())
        size = sum(map(len, parts))
        self.assertLess(max(map(len, parts)), 2 ** 20)
        self.assertLess(len(parts), 3 + size / 2 ** 16)

    def test_it_is_compact(self):
        """Spaces stand before numbers only."""
        _, _, answer = self._answer(50, 100)
        text = "".join(answer.parts())
        self.assertEqual([], re.findall(r"[^: ] +|\s+[^ \d]", text))


class TextRowsTest(base.TestCase):

    @hypothesis.settings(deadline=None)
    @hypothesis.given(st.lists(st.integers(0, 2 ** 63 - 1), min_size=1))
    def test_numbers(self, numbers):
        rows = text_rows.of_numbers(np.array(numbers, np.int64))
        width = max(len(str(number)) for number in numbers)
        self.assertEqual([str(number).rjust(width) for number in numbers],
                         [bytes(row).decode() for row in rows])

    @hypothesis.settings(deadline=None)
    @hypothesis.given(st.lists(st.uuids(), min_size=1))
    def test_uuids(self, uuids):
        texts = [str(each) for each in uuids]
        rows = text_rows.of_uuids(*to_halves(texts))
        self.assertEqual(texts, [bytes(row).decode() for row in rows])

    @hypothesis.settings(deadline=None)
    @hypothesis.given(st.lists(st.lists(st.integers(0, 3), min_size=70, max_size=70), min_size=1))
    def test_kinds_of_more_columns_than_fit_into_one_number(self, records):
        columns = np.array(records)
        found = text_rows.kinds(len(records), [(columns[:, each], 4) for each in range(70)])
        self.assertEqual(sorted(range(len(records))), sorted(np.concatenate(found).tolist()))
        self.assertEqual({tuple(record) for record in records},
                         {tuple(records[kind[0]]) for kind in found})
        self.assertEqual(len(found), len({tuple(record) for record in records}))
        for kind in found:
            self.assertEqual({tuple(records[kind[0]])},
                             {tuple(records[number]) for number in kind})
