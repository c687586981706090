# SPDX-License-Identifier: Apache-2.0
"""Remember the cycles of resource trackers that changed nothing, to recognise them next time.

Nearly all cycles are the same as the one before, and nothing has changed in the store meanwhile.
Such a cycle is answered after one short read. What is remembered need not be right: it has the
rows on which the answer depends, and counts only if these are the same again.
"""

import collections
import hashlib
import threading
from collections.abc import Sequence
from typing import Any

from placement_rpc.db import api as db
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.objects.sync_result import SyncResult

# Of each node some 300 bytes.
_MOST_NODES = 50_000


class UnchangedCycles:
    """The last cycle of each node that changed nothing; thread-safe.

    A cycle is remembered by a digest of what the tracker said, of the node's row, and of the
    number, generation and time of change of its provider: whatever changes inventories or
    allocations raises the generation. A node that shares a disk is not remembered, since the disk
    may change without it.

    :param limit: of how many nodes; those that were heard least recently are forgotten
    """

    def __init__(self, limit: int = _MOST_NODES) -> None:
        self._limit = limit
        self._digests: collections.OrderedDict[str, bytes] = collections.OrderedDict()
        self._mutex = threading.Lock()

    def find(self, database: db.Database, node_uuid: str, request_id: str,
             said: str) -> SyncResult | None:
        """Return the result of a cycle that is remembered.

        :param said: fingerprint of what the tracker said, without its time
        :returns: None if the cycle is another one, if the store has changed, or if the request was
            settled before
        """
        digest = self._digests.get(node_uuid)
        if digest is None:
            return None
        with database.reader() as tx:
            row = queries.unshared(tx, node_uuid, request_id)
        if row is None or digest != _digest(said, row):
            return None
        with self._mutex:
            if node_uuid in self._digests:
                self._digests.move_to_end(node_uuid)
        return SyncResult(provider_uuid=node_uuid, shared_disk_uuid=None, changed=[],
                          disagreements=[], generation=row.generation)

    def remember(self, said: str, row: Any, provider: Any) -> None:
        """Remember a cycle that changed nothing, and would not at any later time.

        :param said: as for :meth:`find`
        :param row: row of the node, read before all that the cycle compared
        :param provider: row of its provider, likewise
        """
        digest = _digest(said, (*row, provider.id, provider.generation, provider.updated_at))
        with self._mutex:
            self._digests[row.uuid] = digest
            self._digests.move_to_end(row.uuid)
            while len(self._digests) > self._limit:
                self._digests.popitem(last=False)


def _digest(said: str, row: Sequence[Any]) -> bytes:
    return hashlib.sha256(repr((said, *row)).encode(errors="surrogatepass")).digest()
