# SPDX-License-Identifier: Apache-2.0
"""Make this store equal to another one, in batches.

A pass compares the rows of each kind, in the order of dependency, and writes those that are
missing or differ. Rows that the other store no longer has are deleted at the end, in the reverse
order; their keys wait in temporary files. So do the parents and roots of providers, since a parent
may come after its child. Memory does not depend on the number of rows.

Each batch is one transaction, after which the amounts that are used agree with the allocations. A
pass that is interrupted leaves a store between the two; the next pass finds what is left to do by
comparing again.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from placement_rpc.db.api import Connection, Database
from placement_rpc.db.queries import moving_writes
from placement_rpc.moving import hold, rows
from placement_rpc.moving.compare import Difference, compare
from placement_rpc.moving.progress import Advance, Counters, Counts, counted, ignored
from placement_rpc.moving.stores import Report, Store
from placement_rpc.objects import class_names
from placement_rpc.objects.inventory import capacity_of
from placement_rpc.spool import Spool

#: Rows that one transaction writes.
BATCH = 1000


class _Kind(NamedTuple):
    """How rows of a kind are written.

    :param put: callable of the transaction, the rows to insert and those to update
    :param delete: callable of the transaction and keys
    """

    put: Callable
    delete: Callable


class Pass:
    """One pass of an import.

    :param source: a snapshot of the store whose rows are brought over
    :param target: a snapshot of this store, taken after :func:`hold.begin_pass`
    :param report: called for each finding of the source
    :param advance: called as rows of the source are read
    """

    def __init__(self, source: Store, target: Store, report: Report | None = None,
                 advance: Advance = ignored):
        self._source, self._target = source, target
        self._report, self._advance = report, advance
        self._counts = Counters()

    @property
    def counts(self) -> dict[str, Counts]:
        """What was read and done so far: dict of kind to :class:`Counts`"""
        return self._counts.counts()

    def compare(self) -> None:
        """Count what would be done, and change nothing."""
        for kind in rows.KINDS:
            for each in self.differences(kind):
                self.count(each)

    def run(self, database: Database, pass_id: str, batch: int = BATCH) -> None:
        """Make this store equal to the source.

        :param pass_id: as :func:`hold.begin_pass` returned it
        :param batch: rows that one transaction writes
        :raises ImportOvertaken: if a later pass has begun
        """
        _Writing(self, database, pass_id, batch).run()

    def differences(self, kind: str) -> Iterator[Difference]:
        """Yield the differences of a kind."""
        return compare(kind, counted(
            kind, self._source.rows(kind, self._report), self._counts[kind], self._advance),
            self._target.rows(kind))

    def count(self, each: Difference) -> None:
        """Count what is done about a difference."""
        self._counts[each.kind][each.change] += 1


class _Writing:
    """The writing part of a pass."""

    def __init__(self, of, database, pass_id, batch):
        self._pass = of
        self._database, self._pass_id, self._batch = database, pass_id, batch

    def run(self):
        with contextlib.ExitStack() as stack:
            # Providers that get another parent, and those to be deleted that have one.
            self._moved, self._attached = (stack.enter_context(Spool()) for _ in range(2))
            gone = {kind: stack.enter_context(Spool()) for kind in rows.KINDS}
            for kind, spool in gone.items():
                self._put_all(kind, spool)
                if kind == "providers":
                    self._in_batches(self._moved, moving_writes.set_parents)
            for kind, spool in reversed(gone.items()):
                if kind == "providers":
                    self._in_batches(self._attached, moving_writes.detach_providers)
                self._in_batches(spool, _KINDS[kind].delete)

    def _put_all(self, kind, gone):
        """Write the rows that are missing or differ; spool the others."""
        new, changed = [], []
        for each in self._pass.differences(kind):
            self._pass.count(each)
            if kind == "providers" and self._is_only_spooled(each):
                continue
            if each.source is None:
                gone.append(each.key)
                continue
            (new if each.target is None else changed).append(each.source)
            if len(new) + len(changed) == self._batch:
                self._put(kind, new, changed)
                new, changed = [], []
        if new or changed:
            self._put(kind, new, changed)

    def _is_only_spooled(self, each):
        """Spool what a provider's parents need; return whether nothing else of it differs.

        A pass that is interrupted leaves many providers without their parents. The next one must
        not write all of them again, or one that is interrupted over and over would never end.
        """
        source, target = each.source, each.target
        if source is None:
            if target.parent is not None:
                self._attached.append(each.key)
            return False
        if target is None:
            if source.parent is not None:
                self._moved.append((source.uuid, source.parent, source.root))
            return False
        if (source.parent, source.root) != (target.parent, target.root):
            self._moved.append((source.uuid, source.parent, source.root))
        return (source.name, source.generation) == (target.name, target.generation)

    def _put(self, kind, new, changed):
        self._write(lambda tx: _KINDS[kind].put(tx, new, changed))

    def _in_batches(self, spool, write):
        """Write what waits in a spool, in its order."""
        for some in spool.batches(self._batch):
            self._write(lambda tx, some=some: write(tx, some))

    def _write(self, change):
        def attempt(tx: Connection) -> None:
            hold.begin_batch(tx, self._pass_id)
            change(tx)

        self._database.write(attempt, "import")


def _inserted(insert, *arguments):
    """Return a ``put`` of rows that have only a key, so that none is ever updated."""
    def put(tx, new, _changed):
        insert(tx, new, *arguments)
    return put


def _put_inventories(tx, new, changed):
    def with_capacity(found):
        return [(row, capacity_of(row.total, row.reserved, row.allocation_ratio))
                for row in found]

    moving_writes.put_inventories(tx, with_capacity(new), with_capacity(changed))


_KINDS = {
    "resource_classes": _Kind(
        _inserted(moving_writes.insert_resource_classes, class_names.FIRST_CUSTOM_ID),
        moving_writes.delete_resource_classes),
    "traits": _Kind(_inserted(moving_writes.insert_traits), moving_writes.delete_traits),
    "consumer_types": _Kind(
        _inserted(moving_writes.insert_consumer_types), moving_writes.delete_consumer_types),
    "providers": _Kind(moving_writes.put_providers, moving_writes.delete_providers),
    "inventories": _Kind(_put_inventories, moving_writes.delete_inventories),
    "provider_traits": _Kind(
        _inserted(moving_writes.insert_provider_traits), moving_writes.delete_provider_traits),
    "provider_aggregates": _Kind(
        _inserted(moving_writes.insert_provider_aggregates),
        moving_writes.delete_provider_aggregates),
    "consumers": _Kind(moving_writes.put_consumers, moving_writes.delete_consumers),
    "allocations": _Kind(moving_writes.put_allocations, moving_writes.delete_allocations),
}
