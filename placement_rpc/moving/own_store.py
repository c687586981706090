# SPDX-License-Identifier: Apache-2.0
"""A snapshot of this service's own store."""

import contextlib
import itertools
import operator
from collections.abc import Iterator

from placement_rpc.db import api as db
from placement_rpc.db.queries import moving
from placement_rpc.moving import rows
from placement_rpc.moving.stores import Report

_FIRST = operator.itemgetter(0)


@contextlib.contextmanager
def opened(database: db.Database) -> Iterator["OwnStore"]:
    """Open a snapshot of the store.

    :raises StoreUnavailable: if it cannot be read
    """
    with database.reader(snapshot=True) as tx:
        yield OwnStore(moving.Reader(tx))


class OwnStore:
    """A :class:`stores.Store`; use :func:`opened`.

    :param reader: :class:`moving.Reader`
    """

    def __init__(self, reader: moving.Reader):
        self._reader = reader
        self._names: dict[str, dict[int, str]] = {}

    def rows(self, kind: str, _report: Report | None = None) -> Iterator[rows.Row]:
        """Yield the rows of a kind, as :meth:`stores.Store.rows` says; there are no findings."""
        return self._named(kind) if kind in rows.STANDARD else getattr(self, f"_{kind}")()

    def sizes(self) -> dict[str, int]:
        """Return how many rows there are of the kinds that may have many."""
        return self._reader.sizes()

    def _named(self, kind):
        cls, standard = rows.KINDS[kind], rows.STANDARD[kind]
        yield from sorted(cls(name, *times) for _, name, *times in getattr(self._reader, kind)()
                          if name not in standard)

    def _names_of(self, kind):
        if kind not in self._names:
            self._names[kind] = {id_: name for id_, name, *_ in getattr(self._reader, kind)()}
        return self._names[kind]

    def _providers(self):
        return map(rows.ProviderRow._make, self._reader.providers())

    def _inventories(self):
        names = self._names_of("resource_classes")
        return _grouped(self._reader.inventories(), lambda row: rows.InventoryRow(
            row[0], names[row[1]], *row[2:]))

    def _provider_traits(self):
        names = self._names_of("traits")
        return _grouped(self._reader.provider_traits(), lambda row: rows.ProviderTraitRow(
            row[0], names[row[1]]))

    def _provider_aggregates(self):
        return _grouped(self._reader.provider_aggregates(), lambda row: (
            rows.ProviderAggregateRow(*row)))

    def _consumers(self):
        names = self._names_of("consumer_types")
        for uuid, project, user, type_id, *others in self._reader.consumers():
            yield rows.ConsumerRow(
                uuid, project, user, None if type_id is None else names[type_id], *others)

    def _allocations(self):
        names = self._names_of("resource_classes")
        return _grouped(self._reader.allocations(), lambda row: rows.AllocationRow(
            row[0], row[1], names[row[2]], *row[3:]))


def _grouped(read, make):
    """Yield rows in the order of their keys, given those in the order of their first column."""
    for _, group in itertools.groupby(read, _FIRST):
        yield from sorted(map(make, group), key=lambda row: row.key)
