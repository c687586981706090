# SPDX-License-Identifier: Apache-2.0
"""The candidate index: providers, their inventories and their aggregates, in columns.

Nothing here accesses a database: :mod:`placement_rpc.candidates.feed` brings an index up to date,
and :mod:`placement_rpc.candidates.matching` searches it. An index is not safe for threads; its
owner locks it (:class:`placement_rpc.candidates.live_index.LiveIndex`).
"""

import sys
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from placement_rpc.candidates.sorted_table import SortedTable
from placement_rpc.candidates.uuid_columns import from_halves, to_halves

_PROVIDER = {"generation": np.int64, "high": np.uint64, "low": np.uint64, "name": object}
_INVENTORY = {"capacity": np.int64, "used": np.int64, "min_unit": np.int32,
              "max_unit": np.int32, "step_size": np.int32}
_VALUES = tuple(_INVENTORY)
_NO_IDS = np.empty(0, np.int64)


class CandidateIndex:
    """The fleet in memory.

    ``class_ids`` is a dict of the name of every resource class to its id, ``providers`` a table
    by provider id, ``inventories`` a dict of class id to a table by provider id, ``aggregates`` a
    dict of aggregate uuid to an ascending array of provider ids.
    """

    def __init__(self) -> None:
        self.class_ids: dict[str, int] = {}
        self.providers = SortedTable(**_PROVIDER)
        self.inventories: dict[int, SortedTable] = {}
        self.aggregates: dict[str, np.ndarray] = {}
        self._aggregates_of: dict[int, frozenset[str]] = {}

    # -- changes ------------------------------------------------------------------------

    def put_providers(self, rows: Sequence[tuple]) -> None:
        """Insert or replace providers.

        :param rows: id, uuid, name and generation of each
        """
        if not rows:
            return
        ids, uuids, names, generations = zip(*rows, strict=True)
        high, low = to_halves(list(uuids))
        named = np.empty(len(names), object)
        named[:] = names
        self.providers.put(np.array(ids, np.int64), generation=np.array(generations, np.int64),
                           high=high, low=low, name=named)

    def put_inventories(self, rows: Sequence[tuple]) -> None:
        """Insert or replace inventories.

        :param rows: provider id, class id, capacity, used, min_unit, max_unit and step_size of
            each
        """
        by_class: dict[int, list] = {}
        for row in rows:
            by_class.setdefault(row[1], []).append(row)
        for class_id, of_class in by_class.items():
            ids, _, *values = zip(*of_class, strict=True)
            self.inventories.setdefault(class_id, SortedTable(**_INVENTORY)).put(
                np.array(ids, np.int64), **{
                    name: np.array(column, _INVENTORY[name])
                    for name, column in zip(_VALUES, values, strict=True)})

    def put_aggregates(self, rows: Sequence[tuple], provider_ids: Collection[int]) -> None:
        """Replace the aggregates of providers.

        :param rows: aggregate uuid and provider id of each membership
        :param provider_ids: ids of all providers whose memberships the rows are
        """
        now: dict[int, set] = {}
        for aggregate, provider_id in rows:
            now.setdefault(provider_id, set()).add(aggregate)
        joined: dict[str, list] = {}
        left: dict[str, list] = {}
        for provider_id in provider_ids:
            before = self._aggregates_of.pop(provider_id, frozenset())
            after = frozenset(now.get(provider_id, ()))
            if after:
                self._aggregates_of[provider_id] = after
            for changes, uuids in ((joined, after - before), (left, before - after)):
                for aggregate in uuids:
                    changes.setdefault(aggregate, []).append(provider_id)
        for aggregate, ids in joined.items():
            self.aggregates[aggregate] = np.union1d(
                self.aggregates.get(aggregate, _NO_IDS), np.array(ids, np.int64))
        for aggregate, ids in left.items():
            self._remove_from_aggregate(aggregate, ids)

    def _remove_from_aggregate(self, aggregate, provider_ids):
        remaining = np.setdiff1d(self.aggregates[aggregate], provider_ids)
        if len(remaining):
            self.aggregates[aggregate] = remaining
        else:
            del self.aggregates[aggregate]

    def remove(self, provider_ids: Collection[int]) -> None:
        """Remove providers with all that belongs to them; missing ones are ignored."""
        self.providers.remove(np.array(sorted(provider_ids), np.int64))
        self.keep_classes(provider_ids, {})
        self.put_aggregates((), provider_ids)

    def keep_classes(self, provider_ids: Collection[int],
                     classes: Mapping[int, Collection[int]]) -> None:
        """Remove the inventories of providers, except those of some classes.

        :param classes: provider id to the ids of the classes to keep
        """
        for class_id in list(self.inventories):
            table = self.inventories[class_id]
            table.remove(np.array(sorted(
                each for each in provider_ids if class_id not in classes.get(each, ())), np.int64))
            if not len(table):
                del self.inventories[class_id]

    def set_used(self, provider_id: int, before: int, after: int, used: Sequence[int]) -> bool:
        """Set the used amounts of a provider after a transaction.

        :param before: the generation of the provider that the transaction read
        :param after: the generation that it wrote
        :param used: class ids, each followed by how much of the class is used now
        :returns: False if the index is not at the generation that the transaction read or lacks
            an inventory, so that the provider has to be read again
        """
        row = self.providers.row_of(provider_id)
        if row is None:
            return False
        known = int(self.providers["generation"][row])
        if known >= after:
            return True
        if known != before:
            return False
        for class_id, amount in zip(used[::2], used[1::2], strict=True):
            table = self.inventories.get(class_id)
            at = table.row_of(provider_id) if table is not None else None
            if table is None or at is None:
                return False
            table["used"][at] = amount
        self.providers["generation"][row] = after
        return True

    # -- reads --------------------------------------------------------------------------

    def ids_of(self, uuids: Collection[str]) -> set[int]:
        """Return the ids of the providers of these uuids; unknown uuids are ignored."""
        if not uuids or not len(self.providers):
            return set()
        high, low = to_halves(list(uuids))
        rows = np.flatnonzero(np.isin(self.providers["high"], high))
        rows = rows[np.isin(self.providers["low"][rows], low)]
        return {id_ for id_, each in zip(self.providers.keys[rows].tolist(), from_halves(
            self.providers["high"][rows], self.providers["low"][rows]), strict=True)
            if each in uuids}

    def has_duplicates(self) -> bool:
        """Return whether two providers have the same uuid."""
        halves = np.stack((self.providers["high"], self.providers["low"]), axis=1)
        return len(np.unique(halves, axis=0)) < len(halves)

    def page(self, after: int, limit: int | None = None,
             last: int | None = None) -> list[tuple[int, str, str, int]]:
        """Return id, uuid, name and generation of the next providers in the order of their ids.

        :param after: the id after which to begin
        :param limit: the maximum number of providers; None for all
        :param last: the last id, in place of a limit
        """
        first = int(self.providers.keys.searchsorted(after, side="right"))
        end = len(self.providers) if limit is None else first + limit
        if last is not None:
            end = int(self.providers.keys.searchsorted(last, side="right"))
        rows = slice(first, end)
        return list(zip(
            self.providers.keys[rows].tolist(),
            from_halves(self.providers["high"][rows], self.providers["low"][rows]),
            *(self.providers[name][rows].tolist() for name in ("name", "generation")),
            strict=True))

    def inventories_between(self, first: int, last: int) -> dict[int, dict[int, tuple]]:
        """Return the inventories of the providers from the first id to the last.

        :returns: dict of provider id to dict of class id to a tuple of capacity, used, min_unit,
            max_unit and step_size
        """
        found: dict[int, dict[int, tuple]] = {}
        for class_id, table in self.inventories.items():
            rows = table.between(first, last)
            for provider_id, *values in zip(table.keys[rows].tolist(), *(
                    table[name][rows].tolist() for name in _VALUES), strict=True):
                found.setdefault(provider_id, {})[class_id] = tuple(values)
        return found

    def inventory_of(self, provider_id: int, class_id: int) -> dict[str, int] | None:
        """Return capacity, used, min_unit, max_unit and step_size; None for no inventory."""
        table = self.inventories.get(class_id)
        row = table.row_of(provider_id) if table is not None else None
        if table is None or row is None:
            return None
        return {name: int(table[name][row]) for name in _VALUES}

    def aggregates_of(self, provider_id: int) -> frozenset[str]:
        """Return the uuids of the aggregates of a provider."""
        return self._aggregates_of.get(provider_id, frozenset())

    @property
    def size(self) -> int:
        """The number of inventories."""
        return sum(map(len, self.inventories.values()))

    @property
    def nbytes(self) -> int:
        """Bytes of memory, without the sets of aggregates of each provider."""
        return (self.providers.nbytes + sum(map(sys.getsizeof, self.providers["name"]))
                + sum(table.nbytes for table in self.inventories.values())
                + sum(ids.nbytes for ids in self.aggregates.values()))
