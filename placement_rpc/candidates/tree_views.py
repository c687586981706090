# SPDX-License-Identifier: Apache-2.0
"""What the providers of trees have, as plain values that are independent of the index."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from placement_rpc.candidates import parts, taking
from placement_rpc.candidates.dependent_trees import of_tree
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.inventories import VALUES
from placement_rpc.candidates.query import GroupsQuery
from placement_rpc.candidates.supplies import HeadroomRules, Supply


@dataclasses.dataclass(frozen=True, slots=True)
class NodeView:
    """A provider that could serve requests in a tree.

    :param is_own: whether it is of the tree itself, and does not share with it from elsewhere
    :param inventories: class name to a dict of capacity, used, min_unit, max_unit and step_size;
        only of classes that are asked for
    :param in_trees: the groups, by their suffixes, whose ``in_tree`` names its tree
    """

    uuid: str
    name: str
    is_own: bool
    inventories: Mapping[str, Mapping[str, int]]
    traits: frozenset[str]
    aggregates: frozenset[str]
    in_trees: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class TreeView:
    """A tree.

    :param nodes: its providers, the root first, and those that share with it
    :param columns: what could serve each column of the request in this tree
    """

    generation: int
    nodes: Sequence[NodeView]
    columns: Sequence[Supply]
    rules: HeadroomRules

    @property
    def root(self) -> NodeView:
        """The root of the tree."""
        return self.nodes[0]


def views_of(index: CandidateIndex, query: GroupsQuery, after: int = 0,
             limit: int | None = None) -> list[TreeView]:
    """Return views of the next trees in the order of the ids of their roots.

    :param after: the id of the root after which to begin
    :param limit: the maximum number of trees; None for all
    :raises ResourceClassNotFound: if there is no class of a name
    :raises TraitNotFound: if there is no trait of a name
    """
    parts.check_names(index, query)
    taken = taking.take(index, query)
    roots = index.root[index.root >= 0]
    roots = roots[index.id[roots] > after]
    roots = roots[np.argsort(index.id[roots])][:limit]
    trees = index.tree[roots]
    slots = [np.arange(root, index.subtree_end[root]) for root in roots.tolist()]
    guests = _guests(index, trees)
    nodes = _nodes(index, query, slots, guests)
    return [TreeView(
        int(index.generation[root]), some,
        of_tree(taken.columns, tree), taken.rules)
        for root, tree, some in zip(roots.tolist(), trees.tolist(), nodes, strict=True)]


def _guests(index, trees):
    """Return for each tree the slots of the providers of other trees that share with it."""
    found = [[] for _ in range(len(trees))]
    for slot in index.sharing.tolist() if index.sharing_ids else ():
        for at in np.flatnonzero(
                np.isin(trees, index.anchors(slot)) & (trees != index.tree[slot])).tolist():
            found[at].append(slot)
    return [np.array(some, np.int64) for some in found]


def _nodes(index, query, own, guests):
    """Return the views of the providers of each tree: lists of :class:`NodeView`."""
    if not own:
        return []
    lengths = [(len(some), len(others)) for some, others in zip(own, guests, strict=True)]
    slots = np.concatenate([each for pair in zip(own, guests, strict=True) for each in pair])
    inventories = [{} for _ in range(len(slots))]
    for name in sorted({name for group in query.groups for name in group.amounts}):
        table = index.inventories.get(index.class_ids[name])
        if table is None:
            continue
        rows, has = table.rows_of(slots.astype(np.int32))
        values = zip(*(table[value][rows[has]].tolist() for value in VALUES), strict=True)
        for at, some in zip(np.flatnonzero(has).tolist(), values, strict=True):
            inventories[at][name] = dict(zip(VALUES, some, strict=True))
    in_trees = {group.suffix: index.slots_of_uuids([group.in_tree]).get(group.in_tree)
                for group in query.groups if group.in_tree is not None}
    in_trees = {suffix: None if slot is None else int(index.tree[slot])
                for suffix, slot in in_trees.items()}
    uuids, views = index.uuids_of(slots), []
    for at, slot in enumerate(slots.tolist()):
        tree = int(index.tree[slot])
        views.append({
            "uuid": uuids[at], "name": index.name_of(slot), "inventories": inventories[at],
            "traits": index.trait_sets[int(index.trait_set[slot])],
            "aggregates": index.aggregate_sets[int(index.aggregate_set[slot])],
            "in_trees": frozenset(
                suffix for suffix, wanted in in_trees.items() if wanted == tree)})
    found, at = [], 0
    for mine, others in lengths:
        found.append([NodeView(is_own=number < mine, **views[at + number])
                      for number in range(mine + others)])
        at += mine + others
    return found
