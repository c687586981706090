# SPDX-License-Identifier: Apache-2.0
"""How many more requests of a kind fit: in all, and by aggregate, by trait or by resource class.

The answer is exact wherever trees are counted one by one, and where the packing of trees that
share providers, or whose groups compete for providers, is solved. Otherwise it has two bounds.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from placement_rpc.candidates import counting
from placement_rpc.candidates.counting import Counted
from placement_rpc.candidates.dependent_trees import Packer, PackingBudget
from placement_rpc.candidates.interned_sets import EMPTY
from placement_rpc.candidates.packing import Packed
from placement_rpc.candidates.supplies import (
    Condition,
    HeadroomRules,
    Supply,
    has_any,
    sums,
    total,
)
from placement_rpc.candidates.taking import AGGREGATE, CLASS, TRAIT, Taken
from placement_rpc.objects.headroom import Headroom

# The greatest number that an answer can have.
_LARGEST = 2 ** 63 - 1


@dataclasses.dataclass(frozen=True, slots=True)
class _Limit:
    """A resource class of a column, and in which trees it binds first.

    :param alone: array of int64 by tree: how many requests would fit by this class alone
    :param binds: array of bool by tree: whether no other class allows fewer
    """

    column: Supply
    resource_class: str
    alone: np.ndarray
    binds: np.ndarray


def headroom(taken: Taken, by: str | None, seconds: float) -> Headroom:
    """Return how many more requests fit.

    :param by: :data:`.taking.AGGREGATE`, :data:`.taking.TRAIT`, :data:`.taking.CLASS` or None
    :param seconds: of processor time, for trees whose groups compete for providers
    """
    if not taken.columns:
        return Headroom(count=0, at_most=0, by=by, limits=[], parts=[])
    packer, budget = Packer(), PackingBudget(seconds)
    counted = counting.count(taken.columns, taken.rules, taken.trees, packer, budget)
    limits = _limits(taken, counted)
    parts: list[dict] = []
    if by == CLASS:
        parts = [_of_class(limit, counted) for limit in limits]
    elif by is not None:
        parts = [
            {"name": name, **_numbers(packed), "limits": binding}
            for name, packed, binding in _parts(taken, counted, limits, by, lambda some, rules: (
                counting.count_part(some, rules, packer, budget)))]
        parts.sort(key=lambda part: (-part["count"], -part["at_most"], part["name"]))
    return Headroom(**_numbers(counted.all), by=by, parts=parts, limits=[
        {"resource_class": limit.resource_class, "groups": list(limit.column.suffixes),
         "trees": int(limit.binds.sum())} for limit in limits])


def _numbers(packed: Packed) -> dict[str, int]:
    return {"count": min(packed.least, _LARGEST), "at_most": min(packed.most, _LARGEST)}


# -- what binds ----------------------------------------------------------------------------


def _limits(taken: Taken, counted: Counted) -> list[_Limit]:
    """Return the classes of all columns, with the trees in which each binds first.

    Only trees count that have the resources of all columns, whether they have room or not. Where
    trees share providers that cannot serve all of them, the class of these binds.
    """
    trees = taken.trees
    alone = [(column, name, dataclasses.replace(
        column, pairs={**column.pairs, "units": column.units_of[name]}).per_tree(trees))
        for column in taken.columns for name in column.amounts]
    lowest = functools.reduce(np.minimum, [each for _, _, each in alone])
    is_whole = functools.reduce(np.logical_and, [
        has_any(column.anchors, trees) for column in taken.columns])
    is_short = counted.is_shared & (
        counted.together.most < total(lowest[counted.is_shared & is_whole]))
    found = []
    for column, name, each in alone:
        binds = each == lowest
        if is_short.any():
            shared = column.anchors[column.pairs["shared"]]
            binds = np.where(is_short, has_any(shared, trees), binds)
        found.append(_Limit(column, name, each, binds & is_whole))
    return found


def _of_class(limit: _Limit, counted: Counted) -> dict:
    """Return how many requests fit by one class alone, and how much of it is left by all."""
    column, name = limit.column, limit.resource_class
    _, first = np.unique(column.slots, return_index=True)
    free = total(column.free[name][first])
    if column.pairs["shared"].any():
        alone = total(column.units_of[name][first]) // len(column.suffixes)
    else:
        alone = total(limit.alone)
    taken = column.amounts[name] * len(column.suffixes) * counted.all.least
    return {"name": name, "groups": list(column.suffixes), "count": min(alone, _LARGEST),
            "at_most": min(alone, _LARGEST), "trees": int(limit.binds.sum()),
            "left": min(max(0, free - taken), _LARGEST)}


# -- parts ---------------------------------------------------------------------------------

_Count = Callable[[Sequence[Supply], HeadroomRules], Packed]
_Part = tuple[str, Packed, dict[str, int]]


def _parts(taken: Taken, counted: Counted, limits: Sequence[_Limit], by: str,
           count: _Count) -> Iterator[_Part]:
    if by == AGGREGATE:
        return _by_aggregate(taken, counted, limits, count)
    assert by == TRAIT, by
    return _by_trait(taken, counted, limits, count)


def _by_aggregate(taken: Taken, counted: Counted, limits: Sequence[_Limit],
                  count: _Count) -> Iterator[_Part]:
    """Yield how many requests fit whose providers are all in an aggregate.

    A provider is in an aggregate by itself, or by the root of the tree that the request is in, if
    that is its own tree.
    """
    root_sets = taken.root_sets
    assert root_sets is not None
    by_root = _by_sets(root_sets, counted, limits, taken.names)
    partly = _partly_members(taken, counted)
    for name in sorted({*by_root, *partly}):
        least, most, binding = by_root.get(name, (0, 0, {}))
        if name in partly:
            of_roots = np.zeros(max(taken.names, default=0) + 1, bool)
            of_roots[[number for number, names in taken.names.items() if name in names]] = True
            # Trees that are counted by their roots already are left out.
            is_counted = of_roots[root_sets] & ~counted.is_shared
            more = count([column.only(~is_counted[column.anchors] & (
                of_roots[column.pairs["aggregates"]] | (
                    column.pairs["own"] & of_roots[root_sets[column.anchors]])))
                for column in counted.columns], taken.rules)
            least, most = least + more.least, most + more.most
        yield name, Packed(least, most), binding


def _partly_members(taken: Taken, counted: Counted) -> set[str]:
    """Return the aggregates that cannot be counted by the roots of trees alone."""
    assert taken.root_sets is not None
    found: set[str] = set()
    for column in counted.columns:
        own, roots = column.pairs["aggregates"], taken.root_sets[column.anchors]
        is_shared = counted.is_shared[column.anchors]
        for number in _distinct(own[is_shared], roots[is_shared]):
            found |= taken.names[number]
        others = (own != roots) & (own != EMPTY) & ~is_shared
        size = max(taken.names) + 1
        for number in _distinct(own[others].astype(np.int64) * size + roots[others]):
            found |= taken.names[number // size] - taken.names[number % size]
    return found


def _distinct(*arrays: np.ndarray) -> list[int]:
    return np.unique(np.concatenate(arrays)).tolist()


def _by_trait(taken: Taken, counted: Counted, limits: Sequence[_Limit],
              count: _Count) -> Iterator[_Part]:
    """Yield how many requests fit of which at least one provider has a trait."""
    combined, names = _alike(taken, counted)
    by_sets = _by_sets(combined, counted, limits, names)
    rest = [column.only(combined[column.anchors] < 0) for column in counted.columns]
    # Traits that the same sets have are counted once.
    known: dict[bytes, Packed] = {}
    size = max(taken.names, default=0) + 1
    in_rest = {number for column in rest for number in np.unique(column.pairs["traits"]).tolist()}
    others = {name for number in in_rest for name in taken.names[number]}
    for name in sorted({*by_sets, *others}):
        least, most, binding = by_sets.get(name, (0, 0, {}))
        if name in others:
            meets = np.zeros(size, bool)
            meets[[number for number in in_rest if name in taken.names[number]]] = True
            key = meets.tobytes()
            if key not in known:
                known[key] = count(rest, dataclasses.replace(taken.rules, required=[
                    *taken.rules.required, Condition(meets, is_of_all=True)]))
            least, most = least + known[key].least, most + known[key].most
        yield name, Packed(least, most), binding


def _alike(taken: Taken, counted: Counted) -> tuple[np.ndarray, dict[int, frozenset[str]]]:
    """Return which traits the providers of any request in a tree have together.

    :returns: array of int64 by tree: the number of a set of traits; -1 if it depends on the
        choice of providers, or if the tree shares providers; and the sets by their numbers
    """
    is_alike = ~counted.is_shared
    keys, sets = np.zeros(taken.trees, np.int64), [frozenset[int]()]
    for column in counted.columns:
        traits = column.pairs["traits"]
        lowest = np.full(taken.trees, -1, np.int64)
        lowest[column.anchors] = traits
        # Each tree has the traits of one of its providers now: those of all others must be equal.
        is_alike[column.anchors[traits != lowest[column.anchors]]] = False
        # Few combinations of sets occur, so they get numbers from 0 on again.
        size = int(lowest.max(initial=0)) + 2
        numbers, keys = np.unique(keys * size + lowest + 1, return_inverse=True)
        sets = [sets[number // size] | {number % size - 1} for number in numbers.tolist()]
    return np.where(is_alike, keys.reshape(-1), -1), {
        number: frozenset().union(*(taken.names.get(each, frozenset()) for each in some))
        for number, some in enumerate(sets)}


def _by_sets(numbers: np.ndarray, counted: Counted, limits: Sequence[_Limit],
             names: Mapping[int, frozenset[str]]) -> dict[str, tuple[int, int, dict[str, int]]]:
    """Return how many requests fit in trees by the names that they have.

    Trees that share providers are left out.

    :param numbers: array of int by tree: the number of a set of names, -1 for a tree that is
        left out
    :returns: dict of name to the two bounds, and to how many trees each class binds in
    """
    kept = numbers >= 0
    numbers = np.where(kept, numbers, 0)
    size = int(numbers.max(initial=0)) + 1
    least, most = (np.where(kept, each, 0) for each in (counted.least, counted.most))
    bounds = [sums(numbers, each, size).tolist() for each in (least, most)]
    binding = [(limit.resource_class, np.bincount(numbers[kept & limit.binds],
                                                  minlength=size).tolist()) for limit in limits]
    found: dict[str, tuple[int, int, dict[str, int]]] = {}
    for number in np.unique(numbers[kept]).tolist():
        for name in names.get(number, ()):
            low, high, trees = found.get(name, (0, 0, {}))
            for resource_class, some in binding:
                if some[number]:
                    trees[resource_class] = trees.get(resource_class, 0) + some[number]
            found[name] = (low + bounds[0][number], high + bounds[1][number], trees)
    return found
