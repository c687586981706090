# SPDX-License-Identifier: Apache-2.0
"""Changes of a candidate index: of used amounts, of providers, and of the shape of their trees."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from placement_rpc.candidates import trees
from placement_rpc.candidates.index import SHARES, CandidateIndex
from placement_rpc.candidates.interned_sets import DEAD, EMPTY
from placement_rpc.candidates.inventories import VALUES, Inventories
from placement_rpc.candidates.uuid_columns import to_halves

_NOTHING: Mapping[int, Collection[str]] = {}
#: Columns of a slot that have nothing to do with its place.
OWN = ("id", "high", "low", "generation", "name_start", "name_length", "trait_set",
        "aggregate_set")
# The index is compacted when it has more dead slots than this, and than this part of all.
_FEW_DEAD, _DEAD_SHARE = 1024, 8


class Provider(NamedTuple):
    """A provider as it is put into an index; ``root_id`` None is not compared with the tree."""

    id: int
    uuid: str
    name: str
    generation: int
    parent_id: int | None = None
    root_id: int | None = None


class ClassRows(NamedTuple):
    """Inventories of a class.

    :param places: array of int: the place of the provider of each among those given
    :param values: dict of column to array
    """

    places: np.ndarray
    values: dict[str, np.ndarray]


# -- used amounts ---------------------------------------------------------------------------


def set_used(index: CandidateIndex, provider_id: int, before: int, after: int,
             used: Sequence[int]) -> bool:
    """Set the used amounts of a provider after a transaction.

    :param before: the generation of the provider that the transaction read
    :param after: the generation that it wrote
    :param used: class ids, each followed by how much of the class is used now
    :returns: False if the index is not at the generation that the transaction read or lacks
        an inventory, so that the provider has to be read again
    """
    slot = index.slot_of(provider_id)
    if slot is None:
        return False
    known = int(index.generation[slot])
    if known >= after:
        return True
    if known != before:
        return False
    for class_id, amount in zip(used[::2], used[1::2], strict=True):
        table = index.inventories.get(class_id)
        row = table.row_of(slot) if table is not None else None
        if table is None or row is None:
            return False
        table.used[row] = amount
    index.generation[slot] = after
    index.version += 1
    index.tree_version[index.tree[slot]] = index.version
    return True


# -- providers ------------------------------------------------------------------------------


def put(index: CandidateIndex, providers: Sequence[Provider],
        inventories: Sequence[tuple] = (), traits: Mapping[int, Collection[str]] = _NOTHING,
        aggregates: Mapping[int, Collection[str]] = _NOTHING,
        removed: Collection[int] = ()) -> None:
    """Insert or replace providers with all that belongs to them, and remove others.

    :param providers: in any order
    :param inventories: provider id, class id, capacity, used, min_unit, max_unit, step_size and
        reserved (0 if it is missing) of all inventories of these providers
    :param traits: dict of provider id to the names of its traits
    :param aggregates: dict of provider id to the uuids of its aggregates
    :param removed: ids of providers to remove; unknown ones are ignored
    :raises placement_rpc.candidates.trees.BrokenTree: if a parent is missing, if there is a loop
        of parents, or if a root is another than was given. The index is not usable after that.
    """
    _Put(index, providers, traits, aggregates).run(inventories, removed)


class _Put:
    """One change of providers."""

    def __init__(self, index, providers, traits, aggregates):
        self.index = index
        self.providers = providers
        self.ids = np.array([row[0] for row in providers], np.int64)
        self.parent_ids = np.array([row[4] or 0 for row in providers], np.int64)
        self.own = self._own_columns(traits, aggregates)
        self.slots = index.slots_of(self.ids)
        self.removed = np.empty(0, np.int32)

    def _own_columns(self, traits, aggregates):
        high, low = to_halves([row[1] for row in self.providers])
        sets = {name: np.array([numbers.number_of(given.get(row[0], ()))
                                for row in self.providers], np.int32)
                for name, numbers, given in (
                    ("trait_set", self.index.trait_sets, traits),
                    ("aggregate_set", self.index.aggregate_sets, aggregates))}
        return {"id": self.ids, "high": high, "low": low, **sets,
                "generation": np.array([row[3] for row in self.providers], np.int64)}

    def run(self, inventories, removed):
        """Make the change."""
        index = self.index
        index.version += 1
        self._find_removed(removed)
        is_known = self.slots >= 0
        self._note_sharing()
        self._write_own(is_known)
        known = self.slots[is_known]
        index.tree_version[index.tree[known]] = index.version
        moved = is_known.copy()
        moved[is_known] = _parent_ids(index, known) != self.parent_ids[is_known]
        reshaped = moved | ~is_known
        by_class = _by_class(self.ids, inventories)
        added = self._write_inventories(by_class, reshaped)
        if reshaped.any() or len(self.removed):
            self._write_trees(reshaped, moved, added)
        check_roots(index, self.ids, np.array([
            -1 if row[5] is None else row[5] for row in self.providers], np.int64))
        for class_id in [each for each, table in index.inventories.items() if not table.living]:
            del index.inventories[class_id]
        if index.dead > max(_FEW_DEAD, len(index) // _DEAD_SHARE):
            compact(index)

    def _find_removed(self, removed):
        """Find the slots to remove; an id that has another uuid now is another provider."""
        index = self.index
        another = (self.slots >= 0) & ((index.high[self.slots] != self.own["high"])
                                       | (index.low[self.slots] != self.own["low"])
                                       ) if len(index.slots) else np.zeros(len(self.slots), bool)
        gone = np.array(sorted(set(removed) - set(self.ids.tolist())), np.int64)
        slots = index.slots_of(gone)
        self.removed = np.concatenate((self.slots[another], slots[slots >= 0]))
        self.slots[another] = -1
        index.forget_anchors(_names_in(index.aggregate_sets, index.aggregate_set[self.removed]))
        index.forget_anchors_of(index.id[self.removed].tolist())
        index.sharing_ids.difference_update(index.id[self.removed].tolist())
        index.by_id.remove(gone)

    def _note_sharing(self):
        """Note which providers share, and forget the anchors that depend on those given."""
        index = self.index
        known = self.slots >= 0
        before = np.where(known, index.aggregate_set[self.slots] if len(index.slots) else EMPTY,
                          EMPTY)
        changed = before != self.own["aggregate_set"]
        index.forget_anchors(_names_in(index.aggregate_sets, np.concatenate((
            before[changed], self.own["aggregate_set"][changed]))))
        shares = index.trait_sets.having_any([SHARES])[self.own["trait_set"]]
        sharing, others = self.ids[shares].tolist(), self.ids[~shares].tolist()
        index.forget_anchors_of(sharing + others)
        index.sharing_ids.update(sharing)
        index.sharing_ids.difference_update(others)

    def _write_own(self, is_known):
        """Write the columns of known providers, and pack the names that are new."""
        index = self.index
        starts = np.zeros(len(self.ids), np.int64)
        lengths = np.zeros(len(self.ids), np.uint16)
        new = []
        for at, slot in enumerate(self.slots.tolist()):
            if slot >= 0 and index.name_of(slot) == self.providers[at][2]:
                starts[at] = index.slots["name_start"][slot]
                lengths[at] = index.slots["name_length"][slot]
            else:
                new.append(at)
        starts[new], lengths[new] = index.names.add([self.providers[at][2] for at in new])
        self.own |= {"name_start": starts, "name_length": lengths}
        for name in OWN:
            index.slots[name][self.slots[is_known]] = self.own[name][is_known]

    def _write_inventories(self, by_class, reshaped):
        """Write the inventories that are there already, and mark providers with other classes.

        :returns: dict of class id to the :class:`ClassRows` that are not there yet
        """
        index, added = self.index, {}
        for class_id in by_class.keys() | index.inventories.keys():
            table = index.inventories.get(class_id)
            given = by_class.get(class_id)
            rows, there = (np.zeros(len(self.ids), np.int64), np.zeros(len(self.ids), bool)
                           ) if table is None else table.rows_of(self.slots)
            if given is not None:
                kept = there[given.places]
                if table is not None and kept.any():
                    table.write(rows[given.places[kept]], **_picked(given.values, kept))
                if not kept.all():
                    added[class_id] = ClassRows(given.places[~kept], _picked(given.values, ~kept))
                    reshaped[added[class_id].places] = True
                there[given.places] = False
            # What is left was there and is not any more.
            if there.any():
                table.bury(rows[there])
                reshaped |= there
        return added

    def _write_trees(self, reshaped, moved, added):
        """Write all trees again that are concerned."""
        index = self.index
        known = self.slots >= 0
        parents = index.slots_of(self.parent_ids[moved | ~known])
        numbers = np.unique(index.tree[np.concatenate((
            self.slots[reshaped & known], self.removed, parents[parents >= 0]))])
        old = np.concatenate([np.empty(0, np.int32), *(
            np.arange(root, index.subtree_end[root], dtype=np.int32)
            for root in np.sort(index.root[numbers]))])
        stay = old[~np.isin(old, self.removed)]
        new = np.flatnonzero(~known)
        parent_ids = np.concatenate((_parent_ids(index, stay), self.parent_ids[new]))
        # The given providers among those that stay.
        given = np.flatnonzero(known)
        at = stay.searchsorted(self.slots[given])
        at[~np.isin(self.slots[given], stay)] = -1
        parent_ids[at[at >= 0]] = self.parent_ids[given[at >= 0]]
        columns = {name: np.concatenate((index.slots[name][stay], self.own[name][new]))
                   for name in OWN}
        was_tree = np.concatenate((
            np.where(index.parent[stay] < 0, index.tree[stay], -1), np.full(len(new), -1)))
        tree_before = np.concatenate((index.tree[stay], np.full(len(new), -1)))
        of_given = np.full(len(self.ids), -1)
        of_given[given] = at
        of_given[new] = len(stay) + np.arange(len(new))
        inventories = _collected(index, old, stay, added, of_given)
        kill(index, old)
        write_trees(index, columns, parent_ids, inventories, was_tree, tree_before)


def _parent_ids(index, slots):
    """Return the ids of the parents of slots; 0 for roots."""
    parents = index.parent[slots]
    return np.where(parents >= 0, index.id[parents] if len(index.slots) else 0, 0)


def _picked(values, rows):
    return {name: column[rows] for name, column in values.items()}


def _names_in(sets, numbers):
    """Return the names in all sets of these numbers."""
    return frozenset().union(*(sets[number] for number in set(numbers.tolist())))


def _by_class(ids, inventories):
    """Return a dict of class id to :class:`ClassRows` of rows of inventories."""
    place = {id_: at for at, id_ in enumerate(ids.tolist())}
    by_class: dict[int, list] = {}
    for row in inventories:
        by_class.setdefault(row[1], []).append(
            (place[row[0]], *row[2:], *[0] * (2 + len(VALUES) - len(row))))
    found = {}
    for class_id, rows in by_class.items():
        places, *values = zip(*rows, strict=True)
        found[class_id] = ClassRows(np.array(places), {
            name: np.array(column, dtype)
            for (name, dtype), column in zip(VALUES.items(), values, strict=True)})
    return found


def _collected(index, old, stay, added, of_given):
    """Return the inventories of trees that are written again: dict of class id to rows.

    :param old: their slots so far
    :param stay: those whose providers stay
    :param added: rows that no slot has yet, by class id
    :param of_given: the place of each given provider among those that stay and the new ones
    """
    found = {}
    for class_id in added.keys() | index.inventories.keys():
        places, values = [], []
        table = index.inventories.get(class_id)
        if table is not None:
            rows, there = table.rows_of(stay)
            there &= table.is_living(rows)
            places.append(np.flatnonzero(there))
            values.append(table.take(rows[there]))
            rows, there = table.rows_of(old)
            table.bury(rows[there])
        if class_id in added:
            places.append(of_given[added[class_id].places])
            values.append(added[class_id].values)
        found[class_id] = ClassRows(np.concatenate(places), {
            name: np.concatenate([each[name] for each in values]) for name in VALUES})
    return found


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


# -- trees ----------------------------------------------------------------------------------


def kill(index: CandidateIndex, slots: np.ndarray) -> None:
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
    for class_id, rows in inventories.items():
        if len(rows.places):
            slots = place[rows.places]
            by_slot = np.argsort(slots, kind="stable")
            index.inventories.setdefault(class_id, Inventories()).add(
                slots[by_slot], **_picked(rows.values, by_slot))
    if tree_before is not None:
        elsewhere = tree_before[order] != tree
        index.forget_anchors(_names_in(
            index.aggregate_sets, columns["aggregate_set"][order][elsewhere]))
        index.forget_anchors_of(columns["id"][order][elsewhere].tolist())


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


def compact(index: CandidateIndex) -> None:
    """Remove dead slots: the living get other slots, and all else stays."""
    is_alive = index.id != 0
    new_slots = np.append(0, np.cumsum(is_alive, dtype=np.int32)).astype(np.int32)
    parent, end = index.parent, index.subtree_end
    parent[:] = np.where(parent >= 0, new_slots[parent], -1)
    end[:] = new_slots[end]
    index.slots.keep(is_alive)
    for table in index.inventories.values():
        table.compact(is_alive, new_slots)
    index.by_id["slot"][:] = new_slots[index.by_id["slot"]]
    root = index.root
    root[:] = np.where(root >= 0, new_slots[root], -1)
    index.by_uuid.clear()
    index.dead = 0
