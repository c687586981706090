# SPDX-License-Identifier: Apache-2.0
"""Capacity, reserved and used amounts of the fleet, by resource class and by aggregate."""

from typing import NamedTuple

import numpy as np

from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.interned_sets import DEAD, EMPTY


class Sums(NamedTuple):
    """Sums over inventories of one class; floats, which are exact up to 2**53."""

    capacity: float
    reserved: float
    used: float


def of_class(index: CandidateIndex, class_id: int) -> tuple[Sums, dict[str, Sums]]:
    """Return the sums of one class: of the whole fleet, and by aggregate.

    A provider is in an aggregate by itself, or by the root of its tree.
    """
    inventories = index.inventories[class_id]
    is_living = inventories.is_living()
    columns = [np.where(is_living, values, 0).astype(float) for values in (
        inventories.capacity, inventories.reserved, inventories.used)]
    own = index.aggregate_set[inventories.slots]
    roots = np.where(own == DEAD, DEAD, index.aggregate_set[
        index.root[index.tree[inventories.slots]]])
    found: dict[str, np.ndarray] = {}

    def add(numbers, rows, without=frozenset()):
        """Add the rows to the aggregates of sets, by the number of each row's set."""
        sums = np.stack([np.bincount(numbers, values[rows], len(index.aggregate_sets))
                         for values in columns], axis=1)
        for number in np.unique(numbers).tolist():
            for name in index.aggregate_sets[number] - without:
                found[name] = found.get(name, 0) + sums[number]

    add(roots, slice(None))
    others = np.flatnonzero((own != roots) & (own != EMPTY))
    for number in np.unique(roots[others]).tolist():
        # Few providers are in other aggregates than the roots of their trees.
        rows = others[roots[others] == number]
        add(own[rows], rows, index.aggregate_sets[number])
    return Sums(*(float(values.sum()) for values in columns)), {
        name: Sums(*sums.tolist()) for name, sums in found.items()}
