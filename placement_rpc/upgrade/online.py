# SPDX-License-Identifier: Apache-2.0
"""Online data migrations: in batches, while the service runs.

The service migrates a row that it reads or saves; these migrate all other rows.
"""

import dataclasses

from oslo_db import exception as db_exc

from placement_rpc import exception
from placement_rpc.accounting.outbox import written
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.nova import migration
from placement_rpc.objects.nova.compute_node import ComputeNode

BATCH = 50


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
    :param report: callable that gets the :class:`Progress` after each batch
    :returns: :class:`Progress`
    """
    progress, after = Progress("compute_node_inventories"), 0
    while limit is None or progress.done < limit:
        size = BATCH if limit is None else min(BATCH, limit - progress.done)
        with database.reader() as tx:
            rows = queries.page(tx, after, size, unmigrated=True)
        if not rows:
            break
        after = rows[-1].id
        progress.found += len(rows)
        if settings.migrates:
            _migrate(database, settings.options, rows, progress)
        report(progress)
    return progress


def _migrate(database, options, rows, progress):
    labels = {row.id: f"compute node {row.hypervisor_hostname or row.host or row.id}"
              for row in rows}
    try:
        done, refused = _write(database, options, [row.id for row in rows])
    except (exception.PlacementException, db_exc.DBError) as error:
        if getattr(error, "retryable", False):
            raise
        done, refused = _one_by_one(database, options, rows)
    progress.done += done
    progress.refused += [(labels[node_id], error) for node_id, error in refused.items()]


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
