# SPDX-License-Identifier: Apache-2.0
"""Trees in which the columns of a request depend on each other: go through the choices.

Two columns depend on each other if both can take a resource of one provider, if they must have
different providers, if they must have providers of one subtree, or if only one of them has to have
a trait. How many requests fit in such a tree is how many of its candidates can be packed.
"""

import itertools
import time
from collections.abc import Iterator, Sequence

import numpy as np

from placement_rpc.candidates import packing
from placement_rpc.candidates.supplies import Rules, Supply

# Choices of providers that are gone through in one tree, or in trees that share providers.
MOST_CHOICES = 2000


class Budget:
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

    def fit(self, columns: Sequence[Supply], rules: Rules, most: int) -> packing.Packed:
        """Return how many requests fit in some trees, going through all their candidates.

        :param columns: with the pairs of these trees only
        :param most: an upper bound that is known already
        """
        found = list(itertools.islice(_candidates(columns, rules), MOST_CHOICES + 1))
        is_all = len(found) <= MOST_CHOICES
        if not found:
            return packing.Packed(0, 0)
        uses, room = _table(columns, found)
        uses = np.unique(uses, axis=1)
        key = (uses.shape, uses.tobytes(), room.tobytes(), most)
        if key not in self._known:
            self._known[key] = packing.pack(uses, room, most)
        least, packed_most = self._known[key]
        return packing.Packed(least, packed_most if is_all else most)


def has_candidate(columns: Sequence[Supply], rules: Rules) -> bool:
    """Return whether a request has a candidate.

    :param columns: with the pairs of one tree only
    """
    return next(_candidates(columns, rules), None) is not None


# What a candidate takes: amounts by slot and class.
_Uses = dict[tuple[int, str], int]


def _candidates(columns: Sequence[Supply], rules: Rules) -> Iterator[_Uses]:
    """Yield what each candidate takes, as dicts."""
    for anchor in np.unique(np.concatenate([column.anchors for column in columns])).tolist():
        choices = []
        for column in columns:
            first, last = column.anchors.searchsorted([anchor, anchor + 1]).tolist()
            pairs = [at for at in range(first, last) if column.units[at] > 0]
            choices.append(list(_of_column(column, pairs, rules.is_isolated)))
        for chosen in itertools.product(*choices):
            if _is_allowed(columns, chosen, rules):
                uses = _uses(columns, chosen)
                if uses is not None:
                    yield uses


def _of_column(column: Supply, pairs: list[int], is_isolated: bool) -> Iterator[tuple[int, ...]]:
    """Yield the choices of one column, a pair for each of its groups, in any one order."""
    groups = len(column.suffixes)
    if is_isolated:
        return itertools.combinations(pairs, groups)
    return itertools.combinations_with_replacement(pairs, groups)


def _is_allowed(columns, chosen, rules):
    """Return whether the rules between columns allow a choice of pairs."""
    slots = [column.slots[list(pairs)].tolist()
             for column, pairs in zip(columns, chosen, strict=True)]
    if rules.is_isolated:
        isolated = [slot for column, some in zip(columns, slots, strict=True)
                    if not column.is_unsuffixed for slot in some]
        if len(set(isolated)) < len(isolated):
            return False
    for condition in rules.required:
        if any(map(condition.concerns, columns)) and not any(condition.concerns(column) and condition.met(column)[list(pairs)].any()
                   for column, pairs in zip(columns, chosen, strict=True)):
            return False
    ends = {slot: end for column, pairs in zip(columns, chosen, strict=True)
            for slot, end in zip(column.slots[list(pairs)].tolist(),
                                 column.pairs["ends"][list(pairs)].tolist(), strict=True)
            } if rules.same_subtree else {}
    for suffixes in rules.same_subtree:
        some = {slot for column, each in zip(columns, slots, strict=True)
                if column.suffixes[0] in suffixes for slot in each}
        if some and not max(some) < ends[min(some)]:
            return False
    return True


def _uses(columns, chosen):
    """Return what a choice takes; None if it takes more at a time than a provider gives."""
    uses: _Uses = {}
    for column, pairs in zip(columns, chosen, strict=True):
        for pair in pairs:
            for name, amount in column.amounts.items():
                key = int(column.slots[pair]), name
                uses[key] = uses.get(key, 0) + amount
                if uses[key] > min(column.max_units[name][pair], column.free[name][pair]):
                    return None
    return uses


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
