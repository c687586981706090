# SPDX-License-Identifier: Apache-2.0
"""Write trees of providers into a candidate index, at the end of its slots."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from placement_rpc.candidates import trees
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.interned_sets import DEAD, InternedSets
from placement_rpc.candidates.inventories import Inventories

#: Columns of a slot that have nothing to do with its place.
OWN = ("id", "high", "low", "generation", "name_start", "name_length", "trait_set",
        "aggregate_set")


class ClassRows(NamedTuple):
    """Inventories of a class.

    :param places: array of int: the place of the provider of each among those given
    :param values: dict of column to array
    """

    places: np.ndarray
    values: dict[str, np.ndarray]


def write_leaves(index: CandidateIndex, columns: dict[str, np.ndarray], parent_ids: np.ndarray,
                 inventories: Mapping[int, ClassRows]) -> bool:
    """Write children at the end of the last tree, which is not written again.

    :param columns: arrays of what has nothing to do with places, by provider
    :param parent_ids: array of the id of the parent of each
    :param inventories: dict of class id to their inventories
    :returns: False, and nothing is written, if one of them has to be in another place
    """
    size, ids = len(index.slots), columns["id"].tolist()
    place: dict[int, int] = {}
    parents: list[int] = []
    end: dict[int, int] = {}
    for slot, at in enumerate(sorted(range(len(ids)), key=ids.__getitem__), size):
        parent = place.get(int(parent_ids[at]), index.slot_of(int(parent_ids[at])))
        if parent is None or end.get(
                parent, index.subtree_end[parent] if parent < size else parent + 1) != slot:
            return False
        place[ids[at]] = slot
        parents.append(parent)
        while parent >= 0:
            end[parent] = slot + 1
            parent = int(index.parent[parent]) if parent < size else parents[parent - size]
    if place:
        order = np.argsort(columns["id"])
        slots = np.arange(size, size + len(place), dtype=np.int32)
        tree = index.tree[parents[0]]
        index.slots.append(len(place), **picked(columns, order), tree=tree, parent=parents,
                           subtree_end=slots + 1)
        index.subtree_end[list(end)] = list(end.values())
        index.tree_version[tree] = index.version
        index.by_id.put(columns["id"][order], slot=slots)
        _write_inventories(index, inventories, slots[np.argsort(order)])
    return True


def remove_slots(index: CandidateIndex, slots: np.ndarray) -> None:
    """Mark slots as dead, and their trees as unused."""
    if not len(slots):
        return
    numbers = np.unique(index.tree[slots])
    index.root[numbers] = -1
    index.free_trees += numbers.tolist()
    for name, value in (("id", 0), ("tree", -1), ("parent", -1), ("trait_set", DEAD),
                        ("aggregate_set", DEAD)):
        index.slots[name][slots] = value
    index.subtree_end[slots] = slots + 1
    index.dead += len(slots)


def write_trees(index: CandidateIndex, columns: dict[str, Any], parent_ids: np.ndarray,
                inventories: Mapping[int, ClassRows], was_tree: np.ndarray | None = None,
                tree_before: np.ndarray | None = None) -> None:
    """Write trees at the end.

    :param columns: arrays of what has nothing to do with places, in any order of providers
    :param parent_ids: array of the id of the parent of each, 0 for none
    :param inventories: dict of class id to its inventories
    :param was_tree: the number of the tree of which each was the root; -1 for none
    :param tree_before: the number of the tree of each so far, -1 for none
    :raises placement_rpc.candidates.trees.BrokenTree: if a parent is missing, or in a loop
    """
    forest = trees.depth_first(columns["id"], parent_ids)
    base, order = len(index.slots), forest.order
    is_root = forest.parent < 0
    roots = np.flatnonzero(is_root)
    numbers = _numbers(index, len(roots), None if was_tree is None else was_tree[order][roots])
    tree = numbers[np.cumsum(is_root) - 1]
    index.slots.append(
        len(order), **{name: columns[name][order] for name in OWN}, tree=tree,
        parent=np.where(is_root, -1, forest.parent + base), subtree_end=forest.end + base)
    index.root[numbers] = roots + base
    index.tree_version[numbers] = index.version
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(base, base + len(order), dtype=np.int32)
    index.by_id.put(columns["id"], slot=place)
    _write_inventories(index, inventories, place)
    if tree_before is not None:
        elsewhere = tree_before[order] != tree
        index.forget_anchors(names_in(
            index.aggregate_sets, columns["aggregate_set"][order][elsewhere]))


def _write_inventories(index, inventories, place):
    """Write inventories of new slots.

    :param place: the new slots, by the places that the inventories say
    """
    for class_id, rows in inventories.items():
        if len(rows.places):
            slots = place[rows.places]
            by_slot = np.argsort(slots, kind="stable")
            index.inventories.setdefault(class_id, Inventories()).add(
                slots[by_slot], **picked(rows.values, by_slot))


def _numbers(index, count, was_tree):
    """Return numbers for trees: those that they had, free ones, and new ones."""
    numbers = np.full(count, -1, np.int32) if was_tree is None else was_tree.astype(np.int32)
    had = set(numbers[numbers >= 0].tolist())
    if had:
        index.free_trees = [each for each in index.free_trees if each not in had]
    without = np.flatnonzero(numbers < 0)
    free = [index.free_trees.pop() for _ in range(min(len(without), len(index.free_trees)))]
    known, more = len(index.trees), len(without) - len(free)
    index.trees.append(more, root=-1, version=0)
    numbers[without] = np.concatenate((np.array(free, np.int32),
                                       np.arange(known, known + more, dtype=np.int32)))
    return numbers


def check_roots(index: CandidateIndex, ids: np.ndarray, root_ids: np.ndarray) -> None:
    """Check the roots of providers.

    :param ids: array of provider ids
    :param root_ids: array of the id of the root of each, -1 for any
    :raises placement_rpc.candidates.trees.BrokenTree: if one is another
    """
    found = index.id[index.root[index.tree[index.slots_of(ids)]]]
    wrong = np.flatnonzero((found != root_ids) & (root_ids != -1))
    if len(wrong):
        at = wrong[0]
        raise trees.BrokenTree(f"the root of provider {ids[at]} is {root_ids[at]}, and that of "
                               f"its parents {found[at]}")


def picked(values: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return some rows of columns."""
    return {name: column[rows] for name, column in values.items()}


def names_in(sets: InternedSets, numbers: np.ndarray) -> frozenset[str]:
    """Return the names in all sets of these numbers."""
    return frozenset().union(*(sets[number] for number in set(numbers.tolist())))
