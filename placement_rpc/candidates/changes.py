# SPDX-License-Identifier: Apache-2.0
"""Changes of a candidate index: of used amounts, of providers, and of the shape of their trees."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placement_rpc.candidates import compaction
from placement_rpc.candidates.index import SHARES, CandidateIndex
from placement_rpc.candidates.interned_sets import EMPTY
from placement_rpc.candidates.inventories import VALUES
from placement_rpc.candidates.tree_writing import (
    OWN,
    ClassRows,
    check_roots,
    names_in,
    picked,
    remove_slots,
    write_leaves,
    write_trees,
)
from placement_rpc.candidates.uuid_columns import to_halves

_NOTHING: Mapping[int, Collection[str]] = {}


class Provider(NamedTuple):
    """A provider as it is put into an index; ``root_id`` None is not compared with the tree."""

    id: int
    uuid: str
    name: str
    generation: int
    parent_id: int | None = None
    root_id: int | None = None


# -- used amounts ---------------------------------------------------------------------------


def set_used(index: CandidateIndex, rows: Sequence[tuple]) -> list[tuple]:
    """Set the used amounts of providers after transactions.

    :param rows: in the order of the transactions for each provider: provider id, the generation
        that the transaction read, the generation that it wrote, and a list of class ids, each
        followed by how much of the class is used now
    :returns: the rows that the index cannot follow, because it is not at the generation that the
        transaction read or lacks an inventory; these providers have to be read again
    """
    ids = dict.fromkeys(row[0] for row in rows)
    slots = index.slots_of(ids)
    slot_of = dict(zip(ids, slots.tolist(), strict=True))
    generations = dict(zip(ids, index.generation[slots].tolist() if len(index.slots) else (),
                           strict=False))
    # By class and slot.
    used: dict[int, dict[int, int]] = {}
    changed, failed = {}, []
    for row in rows:
        provider_id, before, after, amounts = row
        slot = slot_of[provider_id]
        if slot >= 0 and generations[provider_id] >= after:
            continue
        if slot < 0 or generations[provider_id] != before:
            failed.append(row)
            continue
        generations[provider_id] = changed[slot] = after
        for class_id, amount in zip(amounts[::2], amounts[1::2], strict=True):
            used.setdefault(class_id, {})[slot] = amount
    lacking = {slot for class_id, by_slot in used.items()
               for slot in _write_used(index, class_id, by_slot)}
    if changed:
        index.version += 1
        concerned = np.fromiter(changed, np.int32, len(changed))
        index.generation[concerned] = list(changed.values())
        index.tree_version[index.tree[concerned]] = index.version
    return failed + [row for row in rows if slot_of[row[0]] in lacking]


def _write_used(index, class_id, by_slot):
    """Write what is used of a class; return the slots that have no inventory of it."""
    table = index.inventories.get(class_id)
    if table is None:
        return list(by_slot)
    slots = np.fromiter(by_slot, np.int32, len(by_slot))
    rows, there = table.rows_of(slots)
    table.used[rows[there]] = np.fromiter(by_slot.values(), np.int64, len(by_slot))[there]
    return slots[~there].tolist()


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
        if not self._write_leaves(reshaped, is_known, added):
            self._write_trees(reshaped, moved, added)
        check_roots(index, self.ids, np.array([
            -1 if row[5] is None else row[5] for row in self.providers], np.int64))
        for class_id in [each for each, table in index.inventories.items() if not table.living]:
            del index.inventories[class_id]
        if compaction.has_waste(index):
            compaction.compact(index)

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
        index.forget_anchors(names_in(index.aggregate_sets, index.aggregate_set[self.removed]))
        index.sharing_ids.difference_update(index.id[self.removed].tolist())
        index.names.unused += int(index.slots["name_length"][self.removed].sum())
        index.by_id.remove(gone)

    def _note_sharing(self):
        """Note which providers share, and forget the anchors that depend on those given."""
        index = self.index
        known = self.slots >= 0
        before = np.where(known, index.aggregate_set[self.slots] if len(index.slots) else EMPTY,
                          EMPTY)
        changed = before != self.own["aggregate_set"]
        index.forget_anchors(names_in(index.aggregate_sets, np.concatenate((
            before[changed], self.own["aggregate_set"][changed]))))
        shares = index.trait_sets.having_any([SHARES])[self.own["trait_set"]]
        index.sharing_ids.update(self.ids[shares].tolist())
        index.sharing_ids.difference_update(self.ids[~shares].tolist())

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
                if slot >= 0:
                    index.names.unused += int(index.slots["name_length"][slot])
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
                    table.write(rows[given.places[kept]], **picked(given.values, kept))
                if not kept.all():
                    added[class_id] = ClassRows(given.places[~kept], picked(given.values, ~kept))
                    reshaped[added[class_id].places] = True
                there[given.places] = False
            # What is left was there and is not any more.
            if there.any():
                table.remove(rows[there])
                reshaped |= there
        return added

    def _write_leaves(self, reshaped, is_known, added):
        """Write what is new without writing trees again; return whether that was possible."""
        if len(self.removed) or (reshaped & is_known).any():
            return False
        new = np.flatnonzero(~is_known)
        place = np.full(len(self.ids), -1)
        place[new] = np.arange(len(new))
        return write_leaves(self.index, picked(self.own, new), self.parent_ids[new], {
            class_id: ClassRows(place[rows.places], rows.values)
            for class_id, rows in added.items()})

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
        remove_slots(index, old)
        write_trees(index, columns, parent_ids, inventories, was_tree, tree_before)


def _parent_ids(index, slots):
    """Return the ids of the parents of slots; 0 for roots."""
    parents = index.parent[slots]
    return np.where(parents >= 0, index.id[parents] if len(index.slots) else 0, 0)


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
            table.remove(rows[there])
        if class_id in added:
            places.append(of_given[added[class_id].places])
            values.append(added[class_id].values)
        found[class_id] = ClassRows(np.concatenate(places), {
            name: np.concatenate([each[name] for each in values]) for name in VALUES})
    return found
