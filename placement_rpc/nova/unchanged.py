# SPDX-License-Identifier: Apache-2.0
"""Remember the cycles of resource trackers that changed nothing, to recognise them next time.

Nearly all cycles are the same as the one before, and nothing has changed in the store meanwhile.
Such a cycle is answered after one short read, of the rows that the answer depends on. What is
remembered counts only if these rows are still the same.
"""

import collections
import hashlib
import threading
from collections.abc import Sequence
from typing import Any

from placement_rpc.db import api as db
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.objects.sync_result import SyncResult

# An entry takes some 500 bytes.
_MOST_NODES = 50_000


class UnchangedCycles:
    """The last cycle of each node, if it changed nothing; thread-safe.

    An entry is the fingerprint of the report, and a digest of the node's row and of the id,
    generation and time of change of its provider: every change of inventories or allocations
    raises the generation. Nodes that share a disk are not remembered, since the provider of the
    disk changes without a change of theirs.

    :param limit: of how many nodes; those that reported least recently are forgotten
    """

    def __init__(self, limit: int = _MOST_NODES) -> None:
        self._limit = limit
        self._entries: collections.OrderedDict[str, tuple[str, bytes]] = collections.OrderedDict()
        self._mutex = threading.Lock()

    def find(self, database: db.Database, node_uuid: str, request_id: str,
             fingerprint: str) -> SyncResult | None:
        """Return the result of a cycle that is remembered.

        :param fingerprint: of the report, without its time
        :returns: None if the last report was another one, if the store has changed, or if the
            request was settled before
        """
        known, digest = self._entries.get(node_uuid, (None, None))
        if known != fingerprint:
            return None
        with database.reader() as tx:
            row = queries.unshared(tx, node_uuid, request_id)
        if row is None or digest != _digest(row):
            return None
        with self._mutex:
            if node_uuid in self._entries:
                self._entries.move_to_end(node_uuid)
        return SyncResult(provider_uuid=node_uuid, shared_disk_uuid=None, changed=[],
                          disagreements=[], generation=row.generation)

    def remember(self, fingerprint: str, row: Any, provider: Any) -> None:
        """Remember a cycle that changed nothing, and would not at any later time.

        :param fingerprint: as for :meth:`find`
        :param row: row of the node, read before all that the cycle compared
        :param provider: row of its provider, likewise
        """
        digest = _digest((*row, provider.id, provider.generation, provider.updated_at))
        with self._mutex:
            self._entries[row.uuid] = fingerprint, digest
            self._entries.move_to_end(row.uuid)
            while len(self._entries) > self._limit:
                self._entries.popitem(last=False)

    def forget(self, node_uuid: str) -> None:
        """Forget the cycle of a node, whose last one changed or found something."""
        with self._mutex:
            self._entries.pop(node_uuid, None)


def _digest(row: Sequence[Any]) -> bytes:
    return hashlib.sha256(repr(tuple(row)).encode(errors="surrogatepass")).digest()
