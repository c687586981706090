# SPDX-License-Identifier: Apache-2.0
"""The store as a database of OpenStack Placement can hold it."""

import contextlib
from collections.abc import Iterator
from typing import Any

from placement_rpc.db import api as db
from placement_rpc.db import urls
from placement_rpc.db.placement import writing
from placement_rpc.moving import own_store, repairs, rows, stores
from placement_rpc.objects import fields

# Digits that a column of the type FLOAT returns.
_DIGITS = 6


@contextlib.contextmanager
def opened(database: db.Database, url: str) -> Iterator["Fitted"]:
    """Open a snapshot of the store, as a database of Placement can hold it.

    :param url: SQLAlchemy URL of that database
    :raises StoreUnavailable: if the store cannot be read
    """
    with own_store.opened(database) as store:
        yield Fitted(store, writing.is_single_precision(urls.parsed(url)))


class Fitted:
    """A :class:`stores.Store` whose rows a database of Placement can hold.

    :param store: the store that is fitted
    :param is_single: whether the database holds ratios in single precision, as MySQL does
    """

    def __init__(self, store: stores.Store, is_single: bool) -> None:
        self._store, self._is_single = store, is_single

    def rows(self, kind: str, report: stores.Report | None = None) -> Iterator[rows.Row]:
        """Yield the rows of a kind, as :meth:`stores.Store.rows` says."""
        read: Iterator[Any] = self._store.rows(kind, report)
        if kind in ("providers", "consumers"):
            least = repairs.least_generation(kind)
            return (row if least <= row.generation <= fields.MAX_INT else
                    self._with_generation(kind, row, least, report) for row in read)
        if kind == "inventories" and self._is_single:
            return (self._with_ratio(row, report) for row in read)
        return read

    @staticmethod
    def _with_generation(kind, row, least, report):
        generation = min(max(row.generation, least), fields.MAX_INT)
        if report:
            report(stores.Finding("generation_changed", kind, row.key,
                                  f"generation {generation} instead of {row.generation}"))
        return row._replace(generation=generation)

    @staticmethod
    def _with_ratio(row, report):
        ratio = float(f"{row.allocation_ratio:.{_DIGITS}g}")
        if ratio == row.allocation_ratio:
            return row
        if report:
            report(stores.Finding(
                "values_changed", "inventories", row.key,
                f"allocation_ratio {ratio} instead of {row.allocation_ratio}"))
        return row._replace(allocation_ratio=ratio)
