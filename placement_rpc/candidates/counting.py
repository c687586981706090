# SPDX-License-Identifier: Apache-2.0
"""How many requests fit into supplies, exactly where that can be known, and else within bounds."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from placement_rpc.candidates import dependent_trees, shared_supplies
from placement_rpc.candidates.packing import Packed
from placement_rpc.candidates.supplies import HeadroomRules, Supply, sums, total


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    """How many requests fit.

    :param columns: what is left of the supplies: pairs with room that meet the rules
    :param least: array of int64 by tree: so many fit for certain; 0 in trees that share providers
    :param most: the same: no more than these fit
    :param is_shared: array of bool by tree: whether it shares providers with other trees
    :param together: how many fit in all trees that share providers
    """

    columns: Sequence[Supply]
    least: np.ndarray
    most: np.ndarray
    is_shared: np.ndarray
    together: Packed

    @property
    def all(self) -> Packed:
        """How many requests fit in all trees."""
        return Packed(total(self.least) + self.together.least,
                      total(self.most) + self.together.most)


def count(columns: Sequence[Supply], rules: HeadroomRules, trees: int,
          packer: dependent_trees.Packer, budget: dependent_trees.PackingBudget) -> Counted:
    """Return how many requests fit.

    :param trees: the number of trees; all anchors are less
    :param budget: of the time for trees whose columns depend on each other; when it is spent, the
        rest of them is counted within bounds
    """
    is_dependent = np.zeros(trees, bool)
    if may_depend(columns, rules):
        columns = [_with_room(column) for column in columns]
        columns, is_dependent = _meeting(columns, rules, trees)
        is_dependent |= _competing(columns, rules, trees)
    most = functools.reduce(np.minimum, [
        *(column.per_tree(trees) for column in columns), *_by_class(columns, trees)])
    is_shared = np.zeros(trees, bool)
    for column in columns:
        is_shared[column.anchors[column.pairs["shared"]]] = True
    together = Packed(0, 0)
    if is_shared.any():
        together = _together(columns, rules, is_shared, is_dependent, trees, packer, budget)
        most = np.where(is_shared, 0, most)
    least = most.copy()
    dependent = np.flatnonzero(is_dependent & ~is_shared & (most > 0))
    for some in _related(columns, rules) if len(dependent) else ():
        found = packer.fit_each([columns[at] for at in some], rules, dependent, budget)
        least[dependent] = np.minimum(least[dependent], found[0])
        most[dependent] = np.minimum(most[dependent], found[1])
    return Counted(columns, least, most, is_shared, together)


def serving(columns: Sequence[Supply], rules: HeadroomRules, trees: int,
            budget: dependent_trees.PackingBudget) -> tuple[np.ndarray, bool]:
    """Return which trees can serve a request at all.

    :returns: array of bool by tree, and whether it is certain; if it is not, some of these trees
        may be unable to
    """
    columns = [_with_room(column) for column in columns]
    columns, is_dependent = _meeting(columns, rules, trees)
    is_dependent |= _competing(columns, rules, trees)
    found = functools.reduce(np.logical_and, [column.per_tree(trees) > 0 for column in columns])
    dependent, is_certain = np.flatnonzero(found & is_dependent), True
    for some in _related(columns, rules) if len(dependent) else ():
        able, is_sure = dependent_trees.able(
            [columns[at] for at in some], rules, dependent, budget)
        found[dependent] &= able
        is_certain &= is_sure
    return found, is_certain


def may_depend(columns: Sequence[Supply], rules: HeadroomRules) -> bool:
    """Return whether the columns may depend on each other in some tree."""
    return bool(rules.required or rules.is_isolated or rules.same_subtree) or any(
        len(column.suffixes) > 1 for column in columns) or any(
        not one.amounts.keys().isdisjoint(other.amounts)
        for one, other in itertools.combinations(columns, 2))


def _with_room(column: Supply) -> Supply:
    has_room = column.units > 0
    return column if has_room.all() else column.only(has_room)


def _of_trees(columns: Sequence[Supply], which: np.ndarray) -> list[Supply]:
    """Return the columns with the pairs of some trees, given as an array of bool by tree."""
    return [column.only(which[column.anchors]) for column in columns]


# -- rules between columns -----------------------------------------------------------------


def _meeting(columns: Sequence[Supply], rules: HeadroomRules,
             trees: int) -> tuple[list[Supply], np.ndarray]:
    """Drop pairs that cannot meet the conditions that the chosen providers meet together.

    If the providers of a single column can meet a condition, all others of this column are
    dropped. If several can, and none of them with every provider, the columns depend on each
    other.

    :returns: the columns, and an array of bool by tree, whether the columns depend on each other
    """
    columns = list(columns)
    is_changed = True
    while is_changed:
        is_changed, is_dependent = False, np.zeros(trees, bool)
        for condition in rules.required:
            concerned = [at for at, column in enumerate(columns) if condition.concerns(column)]
            met = {at: condition.met(columns[at]) for at in concerned}
            able = {at: np.bincount(columns[at].anchors[met[at]], minlength=trees) > 0
                    for at in concerned}
            unable = {at: np.bincount(columns[at].anchors[~met[at]], minlength=trees) > 0
                      for at in concerned}
            is_certain = functools.reduce(
                np.logical_or, [able[at] & ~unable[at] for at in concerned], np.zeros(trees, bool))
            number = np.zeros(trees, np.int64)
            for at in concerned:
                number += able[at]
            is_dependent |= (number > 1) & ~is_certain
            for at, column in enumerate(columns):
                # All pairs go in trees that cannot meet the condition.
                keeps = (number > 0)[column.anchors]
                if at in met:
                    is_only = (number == 1) & ~is_certain & able[at]
                    if len(column.suffixes) == 1:
                        keeps &= met[at] | ~is_only[column.anchors]
                    else:
                        # One of the providers of its groups is enough.
                        is_dependent |= is_only
                if not keeps.all():
                    columns[at], is_changed = column.only(keeps), True
                    met.pop(at, None)
            if is_changed:
                break
    return columns, is_dependent


def _by_class(columns: Sequence[Supply], trees: int) -> Iterator[np.ndarray]:
    """Yield for each class of several columns how many requests each tree has enough of it for."""
    for name in sorted({name for column in columns for name in column.amounts}):
        some = [column for column in columns if name in column.amounts]
        if len(some) > 1:
            keys, first = np.unique(np.concatenate([column.keys for column in some]),
                                    return_index=True)
            free = np.concatenate([column.free[name] for column in some])[first]
            yield sums(keys >> 32, free, trees) // sum(
                column.amounts[name] * len(column.suffixes) for column in some)


def _related(columns: Sequence[Supply], rules: HeadroomRules) -> list[list[int]]:
    """Return lists of the positions of columns that may depend on each other in some tree.

    Columns of different lists do not, so that as many requests fit as fit by each list.
    """
    found: list[list[int]] = []
    for at, column in enumerate(columns):
        apart, joined = [], [at]
        for some in found:
            if any(_are_related(column, columns[other], rules) for other in some):
                joined += some
            else:
                apart.append(some)
        found = [*apart, sorted(joined)]
    return [some for some in found if len(some) > 1 or len(columns[some[0]].suffixes) > 1]


def _are_related(one: Supply, other: Supply, rules: HeadroomRules) -> bool:
    """Return whether the choice in one column may limit that in another in some tree."""
    return (
        not one.amounts.keys().isdisjoint(other.amounts)
        or (rules.is_isolated and not one.is_unsuffixed and not other.is_unsuffixed)
        or any(condition.concerns(one) and condition.concerns(other)
               for condition in rules.required)
        or any(one.suffixes[0] in suffixes and other.suffixes[0] in suffixes
               for suffixes in rules.same_subtree))


def _competing(columns: Sequence[Supply], rules: HeadroomRules, trees: int) -> np.ndarray:
    """Return an array of bool by tree: whether the choice in one column limits that in another."""
    found = np.zeros(trees, bool)
    groups = [[column for column in columns if name in column.amounts]
              for name in {name for column in columns for name in column.amounts}]
    if rules.is_isolated:
        groups.append([column for column in columns if not column.is_unsuffixed])
    for some in groups:
        if len(some) > 1:
            pairs, counts = np.unique(
                np.concatenate([column.keys for column in some]), return_counts=True)
            found[pairs[counts > 1] >> 32] = True
    for suffixes in rules.same_subtree:
        named = [column for column in columns if column.suffixes[0] in suffixes]
        if len(named) > 1:
            found |= ~_is_one_subtree(named, trees)
    for column in columns:
        if len(column.suffixes) > 1:
            found[column.anchors[column.pairs["shared"]]] = True
    return found


def _is_one_subtree(columns, trees):
    """Return an array of bool by tree: whether all choices are of one subtree.

    That is certain if one column has a single provider, with those of all others below it.
    """
    first = np.full(trees, 2 ** 31 - 1, np.int64)
    last = np.full(trees, -1, np.int64)
    for column in columns:
        np.minimum.at(first, column.anchors, column.slots)
        np.maximum.at(last, column.anchors, column.slots)
    found = np.zeros(trees, bool)
    for column in columns:
        single = np.bincount(column.anchors, minlength=trees)[column.anchors] == 1
        anchors, slots = column.anchors[single], column.slots[single]
        found[anchors] |= (first[anchors] >= slots) & (
            last[anchors] < column.pairs["ends"][single])
    return found


# -- trees that share providers ------------------------------------------------------------


def _together(columns, rules, is_shared, is_dependent, trees, packer, budget):
    """Return how many requests fit in the trees that share providers."""
    columns = _of_trees(columns, is_shared)
    dependent = is_shared & is_dependent
    if not dependent.any():
        return shared_supplies.fit(columns, trees)
    # Without regard to the dependencies more fit, and without the dependent trees fewer.
    most = shared_supplies.fit([_single(column) for column in columns], trees).most
    found = Packed(0, most) if budget.is_spent else packer.fit(columns, rules, most)
    if found.least == found.most:
        return found
    least = shared_supplies.fit(_of_trees(columns, ~dependent), trees).least
    return Packed(max(found.least, least), found.most)


def _single(column):
    """Return a column in place of one of several groups: one of them serves no fewer requests."""
    return dataclasses.replace(column, suffixes=column.suffixes[:1])


# -- parts ---------------------------------------------------------------------------------


def count_part(columns: Sequence[Supply], rules: HeadroomRules, packer: dependent_trees.Packer,
               budget: dependent_trees.PackingBudget,
               which: Callable[[Supply], np.ndarray] | None = None) -> Packed:
    """Return how many requests fit into a part of the supplies.

    :param which: returns an array of bool: which pairs of a column belong to the part; None for
        all
    """
    if which is not None:
        columns = [column.only(which(column)) for column in columns]
    if not all(len(column) for column in columns):
        return Packed(0, 0)
    anchors = functools.reduce(np.intersect1d, [column.anchors for column in columns])
    columns = [_renumbered(column, anchors) for column in columns]
    return count(columns, rules, len(anchors), packer, budget).all


def _renumbered(column, anchors):
    """Return a column with the pairs of some trees, which get the numbers from 0 on."""
    kept = column.only(np.isin(column.anchors, anchors))
    return dataclasses.replace(kept, pairs={
        **kept.pairs, "anchors": anchors.searchsorted(kept.anchors).astype(np.int32)})
