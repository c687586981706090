# SPDX-License-Identifier: Apache-2.0
"""Write the store to a database of OpenStack Placement, as the way back.

An export compares and writes what differs: the first fills an empty database, and each later one
brings what has changed and removes what has gone. One that was interrupted is run again.
"""

import collections
import contextlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from placement_rpc import exception
from placement_rpc.db import api as db
from placement_rpc.db.placement import connection, export_state, schema, writing
from placement_rpc.moving import fitting, placement_store, rows, stores
from placement_rpc.moving.compare import Difference, compare
from placement_rpc.moving.progress import Advance, Counters, Counts, counted, ignored
from placement_rpc.objects import class_names

#: Rows that one transaction writes.
BATCH = 1000

# Kinds to whose rows Placement's tables refer by foreign keys: removed last, in this order.
_REMOVED_LAST = ("providers", "consumer_types", "traits", "resource_classes")
_NAMED = ("resource_classes", "traits", "consumer_types")
_ALL = ("created", "changed", "deleted")


def export(database: db.Database, url: str, batch: int = BATCH, finish: bool = False,
           report: stores.Report | None = None, advance: Advance = ignored,
           ) -> dict[str, Counts]:
    """Make a database of Placement equal to the store.

    :param url: SQLAlchemy URL
    :param batch: rows that one transaction writes
    :param finish: whether it is the last export to this database
    :param report: called for each row that the database cannot hold as the store has it
    :param advance: called as rows of the store are read
    :returns: dict of kind to what was done
    :raises NotPlacementDatabase: if it is not one, or not of the newest revision that is known
    :raises ExportRefused: if anything else has written to it
    :raises NotExportable: if it cannot hold a row
    """
    with connection.engine(url) as engine, contextlib.closing(
            writing.Database(engine)) as target, fitting.opened(database, url) as source:
        with target.transaction() as tx:
            _check_revision(tx)
            run = export_state.begin(tx)
        target.begin()

        @contextlib.contextmanager
        def transaction():
            with target.transaction() as tx:
                export_state.begin_batch(tx, run)
                yield tx

        done = Export(
            source, lambda: placement_store.opened(url), transaction,
            writing.Writer(_standard_ids()), batch, report, advance)
        done.run()
        done.verify()
        with transaction() as tx:
            export_state.end(tx)
            if finish:
                export_state.forget(tx)
    return done.counts


def _check_revision(tx):
    found = connection.check_revision(tx)
    if found != schema.NEWEST:
        raise exception.NotPlacementDatabase(
            reason=f"its schema is at revision {found}, and an export needs {schema.NEWEST}: run "
                   "'placement-manage db sync' of a newer release")


def _standard_ids():
    return {name: id_ for name, id_ in class_names.STANDARD_IDS.items()
            if id_ < class_names.FIRST_CUSTOM_ID}


class Export:
    """One export.

    :param source: the store, a snapshot, as the database can hold it
    :param reading: returns a new snapshot of the database of Placement, as a context manager
    :param transaction: returns a transaction of that database, as a context manager
    :param writer: writes to it
    :param batch: rows that one transaction writes
    :param report: as for :func:`export`
    :param advance: as for :func:`export`
    """

    def __init__(self, source: stores.Store,
                 reading: Callable[[], AbstractContextManager[stores.Store]],
                 transaction: Callable[[], AbstractContextManager[Any]],
                 writer: writing.Writer, batch: int, report: stores.Report | None,
                 advance: Advance) -> None:
        self._source, self._reading = source, reading
        self._transaction, self._writer = transaction, writer
        self._batch, self._report, self._advance = batch, report, advance
        self._counts = Counters()
        # Providers whose parents were not there when they were to be added.
        self._waiting = 0

    @property
    def counts(self) -> dict[str, Counts]:
        """What was read and done so far: dict of kind to :class:`Counts`"""
        return self._counts.counts()

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
                self._each(kind, self._add_names, ("created", "deleted"))
            else:
                self._each(kind, self._replace, _ALL)
        for kind in _REMOVED_LAST:
            if self._counts[kind]["deleted"]:
                self._each(kind, self._remove)

    def verify(self) -> None:
        """Compare the rows of the kinds that were written.

        :raises ExportRefused: if there are differences
        """
        for kind, counts in self.counts.items():
            if any(counts[1:]):
                for each in self._differences(kind):
                    raise exception.ExportRefused(
                        reason=f"the {kind} {'/'.join(each.key)} differ after the export; does "
                               "anything else write to it?")

    def _differences(self, kind: str) -> Iterator[Difference]:
        """Yield the differences of a kind between the store and the database of Placement.

        The first time, its rows are counted, and what they cannot be there is reported.
        """
        is_first = not self._counts[kind]["read"]
        with self._reading() as target:
            source = counted(
                kind, self._source.rows(kind, self._report), self._counts[kind], self._advance
            ) if is_first else self._source.rows(kind)
            yield from compare(kind, source, target.rows(kind))

    def _each(self, kind, write, counted=()):
        """Write the differences of a kind, batch by batch.

        :param write: method of a transaction, the kind and a list of differences
        :param counted: which of ``created``, ``changed`` and ``deleted`` it writes
        """
        differences = self._differences(kind)
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
        done = collections.Counter(each.change for each in batch)
        for what in counted:
            self._counts[kind][what] += done[what]

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
        waited, counted = None, ("created",)
        while waited is None or self._waiting:
            if self._waiting == waited:
                raise exception.NotExportable(
                    kind="providers", key=f"{waited} of them", reason="they belong to no root")
            waited, self._waiting = self._waiting, 0
            self._each("providers", self._add_providers, counted)
            counted = ()
        self._each("providers", self._set_providers, ("changed", "deleted"))

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
