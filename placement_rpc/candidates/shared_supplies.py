# SPDX-License-Identifier: Apache-2.0
"""Trees that share providers: what they can serve together.

A tree may serve some requests from its own providers, and takes from shared providers what these
lack. By each column it serves a number of requests alone. Beyond the lowest of these numbers its
requests need the shared providers of one column, beyond the next one those of two, and so on. So
the requests of all trees fall into few *kinds*: those that need providers of the same columns,
from the same shared providers. How many of them fit is a packing of these kinds.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placement_rpc.candidates import packing
from placement_rpc.candidates.dependent_trees import MOST_CHOICES
from placement_rpc.candidates.packing import Packed
from placement_rpc.candidates.supplies import UNLIMITED, Supply, sums, total

# Seed of the random numbers that identify sets of shared providers.
_SEED = 1539


class _Kind(NamedTuple):
    """Requests that need shared providers of the same columns.

    :param number: how many there could be
    :param needs: for each column that they need, the column and its shared providers
    """

    number: int
    needs: tuple[tuple[int, tuple[int, ...]], ...]


def fit(columns: Sequence[Supply], trees: int) -> Packed:
    """Return how many requests fit in trees whose columns do not depend on each other.

    :param columns: with pairs of these trees only; a column of several groups has no shared
        providers
    :param trees: the number of trees
    """
    shared = [column.only(column.pairs["shared"]) for column in columns]
    own = np.stack([
        column.only(~column.pairs["shared"]).per_tree(trees) for column in columns])
    is_open = np.stack([np.bincount(column.anchors, minlength=trees) > 0 for column in shared])
    # What columns without shared providers allow.
    box = np.min(np.where(is_open, UNLIMITED, own), axis=0)
    own = np.minimum(own, box)
    units = {(at, slot): count for at, column in enumerate(shared)
             for slot, count in zip(column.slots.tolist(), column.units.tolist(), strict=True)}
    least = most = total(own.min(axis=0))
    for component in _components(_kinds(shared, own, box)):
        packed = _pack(component, units)
        least, most = least + packed.least, most + packed.most
    return Packed(least, most)


def _kinds(shared: Sequence[Supply], own: np.ndarray, box: np.ndarray) -> list[_Kind]:
    """Return the kinds of requests that need shared providers.

    :param shared: the pairs of shared providers of each column
    :param own: how many requests each tree serves by its own providers, columns x trees
    :param box: how many requests each tree serves at most
    """
    sets = [_sets(column, len(box)) for column in shared]
    order = np.argsort(own, axis=0, kind="stable")
    limits = np.vstack((np.take_along_axis(own, order, axis=0), box))
    found: dict[tuple, int] = {}
    for level in range(1, len(shared) + 1):
        # The requests beyond what the first columns of the order serve alone need those.
        counts = limits[level] - limits[level - 1]
        trees = np.flatnonzero(counts > 0)
        needed = np.full((len(trees), len(shared)), -1, np.int64)
        for columns in order[:level, trees]:
            for column, (numbers, _) in enumerate(sets):
                rows = np.flatnonzero(columns == column)
                needed[rows, column] = numbers[trees[rows]]
        keys, inverse = np.unique(needed, axis=0, return_inverse=True)
        for key, count in zip(map(tuple, keys.tolist()), sums(
                inverse.reshape(-1), counts[trees], len(keys)).tolist(), strict=True):
            found[key] = found.get(key, 0) + count
    return [_Kind(count, tuple((column, sets[column][1][number])
                               for column, number in enumerate(key) if number >= 0))
            for key, count in found.items()]


def _sets(column, trees):
    """Number the sets of shared providers of trees.

    :returns: array of the number of each tree's set, and a list of the sets, tuples of slots
    """
    if not len(column):
        return np.zeros(trees, np.int64), [()]
    slots, inverse = np.unique(column.slots, return_inverse=True)
    marks = np.random.default_rng(_SEED).integers(1, 2 ** 63, len(slots), np.uint64)[inverse]
    sums_of_marks = np.zeros(trees, np.uint64)
    np.add.at(sums_of_marks, column.anchors, marks)
    _, first, numbers = np.unique(sums_of_marks, return_index=True, return_inverse=True)
    bounds = column.anchors.searchsorted(np.stack((first, first + 1)))
    return numbers.reshape(-1), [
        tuple(column.slots[begin:end].tolist()) for begin, end in bounds.T.tolist()]


def _components(kinds):
    """Return lists of the kinds that have shared providers in common, directly or not."""
    owner: dict[int, int] = {}

    def find(slot):
        while owner[slot] != slot:
            owner[slot] = slot = owner[owner[slot]]
        return slot

    for kind in kinds:
        slots = [slot for _, some in kind.needs for slot in some]
        for slot in slots:
            owner.setdefault(slot, slot)
            owner[find(slot)] = find(slots[0])
    found: dict[int, list[_Kind]] = {}
    for kind in kinds:
        found.setdefault(find(kind.needs[0][1][0]), []).append(kind)
    return list(found.values())


def _pack(kinds, units):
    """Return how many requests of some kinds fit.

    :param units: dict of column and slot to how many requests the provider can serve
    """
    bounds = [_bound(kind, units) for kind in kinds]
    most = sum(bounds)
    for column in {column for kind in kinds for column, _ in kind.needs}:
        slots = {slot for kind in kinds for each, some in kind.needs if each == column
                 for slot in some}
        others = sum(bound for bound, kind in zip(bounds, kinds, strict=True)
                     if all(each != column for each, _ in kind.needs))
        most = min(most, others + sum(units[column, slot] for slot in slots))
    choices = list(itertools.islice((
        (number, tuple((column, slot) for (column, _), slot in zip(
            kind.needs, chosen, strict=True)))
        for number, kind in enumerate(kinds)
        for chosen in itertools.product(*(some for _, some in kind.needs))), MOST_CHOICES + 1))
    resources = sorted({resource for _, some in choices for resource in some})
    rows = {resource: len(kinds) + row for row, resource in enumerate(resources)}
    uses = np.zeros((len(kinds) + len(resources), len(choices)), np.int64)
    for at, (number, some) in enumerate(choices):
        uses[number, at] = 1
        uses[[rows[resource] for resource in some], at] = 1
    room = np.array([*bounds, *(units[resource] for resource in resources)], np.int64)
    packed = packing.pack(uses, room, most)
    return packed if len(choices) <= MOST_CHOICES else Packed(packed.least, most)


def _bound(kind, units):
    """Return how many requests of a kind fit at most, taken by itself."""
    return min(kind.number, *(sum(units[column, slot] for slot in some)
                             for column, some in kind.needs))
