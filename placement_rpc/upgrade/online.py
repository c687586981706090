# SPDX-License-Identifier: Apache-2.0
"""Online data migrations: in batches, while the service runs.

The service migrates a row that it reads or saves; these migrate all other rows.
"""

import collections
import dataclasses
import math
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
    :param report: callable that gets the :class:`Progress` after each batch, and when an error
        ends the migration, which is raised after the batch that is under way
    :returns: :class:`Progress`
    """
    progress, begun, after = Progress("compute_node_inventories"), collections.deque(), 0
    with futures.ThreadPoolExecutor(_AT_ONCE) as threads:
        try:
            while True:
                room = math.inf if limit is None else (
                    limit - progress.done - sum(len(rows) for rows, _ in begun))
                rows = []
                if len(begun) < _AT_ONCE and room > 0:
                    with database.reader() as tx:
                        rows = queries.page(tx, after, min(BATCH, room), unmigrated=True)
                if rows:
                    after = rows[-1].id
                    begun.append((rows, threads.submit(_migrate, database, settings, rows)))
                elif not begun:
                    return progress
                else:
                    migrated = begun[0][1].result()
                    rows, _ = begun.popleft()
                    _add(progress, rows, *migrated)
                    report(progress)
        except BaseException:
            # What is under way is completed, and counts.
            for rows, migrated in begun:
                if not migrated.cancel() and migrated.exception() is None:
                    _add(progress, rows, *migrated.result())
            report(progress)
            raise


def _add(progress, rows, done, refused):
    progress.found += len(rows)
    progress.done += done
    labels = {row.id: f"compute node {row.hypervisor_hostname or row.host or row.id}"
              for row in rows}
    progress.refused += [(labels[node_id], error) for node_id, error in refused.items()]


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
