# SPDX-License-Identifier: Apache-2.0
"""The server's side of the remotable methods of nova's ComputeNode.

The objects travel and know no database. Their methods ask ``context.nodes``, which only a server
sets: a :class:`ComputeNodeStore`.
"""

import logging
import uuid

from placement_rpc import exception
from placement_rpc.accounting.outbox import changing
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.nova import changes, migration, store
from placement_rpc.objects.nova.compute_node import ComputeNode

LOG = logging.getLogger(__name__)


class ComputeNodeStore:
    """Reads, creates, changes and deletes compute nodes.

    :param settings: :class:`placement_rpc.nova.migration.Settings`
    """

    def __init__(self, settings):
        self.settings = settings

    # -- reading ------------------------------------------------------------------------

    def one(self, context, label, **which):
        """Return the only, or the first, requested node.

        :param label: str, the name of the node in the error
        :param which: as in :meth:`several`
        :raises ComputeNodeNotFound: if there is none
        :raises InvalidInput: if it cannot be read
        """
        found = self._nodes(context, which)
        if not found:
            raise exception.ComputeNodeNotFound(node=label)
        return found[0]

    def several(self, context, **which):
        """Return nodes; one that cannot be read is left out, and logged.

        :param which: ``ids`` or ``uuids``, a list; ``host`` and ``nodename`` together; or the
            filters of :func:`placement_rpc.db.queries.compute_nodes.page`
        :returns: list of :class:`placement_rpc.objects.nova.compute_node.ComputeNode`
        """
        return self._nodes(context, which, several=True)

    def _nodes(self, context, which, several=False):
        """Return nodes; if the gate is open, migrate those that are not migrated yet."""
        with context.database.reader() as tx:
            rows = _find(tx, **which)
            waiting = {row.id: row for row in rows if row.inventory_migrated_at is None}
            if not any(self.settings.migrates or row.uuid is None for row in waiting.values()):
                return self._read(context, tx, rows, several)
        waiting = {row.id: row for row in self._migrate_inventory(context, list(waiting))}
        with context.database.reader() as tx:
            return self._read(context, tx, [
                waiting.get(row.id, row) for row in rows
                if row.inventory_migrated_at is not None or row.id in waiting], several)

    def _migrate_inventory(self, context, ids):
        """Move the capacity of nodes from their columns into inventories, if the gate is open.

        One transaction for all of them. A node that cannot be migrated stays as it is, and is
        logged. A node without a uuid gets one in any case.

        :param ids: list of int, row ids
        :returns: list of the rows after the migration
        """
        if self.settings.migrates:
            _, refused = changing(context, lambda tx, outbox: migration.migrate(
                tx, outbox, ids, self.settings.options, ComputeNode.of_row))
            for error in refused.values():
                LOG.warning("Cannot migrate a compute node: %s", error)
        with context.database.reader() as tx:
            rows = queries.of_ids(tx, ids)
        missing = {row.id: str(uuid.uuid4()) for row in rows if row.uuid is None}
        if not missing:
            return rows
        changing(context, lambda tx, _: queries.set_uuids(tx, missing))
        with context.database.reader() as tx:
            return queries.of_ids(tx, ids)

    @staticmethod
    def _read(context, tx, rows, several):
        found = []
        for values in store.read(tx, rows):
            try:
                found.append(ComputeNode.of_columns(values))
            except exception.InvalidInput as error:
                if not several:
                    raise
                LOG.warning("Skipping a compute node that cannot be read: %s", error)
        for node in found:
            node._context = context
        return found

    # -- changing -----------------------------------------------------------------------

    def create(self, context, node):
        """Store a new node and make it a provider.

        :returns: dict of column to value, as stored
        :raises NameInUse: if another provider has the name
        :raises InvalidInput: if a value cannot be stored
        """
        def change(tx, outbox):
            node_id = changes.create(tx, outbox, node, self.settings)
            return store.read(tx, queries.of_ids(tx, [node_id]))[0]

        return changing(context, change)

    def save(self, context, node):
        """Store the changes of a node.

        :returns: dict of column to value, as stored
        :raises ComputeNodeNotFound: if it is not stored
        """
        def change(tx, outbox):
            row = changes.lock(tx, node)
            given = type(node)()
            for name in node.obj_what_changed():
                setattr(given, name, getattr(node, name))
            changes.save(tx, outbox, row, given, self.settings)
            return store.read(tx, queries.of_ids(tx, [row.id]))[0]

        return changing(context, change)

    @staticmethod
    def destroy(context, node):
        """Delete a node and its provider.

        :raises ComputeNodeNotFound: if it is not stored
        :raises ProviderInUse: if the provider has allocations
        """
        changing(context, lambda tx, outbox: changes.destroy(tx, outbox, node))


def _find(tx, ids=None, uuids=None, nodename=None, host=None, **filters):
    if ids is not None:
        return queries.of_ids(tx, ids)
    if uuids is not None:
        return queries.of_uuids(tx, uuids)
    if nodename is not None:
        return [row for row in [queries.named(tx, host, nodename)] if row]
    if host is not None:
        filters["host"] = host
    return queries.page(tx, **filters)
