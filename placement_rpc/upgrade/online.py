# SPDX-License-Identifier: Apache-2.0
"""Online data migrations: in batches, while the service runs.

The service migrates a row that it reads or saves; these migrate all other rows.
"""

import collections
import dataclasses
from concurrent import futures

from oslo_db import exception as db_exc

from placement_rpc import exception
from placement_rpc.accounting.outbox import written
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.nova import migration
from placement_rpc.objects.nova.compute_node import ComputeNode

#: How many rows are migrated in a transaction.
BATCH = 200
# While the database works on one batch, the next one is computed.
_AT_ONCE = 2


@dataclasses.dataclass(slots=True)
class Progress:
    """The progress of a migration.

    :ivar found: number of rows that were to be migrated
    :ivar done: number of rows that were migrated
    :ivar refused: list of tuples of a row's description and the error that prevents its migration
    """

    name: str
    found: int = 0
    done: int = 0
    refused: list = dataclasses.field(default_factory=list)


def compute_node_inventories(database, settings, limit=None, report=lambda progress: None):
    """Move the capacity of compute nodes into inventories.

    A node that cannot be migrated is skipped, and tried again in the next run.

    :param settings: :class:`placement_rpc.nova.migration.Settings`
    :param limit: int, the maximum number of rows to migrate; None for all. Skipped rows do not
        count, so that they do not prevent the migration of others
    :param report: callable that gets the :class:`Progress` after each batch, also after the one
        that is still under way when another one fails
    :returns: :class:`Progress`
    """
    progress, after = Progress("compute_node_inventories"), 0
    with _Batches(database, settings, progress, report) as batches:
        while rows := _page(database, after, batches.room(limit)):
            after = rows[-1].id
            batches.begin(rows)
        batches.complete()
    return progress


def _page(database, after, size):
    with database.reader() as tx:
        return queries.page(tx, after, size, unmigrated=True)


class _Batches:
    """The batches that are under way. What they do counts after an error too."""

    def __init__(self, database, settings, progress, report):
        self._database, self._settings = database, settings
        self._progress, self._report = progress, report
        # Tuples of the rows of a batch and the future of its migration, the first one first.
        self._begun = collections.deque()
        self._threads = futures.ThreadPoolExecutor(_AT_ONCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._threads.shutdown()
        for rows, migrated in self._begun:
            if migrated.exception() is None:
                self._add(rows, *migrated.result())

    def room(self, limit):
        """Wait until another batch may begin; return how many rows it may have at the most.

        :param limit: as of :func:`compute_node_inventories`
        """
        while True:
            size = BATCH
            if limit is not None:
                under_way = sum(len(rows) for rows, _ in self._begun)
                size = min(size, limit - self._progress.done - under_way)
            if not self._begun or (size > 0 and len(self._begun) < _AT_ONCE):
                return size
            self._complete_first()

    def begin(self, rows):
        """Have a thread migrate rows."""
        self._begun.append(
            (rows, self._threads.submit(_migrate, self._database, self._settings, rows)))

    def complete(self):
        """Wait for all batches."""
        while self._begun:
            self._complete_first()

    def _complete_first(self):
        rows, migrated = self._begun[0]
        found = migrated.result()
        self._begun.popleft()
        self._add(rows, *found)

    def _add(self, rows, done, refused):
        labels = {row.id: f"compute node {row.hypervisor_hostname or row.host or row.id}"
                  for row in rows}
        self._progress.found += len(rows)
        self._progress.done += done
        self._progress.refused += [(labels[node_id], error) for node_id, error in refused.items()]
        self._report(self._progress)


def _migrate(database, settings, rows):
    """Migrate rows, in one transaction if no row prevents that.

    :returns: tuple of the number of migrated rows, and a dict of row id to the error that
        prevented the migration of others
    """
    if not settings.migrates:
        return 0, {}
    try:
        return _write(database, settings.options, [row.id for row in rows])
    except (exception.PlacementException, db_exc.DBError) as error:
        if getattr(error, "retryable", False):
            raise
        return _one_by_one(database, settings.options, rows)


def _one_by_one(database, options, rows):
    """Migrate each row in a transaction of its own, so that one that fails affects no other."""
    done, refused = 0, {}
    for row in rows:
        try:
            one, errors = _write(database, options, [row.id])
            done, refused = done + one, refused | errors
        except (exception.PlacementException, db_exc.DBError) as error:
            refused[row.id] = error
    return done, refused


def _write(database, options, ids):
    return written(database, lambda tx, outbox: migration.migrate(
        tx, outbox, ids, options, ComputeNode.of_row))


#: All migrations, by the name that operators see.
MIGRATIONS = {"compute_node_inventories": compute_node_inventories}
