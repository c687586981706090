# SPDX-License-Identifier: Apache-2.0
"""Read from the index what providers could give to a request: see :mod:`.supplies`."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from placement_rpc import exception
from placement_rpc.candidates import capacity as rule
from placement_rpc.candidates import fitting, parts
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.parts import Part
from placement_rpc.candidates.query import GroupsQuery
from placement_rpc.candidates.supplies import UNLIMITED, Condition, HeadroomRules, Supply

# Rows of inventories that the columns of a request may have: about half a second of work.
_MOST_ROWS = 5_000_000

#: By what headroom can be broken down.
AGGREGATE, TRAIT, CLASS = "aggregate", "trait", "class-limit"


@dataclasses.dataclass(frozen=True, slots=True)
class Taken:
    """What was read from the index for a request; it does not change with the index.

    :param columns: what could serve each column; empty if a group cannot be served at all
    :param trees: the number of trees; all anchors are less
    :param names: the names in each set by which headroom is broken down, by the set's number
    :param root_sets: array of int32 by tree: the set of its root; None if it is not needed
    """

    columns: Sequence[Supply]
    rules: HeadroomRules
    trees: int
    names: Mapping[int, frozenset[str]]
    root_sets: np.ndarray | None


def take(index: CandidateIndex, query: GroupsQuery, by: str | None = None) -> Taken:
    """Read what could serve a request, for the time after the lock of the index is released.

    :param by: :data:`AGGREGATE`, :data:`TRAIT`, :data:`CLASS` or None
    :raises ResourceClassNotFound: if there is no class of a name
    :raises TraitNotFound: if there is no trait of a name
    :raises RequestTooComplex: if the request concerns too many inventories
    """
    root_mask = parts.root_mask(index, query.root_required, query.root_forbidden)
    # All are checked, also after one that cannot be served.
    is_served = [parts.is_possible(index, group) for group in query.groups]
    of_groups = [list(parts.parts_of(index, group)) for group in query.groups]
    trees = len(index.root)
    if not all(is_served) or not all(of_groups) or any(
            class_id not in index.inventories
            for some in of_groups for part in some for class_id in part.amounts):
        return Taken((), HeadroomRules(), trees, {}, None)
    is_root = None if root_mask is None else root_mask[index.trait_set[index.root]]
    together = {suffix for suffixes in query.same_subtree if len(suffixes) > 1
                for suffix in suffixes}
    wanted = _wanted(query, by)
    families: dict[tuple, list[Part]] = {}
    for part in (part for some in of_groups for part in some):
        # Equal groups are counted together, unless it matters which of them has which provider.
        key = (part.key if part.suffix and part.amounts and part.suffix not in together
               else (part.suffix, *part.amounts))
        families.setdefault(key, []).append(part)
    _check_size(index, families)
    is_isolated = query.group_policy == "isolate"
    names = {class_id: name for name, class_id in index.class_ids.items()}
    columns = [_supply(index, some, is_root, names, is_isolated, wanted)
               for some in families.values()]
    sets, attribute = (index.aggregate_sets, "aggregates") if by == AGGREGATE else (
        index.trait_sets, "traits")
    used = [column.pairs[attribute] for column in columns if attribute in column.pairs]
    root_sets = index.aggregate_set[index.root] if by == AGGREGATE else None
    if root_sets is not None:
        used.append(root_sets)
    return Taken(
        columns, HeadroomRules(_conditions(index, query), is_isolated,
                       [each for each in query.same_subtree if len(each) > 1]), trees,
        {number: sets[number] for number in _distinct(used)} if by else {}, root_sets)


def _check_size(index: CandidateIndex, families: Mapping[tuple, Sequence[Part]]) -> None:
    """Check that a request does not concern too many inventories to be read at once.

    :raises RequestTooComplex: if it does
    """
    rows = sum(min((len(index.inventories[class_id]) for class_id in some[0].amounts),
                   default=len(index.id)) for some in families.values())
    if rows > _MOST_ROWS:
        raise exception.RequestTooComplex(
            reason=f"its {len(families)} groups and classes concern {rows} inventories, and "
                   f"{_MOST_ROWS} are allowed")


def _wanted(query: GroupsQuery, by: str | None) -> set[str]:
    """Return which of the larger arrays of pairs are needed."""
    return {name for name, is_needed in (
        ("ends", any(len(suffixes) > 1 for suffixes in query.same_subtree)),
        ("traits", by == TRAIT or any(not group.suffix and group.required
                                      for group in query.groups)),
        ("aggregates", by == AGGREGATE)) if is_needed}


def _distinct(arrays: Iterable[np.ndarray]) -> set[int]:
    return {number for array in arrays for number in np.unique(array).tolist()}


def _conditions(index: CandidateIndex, query: GroupsQuery) -> list[Condition]:
    """Return what the providers of the group without a suffix have to have together."""
    return [Condition(index.trait_sets.having_any(names)) for group in query.groups
            if not group.suffix and len(group.amounts) > 1 for names in group.required]


def _supply(index: CandidateIndex, family: Sequence[Part], is_root: np.ndarray | None,
            names: Mapping[int, str], is_isolated: bool, wanted: set[str]) -> Supply:
    """Return the supply of a column.

    :param family: a part, or several that ask for the same
    :param is_root: array of bool by tree: whether its root meets the request; None if all do
    :param names: of the classes, by their ids
    :param wanted: arrays of pairs that are needed only sometimes
    """
    part = family[0]
    slots, rows = _with_inventories(index, part)
    anchors, places, is_shared = _pairs(index, slots, part, is_root)
    if places is not None:
        slots = slots[places]
        rows = {class_id: places if some is None else some[places]
                for class_id, some in rows.items()}
    free, max_units, units_of = {}, {}, {}
    most = np.full(len(slots), 1 if is_isolated and part.suffix else len(family), np.int64)
    for class_id, amount in part.amounts.items():
        inventories, name = index.inventories[class_id], names[class_id]
        some = rows[class_id]
        at = slice(None) if some is None else some
        free[name] = np.maximum(rule.free_of(inventories.capacity[at], inventories.used[at]), 0)
        max_units[name] = inventories.max_unit[at].astype(np.int64)
        units_of[name] = free[name] // amount * fitting.meets_units(inventories, at, amount)
        if len(family) > 1:
            most = np.minimum(most, max_units[name] // amount)
    pairs = {
        "anchors": anchors, "slots": slots, "shared": is_shared, "most": most,
        "units": functools.reduce(np.minimum, units_of.values()) if units_of else np.full(
            len(slots), UNLIMITED)}
    arrays = {"ends": index.subtree_end, "traits": index.trait_set,
              "aggregates": index.aggregate_set}
    if "aggregates" in wanted:
        pairs["own"] = index.tree[slots] == anchors
    return Supply(
        [each.suffix for each in family],
        {names[class_id]: amount for class_id, amount in part.amounts.items()},
        pairs | {name: arrays[name][slots] for name in wanted}, units_of, free, max_units)


def _with_inventories(index: CandidateIndex,
                      part: Part) -> tuple[np.ndarray, dict[int, np.ndarray | None]]:
    """Return the slots that have inventories of all classes of a part, or all that are alive.

    :returns: array of int32, and dict of class id to their rows, None for all rows in their order
    """
    if not part.amounts:
        return np.flatnonzero(index.tree >= 0).astype(np.int32), {}
    first, *others = sorted(part.amounts, key=lambda class_id: len(index.inventories[class_id]))
    slots = index.inventories[first].slots
    is_there = np.ones(len(slots), bool)
    if len(slots) > index.inventories[first].living:
        is_there = index.tree[slots] >= 0
    if part.tree is not None:
        is_there &= (slots >= part.tree[0]) & (slots < part.tree[1])
    rows: dict[int, np.ndarray | None] = {first: None}
    for class_id in others:
        rows[class_id], has = index.inventories[class_id].rows_of(slots)
        is_there &= has
    if is_there.all():
        return slots.copy(), rows
    places = np.flatnonzero(is_there)
    return slots[places], {class_id: places if some is None else some[places]
                           for class_id, some in rows.items()}


def pairs_of(index: CandidateIndex, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the anchors of providers.

    :returns: array of int32 of tree numbers, and an array of the position of each one's provider;
        None if each provider has one anchor, in their order
    """
    sharing = np.flatnonzero(np.isin(slots, index.sharing)) if index.sharing_ids else slots[:0]
    if not len(sharing):
        return index.tree[slots], None
    others = np.ones(len(slots), bool)
    others[sharing] = False
    of_each = [index.anchors(slot) for slot in slots[sharing].tolist()]
    return (np.concatenate((index.tree[slots[others]], *of_each)),
            np.concatenate((np.flatnonzero(others),
                            np.repeat(sharing, [len(each) for each in of_each]))))


def _pairs(index: CandidateIndex, slots: np.ndarray, part: Part,
           is_root: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Return the pairs that a part allows.

    :returns: array of their anchors, ascending; array of the positions of their providers, None
        for all of them in their order; and array of bool, whether the provider has other anchors
    """
    places: np.ndarray | None = None
    if part.crosses_trees:
        anchors, places = pairs_of(index, slots)
    else:
        anchors = index.tree[slots]
    of_pairs = slots if places is None else slots[places]
    is_shared = np.zeros(len(anchors), bool) if places is None else np.isin(
        of_pairs, of_pairs[index.tree[of_pairs] != anchors])
    is_allowed = part.allows(index, of_pairs, index.root[anchors])
    if is_root is not None:
        is_allowed &= is_root[anchors]
    kept = None if is_allowed.all() else np.flatnonzero(is_allowed)
    ascending = anchors if kept is None else anchors[kept]
    if np.any(ascending[1:] < ascending[:-1]):
        order = np.argsort(ascending, kind="stable")
        kept = order if kept is None else kept[order]
    if kept is None:
        return anchors, places, is_shared
    return anchors[kept], kept if places is None else places[kept], is_shared[kept]
