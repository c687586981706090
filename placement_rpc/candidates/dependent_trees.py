# SPDX-License-Identifier: Apache-2.0
"""Trees in which the columns of a request depend on each other: go through the choices.

Two columns depend on each other if both can take a resource of one provider, if they must have
different providers, if they must have providers of one subtree, or if only one of them has to have
a trait. How many requests fit in such a tree is how many of its candidates can be packed.
"""

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from placement_rpc.candidates import packing
from placement_rpc.candidates.supplies import HeadroomRules, Supply

# Choices of providers that are gone through in one tree, or in trees that share providers.
MOST_CHOICES = 2000
# Providers that are tried for the groups of one tree, or of trees that share providers.
_MOST_STEPS = 20_000


class PackingBudget:
    """Processor time that a count may take for trees whose columns depend on each other."""

    def __init__(self, seconds: float):
        self._left = seconds
        self._began = time.thread_time()

    @property
    def is_spent(self) -> bool:
        """Whether the time is over."""
        return time.thread_time() - self._began >= self._left


class Packer:
    """Packs candidates of trees; equal trees are packed once."""

    def __init__(self) -> None:
        self._known: dict[tuple, packing.Packed] = {}

    def fit_each(self, columns: Sequence[Supply], rules: HeadroomRules, trees: np.ndarray,
                 budget: PackingBudget) -> tuple[np.ndarray, np.ndarray]:
        """Return how many requests fit in each of some trees.

        :param trees: array of tree numbers, ascending
        :param budget: when it is spent, 0 requests fit for certain in the rest of the trees
        :returns: two arrays of int64: so many fit for certain, and no more than so many
        """
        columns = [column.only(np.isin(column.anchors, trees)) for column in columns]
        size = int(trees[-1]) + 1
        most = np.min([column.per_tree(size)[trees] for column in columns], axis=0)
        least = np.zeros(len(trees), np.int64)
        known: dict[bytes, packing.Packed] = {}
        for at, (tree, key) in enumerate(zip(
                trees.tolist(), _signatures(columns, rules, trees), strict=True)):
            if key not in known:
                if budget.is_spent:
                    continue
                known[key] = self.fit(of_tree(columns, tree), rules, int(most[at]))
            least[at], most[at] = known[key]
        return least, most

    def fit(self, columns: Sequence[Supply], rules: HeadroomRules, most: int) -> packing.Packed:
        """Return how many requests fit in some trees, going through all their candidates.

        :param columns: with the pairs of these trees only
        :param most: an upper bound that is known already
        """
        search = _Search(columns, rules)
        found = list(itertools.islice(search.candidates(), MOST_CHOICES + 1))
        if not found:
            return packing.Packed(0, most if search.is_cut else 0)
        if not all(found):
            # Groups without resources take nothing.
            return packing.Packed(most, most)
        uses, room = _table(columns, found)
        uses = np.unique(uses, axis=1)
        key = (uses.shape, uses.tobytes(), room.tobytes(), most)
        if key not in self._known:
            self._known[key] = packing.pack(uses, room, most)
        packed = self._known[key]
        is_all = len(found) <= MOST_CHOICES and not search.is_cut
        return packing.Packed(packed.least, packed.most if is_all else most)


def of_tree(columns: Sequence[Supply], tree: int) -> list[Supply]:
    """Return the columns with the pairs of one tree."""
    return [column.only(np.arange(*column.anchors.searchsorted([tree, tree + 1])))
            for column in columns]


def _signatures(columns: Sequence[Supply], rules: HeadroomRules, trees: np.ndarray) -> list[bytes]:
    """Return for each tree what tells it from trees in which the same number of requests fits.

    That is what each provider can give to each column, in whatever order the providers are,
    unless it matters which of them is below which.
    """
    keys = [column.keys for column in columns]
    pairs = np.unique(np.concatenate(keys))
    anchors, slots = pairs >> 32, pairs & (2 ** 32 - 1)
    values = []
    for column, key in zip(columns, keys, strict=True):
        arrays = [np.ones(len(column), np.int64), *column.free.values(),
                  *column.max_units.values(), *(
                      condition.met(column) & condition.concerns(column)
                      for condition in rules.required)]
        table = np.zeros((len(pairs), len(arrays)), np.int64)
        table[pairs.searchsorted(key)] = np.stack(arrays, axis=1)
        values.append(table)
    if rules.same_subtree:
        ends = np.zeros(len(pairs), np.int64)
        for column, key in zip(columns, keys, strict=True):
            ends[pairs.searchsorted(key)] = column.pairs["ends"]
        first = slots[np.searchsorted(anchors, anchors)]
        values.insert(0, np.stack((slots - first, ends - slots), axis=1))
    table = np.hstack(values)
    table = table[np.lexsort((*table.T[::-1], anchors))]
    bounds = np.searchsorted(anchors, np.append(trees, trees[-1] + 1)).tolist()
    return [table[begin:end].tobytes() for begin, end in itertools.pairwise(bounds)]


def able(columns: Sequence[Supply], rules: HeadroomRules, trees: np.ndarray,
         budget: PackingBudget) -> tuple[np.ndarray, bool]:
    """Return in which of some trees a request has a candidate.

    :param trees: array of tree numbers, ascending
    :param budget: when it is spent, the rest of the trees counts as able
    :returns: array of bool, and whether it is certain
    """
    columns = [column.only(np.isin(column.anchors, trees)) for column in columns]
    found: list[bool | None] = []
    known: dict[bytes, bool | None] = {}
    for tree, key in zip(trees.tolist(), _signatures(columns, rules, trees), strict=True):
        if key not in known and not budget.is_spent:
            known[key] = has_candidate(of_tree(columns, tree), rules)
        found.append(known.get(key))
    return np.array([each is not False for each in found]), None not in found


def has_candidate(columns: Sequence[Supply], rules: HeadroomRules) -> bool | None:
    """Return whether a request has a candidate; None if not all choices were tried.

    :param columns: with the pairs of one tree only
    """
    search = _Search(columns, rules)
    if next(search.candidates(), None) is not None:
        return True
    return None if search.is_cut else False


# What a candidate takes: amounts by slot and class.
_Uses = dict[tuple[int, str], int]


class _Search:
    """Goes through the choices of providers, and drops those that break a rule early.

    ``is_cut`` says whether it gave up before it had tried all.
    """

    def __init__(self, columns: Sequence[Supply], rules: HeadroomRules):
        self._columns, self._rules = columns, rules
        # One place for each group; the groups of one column are next to each other.
        self._places = [column for column in columns for _ in column.suffixes]
        self._required = [condition for condition in rules.required
                          if any(map(condition.concerns, columns))]
        self._steps = _MOST_STEPS
        self.is_cut = False

    def candidates(self) -> Iterator[_Uses]:
        """Yield what each candidate takes."""
        for anchor in np.unique(np.concatenate([
                column.anchors for column in self._columns])).tolist():
            ranges = {id(column): column.anchors.searchsorted([anchor, anchor + 1]).tolist()
                      for column in self._columns}
            yield from self._from(ranges, [], {})

    def _from(self, ranges: Mapping[int, list[int]], chosen: list[int],
              uses: _Uses) -> Iterator[_Uses]:
        """Yield what the candidates take that begin with some choices.

        :param ranges: the first pair of the tree, and the one after the last, for each column
        :param chosen: the pairs of the first places
        """
        if len(chosen) == len(self._places):
            if self._is_allowed(chosen):
                yield uses
            return
        column = self._places[len(chosen)]
        first, last = ranges[id(column)]
        if chosen and self._places[len(chosen) - 1] is column:
            # Equal groups are chosen for in one order only.
            first = chosen[-1]
        for pair in range(first, last):
            if self._steps <= 0:
                self.is_cut = True
                return
            self._steps -= 1
            if column.units[pair] > 0 and not self._is_taken(column, pair, chosen):
                more = self._with(uses, column, pair)
                if more is not None:
                    yield from self._from(ranges, [*chosen, pair], more)

    def _is_taken(self, column, pair, chosen):
        """Return whether another group has a provider that no two groups may have."""
        return self._rules.is_isolated and not column.is_unsuffixed and any(
            not other.is_unsuffixed and other.slots[at] == column.slots[pair]
            for other, at in zip(self._places, chosen, strict=False))

    def _with(self, uses, column, pair):
        """Return what is taken with one more group; None if a provider cannot give it."""
        more = dict(uses)
        for name, amount in column.amounts.items():
            key = int(column.slots[pair]), name
            more[key] = more.get(key, 0) + amount
            if more[key] > min(column.max_units[name][pair], column.free[name][pair]):
                return None
        return more

    def _is_allowed(self, chosen):
        """Return whether a whole choice meets the rules about all providers."""
        places = list(zip(self._places, chosen, strict=True))
        for condition in self._required:
            if not any(condition.concerns(column)
                       and condition.meets[column.pairs["traits"][pair]]
                       for column, pair in places):
                return False
        for suffixes in self._rules.same_subtree:
            some = [(int(column.slots[pair]), int(column.pairs["ends"][pair]))
                    for column, pair in places if column.suffixes[0] in suffixes]
            if some and not max(some)[0] < min(some)[1]:
                return False
        return True


def _table(columns, found):
    """Return what each candidate takes of each resource, and what there is of each."""
    free = {}
    for column in columns:
        for name in column.amounts:
            free.update(((slot, name), amount) for slot, amount in zip(
                column.slots.tolist(), column.free[name].tolist(), strict=True))
    # In the order of what there is, so that trees with the same in another order are equal.
    resources = sorted({key for uses in found for key in uses},
                       key=lambda key: (key[1], free[key], key[0]))
    rows = {key: row for row, key in enumerate(resources)}
    table = np.zeros((len(resources), len(found)), np.int64)
    for kind, uses in enumerate(found):
        for key, amount in uses.items():
            table[rows[key], kind] = amount
    return table, np.array([free[key] for key in resources], np.int64)
