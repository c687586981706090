# SPDX-License-Identifier: Apache-2.0
"""Write the store to a database of OpenStack Placement, as the way back.

An export compares and writes what differs: the first fills an empty database, and each later one
brings what has changed and removes what has gone. One that was interrupted is run again.
"""

import collections
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from placement_rpc import exception
from placement_rpc.db.placement import writing
from placement_rpc.moving import rows, stores
from placement_rpc.moving.compare import Difference, compare

#: Kinds to whose rows Placement's tables refer by foreign keys: removed last, in this order
_REMOVED_LAST = ("providers", "consumer_types", "traits", "resource_classes")
_NAMED = ("resource_classes", "traits", "consumer_types")


class Export:
    """One export.

    :param source: the store, a snapshot
    :param reading: returns a new snapshot of the database of Placement, as a context manager
    :param transaction: returns a transaction of that database, as a context manager
    :param writer: writes to it
    :param batch: int, rows that are written in one transaction
    :param advance: called with a kind and the number of its rows that were written
    :ivar written: :class:`collections.Counter` of (kind, ``added``, ``changed`` or ``gone``)
    """

    def __init__(self, source: stores.Store,
                 reading: Callable[[], AbstractContextManager[stores.Store]],
                 transaction: Callable[[], AbstractContextManager[Any]],
                 writer: writing.Writer, batch: int = 1000,
                 advance: Callable[[str, int], None] = lambda kind, number: None) -> None:
        self._source, self._reading = source, reading
        self._transaction, self._writer = transaction, writer
        self._batch, self._advance = batch, advance
        self.written: collections.Counter = collections.Counter()
        # Providers whose parents were not there when they were to be added.
        self._waiting = 0

    def run(self) -> None:
        """Make the database of Placement equal to the store.

        :raises NotExportable: if a row cannot be written there
        """
        with self._transaction() as tx:
            self._writer.prepare(tx)
            filled = self._writer.has_providers(tx)
        for kind in rows.KINDS:
            if kind == "providers":
                self._write_providers(filled)
            elif kind in _NAMED:
                self._each(kind, self._add_names, ("added", "gone"))
            else:
                self._each(kind, self._replace, ("added", "changed", "gone"))
        for kind in _REMOVED_LAST:
            if self.written[kind, "gone"]:
                self._each(kind, self._remove)

    def differences(self, kind: str) -> Iterator[Difference]:
        """Yield the differences of a kind between the store and the database of Placement."""
        with self._reading() as target:
            yield from compare(kind, self._source.rows(kind), target.rows(kind))

    def _each(self, kind, write, counted=()):
        """Write the differences of a kind, batch by batch.

        :param write: method of a transaction, the kind and a list of differences
        :param counted: which of ``added``, ``changed`` and ``gone`` it writes
        """
        differences = self.differences(kind)
        while batch := list(itertools.islice(differences, self._batch)):
            self._attempt(kind, batch, write, counted)

    def _attempt(self, kind, batch, write, counted):
        """Write a batch in a transaction; of one that is refused, find the row to name."""
        try:
            with self._transaction() as tx:
                write(tx, kind, batch)
        except writing.Refused as error:
            if len(batch) == 1:
                raise exception.NotExportable(
                    kind=kind, key="/".join(batch[0].key), reason=error) from error
            for each in batch:
                self._attempt(kind, [each], write, counted)
            return
        done = collections.Counter(map(_what, batch))
        for what in counted:
            self.written[kind, what] += done[what]
            self._advance(kind, done[what])

    def _add_names(self, tx, kind, batch):
        self._writer.add_names(tx, kind, [each.source for each in batch if each.source])

    def _replace(self, tx, kind, batch):
        """Write rows that no other refers to: a changed one is removed and added."""
        if there := [each.key for each in batch if each.target]:
            getattr(self._writer, f"remove_{kind}")(tx, there)
        if added := [each.source for each in batch if each.source]:
            getattr(self._writer, f"add_{kind}")(tx, added)

    def _remove(self, tx, kind, batch):
        gone = [each.key for each in batch if not each.source]
        if kind in _NAMED:
            self._writer.remove_names(tx, kind, gone)
        else:
            self._writer.remove_providers(tx, gone)

    # -- providers ----------------------------------------------------------------------------

    def _write_providers(self, filled):
        """Write providers: names may have been exchanged, and children come before parents."""
        if filled:
            self._each("providers", self._make_room)
        waited, counted = None, ("added",)
        while waited is None or self._waiting:
            if self._waiting == waited:
                raise exception.NotExportable(
                    kind="providers", key=f"{waited} of them", reason="they belong to no root")
            waited, self._waiting = self._waiting, 0
            self._each("providers", self._add_providers, counted)
            counted = ()
        self._each("providers", self._set_providers, ("changed", "gone"))

    def _make_room(self, tx, _kind, batch):
        gone = [each.key[0] for each in batch if not each.source]
        renamed = [each.key[0] for each in batch if each.target and (
            not each.source or each.source.name != each.target.name)]
        if renamed:
            self._writer.free_names(tx, renamed)
        if gone:
            self._writer.detach(tx, gone)

    def _add_providers(self, tx, _kind, batch):
        new = [each.source for each in batch if not each.target]
        if new:
            self._waiting += self._writer.add_providers(tx, new)

    def _set_providers(self, tx, _kind, batch):
        if changed := [each.source for each in batch if each.source and each.target]:
            self._writer.set_providers(tx, changed)


def _what(difference):
    if not difference.source:
        return "gone"
    return "changed" if difference.target else "added"
