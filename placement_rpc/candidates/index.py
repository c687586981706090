# SPDX-License-Identifier: Apache-2.0
"""Providers, what is free of them, and their aggregates, in columns; and which of them fit.

Nothing here talks to a database: :mod:`placement_rpc.candidates.feed` brings an index up
to date. It is not safe for threads; whoever holds one locks it.
"""

import sys

import numpy as np

from placement_rpc.candidates import ordering
from placement_rpc.candidates.query import Candidate
from placement_rpc.candidates.sorted_table import SortedTable

# Providers that are looked at by chance before all are, and how many for each that is wanted.
_DRAWN = 4
_LEAST_DRAWN = 128
_PROVIDER = {"generation": np.int64, "high": np.uint64, "low": np.uint64, "name": object}
_INVENTORY = {"capacity": np.int64, "used": np.int64, "min_unit": np.int32,
              "max_unit": np.int32, "step_size": np.int32}
_RULES = tuple(_INVENTORY)


def split(uuids):
    """:param uuids: list of str; :returns: array of their upper and one of their lower halves"""
    digits = "".join(uuids).replace("-", "")
    halves = np.frombuffer(bytes.fromhex(digits), ">u8").reshape(-1, 2).astype(np.uint64)
    return halves[:, 0], halves[:, 1]


def joined(high, low):
    """:param high: :param low: arrays of halves; :returns: list of str, the uuids"""
    digits = np.stack((high, low), axis=1).astype(">u8").tobytes().hex()
    return [f"{digits[at:at + 8]}-{digits[at + 8:at + 12]}-{digits[at + 12:at + 16]}-"
            f"{digits[at + 16:at + 20]}-{digits[at + 20:at + 32]}"
            for at in range(0, len(digits), 32)]


class CandidateIndex:
    """The fleet in memory."""

    def __init__(self):
        self.class_ids = {}
        self.providers = SortedTable(**_PROVIDER)
        # By class id; and by aggregate uuid the ids of its providers, ascending.
        self.inventories = {}
        self.aggregates = {}
        self._memberships = {}
        self._random = np.random.default_rng()

    # -- bringing it up to date ---------------------------------------------------------

    def put_providers(self, rows):
        """:param rows: list of rows of id, uuid, name, generation"""
        if not rows:
            return
        ids, uuids, names, generations = zip(*rows, strict=True)
        high, low = split(uuids)
        named = np.empty(len(names), object)
        named[:] = names
        self.providers.put(np.array(ids, np.int64), generation=np.array(generations, np.int64),
                           high=high, low=low, name=named)

    def put_inventories(self, rows):
        """:param rows: list of rows of provider id, class id, capacity, used, min_unit, max_unit,
        step_size"""
        by_class = {}
        for row in rows:
            by_class.setdefault(row[1], []).append(row)
        for class_id, of_class in by_class.items():
            ids, _, *values = zip(*of_class, strict=True)
            self.inventories.setdefault(class_id, SortedTable(**_INVENTORY)).put(
                np.array(ids, np.int64), **{
                    name: np.array(column, _INVENTORY[name])
                    for name, column in zip(_RULES, values, strict=True)})

    def put_members(self, rows, provider_ids):
        """Say of providers which aggregates they are in, and no others.

        :param rows: list of rows of aggregate uuid and provider id
        :param provider_ids: collection of the ids of the providers that the rows are about
        """
        now = {}
        for aggregate, provider_id in rows:
            now.setdefault(provider_id, set()).add(aggregate)
        joined_by, left_by = {}, {}
        for provider_id in provider_ids:
            before = self._memberships.pop(provider_id, frozenset())
            after = frozenset(now.get(provider_id, ()))
            if after:
                self._memberships[provider_id] = after
            for changes, uuids in ((joined_by, after - before), (left_by, before - after)):
                for aggregate in uuids:
                    changes.setdefault(aggregate, []).append(provider_id)
        nobody = np.empty(0, np.int64)
        for aggregate, ids in joined_by.items():
            self.aggregates[aggregate] = np.union1d(
                self.aggregates.get(aggregate, nobody), np.array(ids, np.int64))
        for aggregate, ids in left_by.items():
            left = np.setdiff1d(self.aggregates[aggregate], ids)
            if len(left):
                self.aggregates[aggregate] = left
            else:
                del self.aggregates[aggregate]

    def remove(self, provider_ids):
        """Forget providers."""
        ids = np.array(sorted(provider_ids), np.int64)
        self.providers.remove(ids)
        self.keep_classes(provider_ids, {})
        self.put_members((), provider_ids)

    def keep_classes(self, provider_ids, classes):
        """Forget the inventories of providers but for some.

        :param classes: dict of provider id to the class ids that it has
        """
        for class_id in list(self.inventories):
            columns = self.inventories[class_id]
            columns.remove(np.array(sorted(
                each for each in provider_ids if class_id not in classes.get(each, ())), np.int64))
            if not len(columns):
                del self.inventories[class_id]

    def use(self, provider_id, before, after, used):
        """Apply what a transaction left of a provider.

        :param before: int, the provider's generation that it read
        :param after: int, the generation that it left
        :param used: list of class ids, each followed by how much is used now
        :returns: bool; False where the index does not know what it stands on, and the provider
            has to be read again
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
            columns = self.inventories.get(class_id)
            at = None if columns is None else columns.row_of(provider_id)
            if at is None:
                return False
            columns["used"][at] = amount
        self.providers["generation"][row] = after
        return True

    # -- looking into it ----------------------------------------------------------------

    def ids_of(self, uuids):
        """:returns: set of int, the row ids of the providers of these uuids

        :param uuids: collection of str
        """
        if not uuids or not len(self.providers):
            return set()
        high, low = split(list(uuids))
        rows = np.flatnonzero(np.isin(self.providers["high"], high))
        rows = rows[np.isin(self.providers["low"][rows], low)]
        return {id_ for id_, each in zip(self.providers.keys[rows].tolist(), joined(
            self.providers["high"][rows], self.providers["low"][rows]), strict=True)
            if each in uuids}

    def has_doubles(self):
        """:returns: bool, whether a uuid is there twice"""
        halves = np.stack((self.providers["high"], self.providers["low"]), axis=1)
        return len(np.unique(halves, axis=0)) < len(halves)

    def find(self, wanted, pledged=None):
        """The providers that fit.

        :param wanted: :class:`Amounts`
        :param pledged: dict of provider id to dict of class id to an amount that counts as used
        :returns: list of :class:`Candidate`, in the order that is wanted
        """
        if not all(class_id in self.inventories for class_id in wanted.amounts):
            return []
        # The rarest class first: the fewer are left to look at for the next.
        columns = sorted(((class_id, self.inventories[class_id], amount)
                          for class_id, amount in wanted.amounts.items()),
                         key=lambda each: len(each[1]))
        among = self._among(wanted, columns[0][1].keys)
        ids = self._drawn(among, columns, wanted, pledged)
        if ids is None:
            ids = self._fitting(among, columns, pledged)
            ids = ids[ordering.choose(
                len(ids), wanted.order, wanted.limit, lambda: self._left(ids, columns),
                self._random)]
        return self._candidates(ids, wanted.amounts)

    def _among(self, wanted, ids):
        """:returns: array of those of the provider ids whose aggregates are right"""
        nobody = np.empty(0, np.int64)
        for uuids in wanted.member_of:
            inside = [self.aggregates[each] for each in uuids if each in self.aggregates]
            ids = np.intersect1d(ids, np.concatenate(inside) if inside else nobody)
        outside = [self.aggregates[each] for each in wanted.not_member_of
                   if each in self.aggregates]
        return np.setdiff1d(ids, np.concatenate(outside)) if outside else ids

    def _drawn(self, among, columns, wanted, pledged):
        """Enough of those that fit, found by drawing lots: a share of them as random as of all.

        :returns: array of ids; None where too few were found and all have to be looked at
        """
        limit = wanted.limit
        if wanted.order != ordering.RANDOM or limit is None:
            return None
        drawn = max(_LEAST_DRAWN, _DRAWN * limit)
        if drawn * 2 > len(among):
            return None
        ids = self._fitting(
            among[np.sort(self._random.choice(len(among), drawn, replace=False))], columns,
            pledged)
        return self._random.permutation(ids)[:limit] if len(ids) >= limit else None

    @staticmethod
    def _fitting(ids, columns, pledged):
        for _, inventories, amount in columns:
            ids = ids[_fits(inventories, ids, amount)]
        if not pledged:
            return ids
        taken = np.fromiter(pledged, np.int64, len(pledged))
        full = [each for each in ids[np.isin(ids, taken)].tolist() if not all(
            _has_room(inventories, each, amount + pledged[each].get(class_id, 0))
            for class_id, inventories, amount in columns)]
        return np.setdiff1d(ids, full) if full else ids

    @staticmethod
    def _left(ids, columns):
        return ordering.room_left(
            (inventories["capacity"][rows], inventories["used"][rows], amount)
            for _, inventories, amount in columns for rows, _ in (_rows(inventories, ids),))

    def _candidates(self, ids, class_ids):
        rows = self.providers.rows_of(ids)[0]
        uuids = joined(self.providers["high"][rows], self.providers["low"][rows])
        names, generations = (
            self.providers[name][rows].tolist() for name in ("name", "generation"))
        free = {}
        for class_id in class_ids:
            columns = self.inventories[class_id]
            at = columns.rows_of(ids)[0]
            free[class_id] = (columns["capacity"][at] - columns["used"][at]).tolist()
        return [Candidate(id_, uuids[at], names[at], generations[at],
                          {class_id: amounts[at] for class_id, amounts in free.items()})
                for at, id_ in enumerate(ids.tolist())]

    def page(self, after, limit=None, last=None):
        """:returns: list of rows of id, uuid, name, generation: the next providers by their ids

        :param after: int, the id after which to begin
        :param limit: int, how many at the most
        :param last: int, the last id
        """
        first = int(self.providers.keys.searchsorted(after, side="right"))
        end = len(self.providers) if limit is None else first + limit
        if last is not None:
            end = int(self.providers.keys.searchsorted(last, side="right"))
        uuids = joined(self.providers["high"][first:end], self.providers["low"][first:end])
        return list(zip(
            self.providers.keys[first:end].tolist(), uuids,
            *(self.providers[name][first:end].tolist() for name in ("name", "generation")),
            strict=True))

    def inventories_between(self, first, last):
        """:returns: dict of provider id to dict of class id to a tuple of capacity, used,
        min_unit, max_unit, step_size, of the providers from the first id to the last"""
        found = {}
        for class_id, columns in self.inventories.items():
            begin = int(columns.keys.searchsorted(first))
            end = int(columns.keys.searchsorted(last, side="right"))
            if begin == end:
                continue
            for provider_id, *values in zip(columns.keys[begin:end].tolist(), *(
                    columns[name][begin:end].tolist() for name in _RULES), strict=True):
                found.setdefault(provider_id, {})[class_id] = tuple(values)
        return found

    def inventory_of(self, provider_id, class_id):
        """:returns: dict of capacity, used, min_unit, max_unit, step_size; None for none"""
        columns = self.inventories.get(class_id)
        row = None if columns is None else columns.row_of(provider_id)
        return None if row is None else {name: int(columns[name][row]) for name in _RULES}

    def aggregates_of(self, provider_id):
        """:returns: frozenset of str, uuids"""
        return self._memberships.get(provider_id, frozenset())

    @property
    def size(self):
        """int, of how many providers' classes it knows"""
        return sum(map(len, self.inventories.values()))

    @property
    def nbytes(self):
        """int, bytes of memory, but for the bookkeeping of aggregates"""
        return (self.providers.nbytes + sum(map(sys.getsizeof, self.providers["name"]))
                + sum(columns.nbytes for columns in self.inventories.values())
                + sum(ids.nbytes for ids in self.aggregates.values()))


def _rows(inventories, ids):
    """As ``inventories.rows_of``, and a slice where it has these very providers."""
    if len(ids) == len(inventories) and np.array_equal(ids, inventories.keys):
        return slice(None), True
    return inventories.rows_of(ids)


def _fits(inventories, ids, amount):
    """:returns: array of bool, whether each provider has so much free (DESIGN rule 1)"""
    rows, fits = _rows(inventories, ids)
    fits = fits & (inventories["capacity"][rows] - inventories["used"][rows] >= amount)
    fits &= inventories["min_unit"][rows] <= amount
    fits &= inventories["max_unit"][rows] >= amount
    steps = inventories["step_size"][rows]
    stepped = np.flatnonzero(fits & (steps != 1))
    fits[stepped] = amount % steps[stepped] == 0
    return fits


def _has_room(inventories, provider_id, amount):
    row = inventories.row_of(provider_id)
    return inventories["capacity"][row] - inventories["used"][row] >= amount
