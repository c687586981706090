# SPDX-License-Identifier: Apache-2.0
"""Stored compute nodes as an operator sees them, and the removal of one that was imported."""

import contextlib

from placement_rpc import exception
from placement_rpc.accounting import providers as provider_rules
from placement_rpc.accounting.outbox import written
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.db.queries import providers
from placement_rpc.nova import migration, store
from placement_rpc.objects import fields
from placement_rpc.objects.nova.compute_node import ComputeNode

_PAGE = 200


def listed(database, options, host=None):
    """Yield all stored nodes in the order of their ids.

    :param options: ``conf.compute_nodes``
    :param host: str, only the nodes of this host; None for all
    :returns: iterator of tuples of a row and the PlacementException that prevents the node's
        migration, or None
    """
    after = 0
    while True:
        with database.reader() as tx:
            rows = queries.page(tx, after, _PAGE, host=host)
            found = _obstacles(tx, rows, options)
        yield from ((row, found.get(row.id)) for row in rows)
        if len(rows) < _PAGE:
            return
        after = rows[-1].id


def shown(database, options, text):
    """Read a stored node.

    :param text: str, its id, its uuid or its hypervisor_hostname
    :returns: tuple of a dict of column to value, and the PlacementException that prevents its
        migration, or None
    :raises ComputeNodeNotFound: if there is none
    :raises ComputeNodeConflict: if there are several
    """
    with database.reader() as tx:
        row = _found(tx, text)
        return store.read(tx, [row])[0], _obstacles(tx, [row], options).get(row.id)


def delete(database, text):
    """Delete a stored node that is not migrated.

    The provider that it got from a release without the migration is deleted too, unless it is
    another node's.

    :param text: as of :func:`shown`
    :returns: the deleted row
    :raises ComputeNodeNotFound: if there is none
    :raises ComputeNodeConflict: if there are several, or if it is migrated
    :raises ProviderInUse: if its provider has allocations
    """
    def change(tx, outbox):
        row, = queries.lock(tx, [_found(tx, text).id]) or [None]
        if row is None:
            raise exception.ComputeNodeNotFound(node=text)
        if row.inventory_migrated_at is not None:
            raise exception.ComputeNodeConflict(
                node=text, reason="it is migrated, so it blocks nothing; its compute service "
                                  "deletes it")
        queries.delete(tx, row.id)
        if row.uuid and not queries.of_uuids(tx, [row.uuid]) and providers.get(tx, row.uuid):
            provider_rules.delete(tx, outbox, row.uuid)
        return row

    return written(database, change)


def _obstacles(tx, rows, options):
    waiting = [row for row in rows if row.inventory_migrated_at is None]
    return migration.obstacles(
        tx, waiting, options, ComputeNode.of_row) if waiting else {}


def _found(tx, text):
    rows = queries.of_names(tx, [text])
    if text.isascii() and text.isdigit() and len(text) < _LONGEST_ID:
        rows += queries.of_ids(tx, [int(text)])
    # What is not a uuid is no node's uuid.
    with contextlib.suppress(exception.InvalidInput):
        rows += queries.of_uuids(tx, [fields.Uuid().coerce(None, "uuid", text)])
    ids = {row.id for row in rows}
    if not ids:
        raise exception.ComputeNodeNotFound(node=text)
    if len(ids) > 1:
        raise exception.ComputeNodeConflict(
            node=text, reason="several nodes have that name or uuid; give an id, one of "
                              f"{', '.join(map(str, sorted(ids)))}")
    return rows[0]


# A row id has fewer digits.
_LONGEST_ID = 19
