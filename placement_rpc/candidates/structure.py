# SPDX-License-Identifier: Apache-2.0
"""Check that the parts of an index agree with each other: trees, sharing providers, rows."""

from collections.abc import Iterator

import numpy as np

from placement_rpc.candidates.index import SHARES, CandidateIndex

#: What is found of the index as a whole is reported under this provider id.
WHOLE = 0


def faults(index: CandidateIndex, first: int, last: int) -> dict[int, str]:
    """Check the providers from the first id to the last.

    If no provider of an index has a fault, each tree is contiguous and depth first.

    :returns: dict of provider id to a text that says what is wrong
    """
    rows = index.by_id.between(first, last)
    ids, slots = index.by_id.keys[rows], index.by_id["slot"][rows]
    found: dict[int, str] = {}
    for wrong, text in (*_found_by(index, ids, slots), *_trees(index, slots),
                        *_sharing(index, slots)):
        for provider_id in ids[wrong].tolist():
            found.setdefault(provider_id, text)
    return found


def _trees(index, slots) -> Iterator[tuple[np.ndarray, str]]:
    """Yield which slots break a rule of the order of trees, and the rule."""
    tree, parent, end = index.tree[slots], index.parent[slots], index.subtree_end[slots]
    root = index.root[tree]
    is_root = parent < 0
    yield tree < 0, "its slot is dead"
    yield is_root & (root != slots), "it has no parent and is not the root of its tree"
    yield (slots < root) | (slots >= index.subtree_end[root]), "it is outside of its tree"
    yield ~is_root & ((parent >= slots) | (end > index.subtree_end[parent])
                      | (index.tree[parent] != tree)), "it is outside of the subtree of its parent"
    # Its subtree begins with its first child, and the next sibling follows its subtree.
    last = len(index.slots) - 1
    after = np.minimum(slots + 1, last)
    yield (end <= slots) | ((end > slots + 1) & (index.parent[after] != slots)), (
        "its subtree is not contiguous")
    after = np.minimum(end, last)
    yield ~is_root & (end < index.subtree_end[parent]) & (index.parent[after] != parent), (
        "the subtree of its parent is not contiguous")


def _found_by(index, ids, slots) -> Iterator[tuple[np.ndarray, str]]:
    """Yield which slots cannot be found."""
    yield index.id[slots] != ids, "its id leads to another slot"
    uuids = index.uuids_of(slots)
    found = index.slots_of_uuids(uuids)
    yield np.array([found.get(uuid) != slot for uuid, slot in zip(
        uuids, slots.tolist(), strict=True)], bool), "its uuid leads to another slot"


def _sharing(index, slots) -> Iterator[tuple[np.ndarray, str]]:
    """Yield which slots of sharing providers are not known as such, or have wrong anchors."""
    shares = np.array([SHARES in index.trait_sets[number]
                       for number in index.trait_set[slots].tolist()], bool)
    yield shares != np.isin(slots, index.sharing), (
        f"whether it shares its inventories is not what {SHARES} says")
    wrong = np.zeros(len(slots), bool)
    for at in np.flatnonzero(shares).tolist():
        wrong[at] = not np.array_equal(index.anchors(slots[at]), _anchors(index, slots[at]))
    yield wrong, "its anchors are not the trees of its aggregates"


def _anchors(index, slot):
    """Compute the anchors of a sharing provider from the aggregates of all providers."""
    aggregates = index.aggregate_sets[index.aggregate_set[slot]]
    sets = [number for number in range(len(index.aggregate_sets))
            if not aggregates.isdisjoint(index.aggregate_sets[number])]
    return np.union1d(index.tree[np.isin(index.aggregate_set, sets)], index.tree[slot])


def whole_faults(index: CandidateIndex) -> str | None:
    """Return a text that says what is wrong with the index as a whole, or None."""
    is_dead = index.id == 0
    if np.count_nonzero(is_dead) != index.dead:
        return f"{np.count_nonzero(is_dead)} slots are dead instead of {index.dead}"
    if len(index) + index.dead != len(index.slots):
        return f"{len(index)} providers are known in {len(index.slots) - index.dead} slots"
    for class_id, table in index.inventories.items():
        is_removed = ~table.is_living()
        if np.any(np.diff(table.slots) <= 0):
            return f"the inventories of class {class_id} are not in the order of slots"
        if np.any(is_dead[table.slots] != is_removed):
            return f"dead slots have inventories of class {class_id}, or living ones dead ones"
        if len(table) - table.living != np.count_nonzero(is_removed):
            return f"the number of inventories of class {class_id} is wrong"
        if table.is_simple and np.any(((table.min_unit != 1) | (table.step_size != 1))
                                      & ~is_removed):
            return f"class {class_id} has units that is_simple denies"
    return None
