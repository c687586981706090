# SPDX-License-Identifier: Apache-2.0
"""The candidate index: trees of providers, their inventories, traits and aggregates, in columns.

Providers have *slots*, positions in arrays. Each tree is contiguous, and so is each subtree: that
of a slot ends before ``subtree_end`` of it. A tree whose shape changes is written again at the
end, and its old slots are dead until there are so many that the arrays are compacted.

Nothing here accesses a database: :mod:`placement_rpc.candidates.feed` brings an index up to date,
and :mod:`placement_rpc.candidates.matching` searches it. An index is not safe for threads; its
owner locks it (:class:`placement_rpc.candidates.live_index.LiveIndex`). A slot or the number of a
tree has no meaning after the lock is released.
"""

import sys
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from placement_rpc.candidates.growing_table import GrowingTable
from placement_rpc.candidates.interned_sets import EMPTY, InternedSets
from placement_rpc.candidates.inventories import VALUES, Inventories
from placement_rpc.candidates.packed_names import PackedNames
from placement_rpc.candidates.sorted_table import SortedTable
from placement_rpc.candidates.uuid_columns import UuidOrder, from_halves, to_halves

#: The trait of a provider that shares its inventories with all that have an aggregate in common.
SHARES = "MISC_SHARES_VIA_AGGREGATE"

#: The columns of a slot.
COLUMNS = {
    "id": np.int64, "high": np.uint64, "low": np.uint64, "generation": np.int64,
    "name_start": np.int64, "name_length": np.uint16, "tree": np.int32, "parent": np.int32,
    "subtree_end": np.int32, "trait_set": np.int32, "aggregate_set": np.int32}


def _column(name, doc):
    return property(lambda self: self.slots[name], doc=doc)


class CandidateIndex:
    """The fleet in memory.

    ``class_ids`` is a dict of the name of every resource class to its id, ``traits`` the set of
    the names of all traits, ``inventories`` a dict of class id to
    :class:`placement_rpc.candidates.inventories.Inventories`. The other attributes are arrays by
    slot, or by the number of a tree. :mod:`placement_rpc.candidates.changes` changes an index.

    :param waste: the number of dead slots, of unused sets and of bytes of unused names for which
        it is not compacted; a large index is compacted when more than an eighth is waste
    """

    def __init__(self, waste: int = 1024) -> None:
        self.waste = waste
        self.class_ids: dict[str, int] = {}
        self.traits: set[str] = set()
        self.inventories: dict[int, Inventories] = {}
        self.trait_sets = InternedSets()
        self.aggregate_sets = InternedSets()
        #: The columns of the slots; those who search use the attributes below.
        self.slots = GrowingTable(**COLUMNS)
        self.names = PackedNames()
        self.trees = GrowingTable(root=np.int32, version=np.int64)
        #: Slots by provider id.
        self.by_id = SortedTable(slot=np.int32)
        #: Ids of the providers that share their inventories.
        self.sharing_ids: set[int] = set()
        #: The aggregates of sharing providers to the trees that have any of them.
        self.known_anchors: dict[frozenset[str], np.ndarray] = {}
        self.by_uuid = UuidOrder()
        #: The position of an event up to which all changes are applied.
        self.position = 0
        #: The last tree version that was given.
        self.version = 0
        #: Numbers of trees that are not used.
        self.free_trees: list[int] = []
        #: The number of dead slots.
        self.dead = 0

    id = _column("id", "Array of int64 by slot: provider id; 0 for a dead slot.")
    high = _column("high", "Array of uint64 by slot: upper half of the uuid.")
    low = _column("low", "Array of uint64 by slot: lower half of the uuid.")
    generation = _column("generation", "Array of int64 by slot: generation of the provider.")
    tree = _column("tree", "Array of int32 by slot: number of its tree; -1 for a dead slot.")
    parent = _column("parent", "Array of int32 by slot: slot of the parent; -1 for a root.")
    subtree_end = _column("subtree_end", "Array of int32 by slot: slot after its subtree.")
    trait_set = _column("trait_set", "Array of int32 by slot: number in ``trait_sets``.")
    aggregate_set = _column(
        "aggregate_set", "Array of int32 by slot: number in ``aggregate_sets``.")

    @property
    def root(self) -> np.ndarray:
        """Array of int32 by tree number: slot of the root; -1 for a number that is not used."""
        return self.trees["root"]

    @property
    def tree_version(self) -> np.ndarray:
        """Array of int64 by tree number: changes with every change of a provider of the tree."""
        return self.trees["version"]

    def __len__(self) -> int:
        """Return the number of providers."""
        return len(self.by_id)

    @property
    def size(self) -> int:
        """The number of inventories."""
        return sum(table.living for table in self.inventories.values())

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        parts: list[Any] = [
            self.slots, self.names, self.trees, self.by_id, self.by_uuid, self.trait_sets,
            self.aggregate_sets, *self.inventories.values(), *self.known_anchors.values()]
        return (sum(part.nbytes for part in parts)
                + sys.getsizeof(self.known_anchors) + sys.getsizeof(self.sharing_ids)
                + sys.getsizeof(self.traits) + sum(map(sys.getsizeof, self.traits)))

    # -- one provider, or some --------------------------------------------------------------

    def slot_of(self, provider_id: int) -> int | None:
        """Return the slot of a provider; None if it is unknown."""
        row = self.by_id.row_of(provider_id)
        return None if row is None else int(self.by_id["slot"][row])

    def slots_of(self, provider_ids: Iterable[int]) -> np.ndarray:
        """Return the slots of providers, array of int32 in their order; -1 for unknown ones."""
        ids = np.asarray(
            provider_ids if isinstance(provider_ids, np.ndarray) else list(provider_ids), np.int64)
        rows, there = self.by_id.rows_of(ids)
        if not len(self.by_id):
            return np.full(len(ids), -1, np.int32)
        return np.where(there, self.by_id["slot"][rows], np.int32(-1))

    def slots_of_uuids(self, uuids: Collection[str]) -> dict[str, int]:
        """Return a dict of uuid to slot; unknown uuids are missing."""
        uuids = list(uuids)
        if not uuids:
            return {}
        slots = self.by_uuid.find(self.high, self.low, self.id, to_halves(uuids))
        return {uuid: slot for uuid, slot in zip(uuids, slots.tolist(), strict=True) if slot >= 0}

    def name_of(self, slot: int) -> str:
        """Return the name of a provider."""
        return self.names.get(int(self.slots["name_start"][slot]),
                              int(self.slots["name_length"][slot]))

    def uuids_of(self, slots: np.ndarray) -> list[str]:
        """Return the uuids of providers."""
        return from_halves(self.high[slots], self.low[slots])

    def page(self, after: int, limit: int | None = None,
             last: int | None = None) -> np.ndarray:
        """Return the slots of the next providers in the order of their ids.

        :param after: the id after which to begin
        :param limit: the maximum number of providers; None for all
        :param last: the last id, in place of a limit
        """
        ids = self.by_id.keys
        first = int(ids.searchsorted(after, side="right"))
        end = len(ids) if limit is None else first + limit
        if last is not None:
            end = int(ids.searchsorted(last, side="right"))
        return self.by_id["slot"][first:end]

    def inventory_of(self, slot: int, class_id: int) -> dict[str, int] | None:
        """Return a dict of capacity, used and units of an inventory; None for no inventory."""
        table = self.inventories.get(class_id)
        row = table.row_of(slot) if table is not None else None
        if table is None or row is None:
            return None
        return {name: int(table[name][row]) for name in VALUES if name != "reserved"}

    # -- sharing providers ------------------------------------------------------------------

    @property
    def sharing(self) -> np.ndarray:
        """Ascending array of int32: slots of the providers that share their inventories."""
        return np.sort(self.slots_of(self.sharing_ids))

    def anchors(self, slot: int) -> np.ndarray:
        """Return the trees that can use the inventories of a provider: ascending array of int32.

        These are its own, and for a sharing provider the tree of every provider that has an
        aggregate in common with it.
        """
        aggregates = self.aggregate_sets[self.aggregate_set[slot]]
        if not aggregates or int(self.id[slot]) not in self.sharing_ids:
            return self.tree[slot:slot + 1]
        if aggregates not in self.known_anchors:
            self._find_anchors()
        return self.known_anchors[aggregates]

    def _find_anchors(self):
        """Find the trees of the aggregates of all sharing providers that are not known."""
        members = np.flatnonzero(self.aggregate_set > EMPTY)
        members = members[np.argsort(self.aggregate_set[members], kind="stable")]
        numbers, first = np.unique(self.aggregate_set[members], return_index=True)
        of_set = dict(zip(numbers.tolist(), np.split(self.tree[members], first[1:]), strict=True))
        for number in np.unique(self.aggregate_set[self.sharing]).tolist():
            aggregates = self.aggregate_sets[number]
            if aggregates and aggregates not in self.known_anchors:
                common = np.flatnonzero(self.aggregate_sets.having_any(aggregates)).tolist()
                self.known_anchors[aggregates] = np.unique(np.concatenate([
                    of_set[each] for each in common if each in of_set]))

    def forget_anchors(self, aggregates: Collection[str]) -> None:
        """Forget the trees of these aggregates, whose members change."""
        for known in list(self.known_anchors):
            if not known.isdisjoint(aggregates):
                del self.known_anchors[known]
