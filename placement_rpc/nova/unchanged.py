# SPDX-License-Identifier: Apache-2.0
"""Remember the cycles of resource trackers that changed nothing, to recognise them next time.

Nearly all cycles are the same as the one before, and nothing has changed in the store meanwhile.
Those that arrive together are answered after one read, of the rows that the answers depend on.
What is remembered counts only if these rows are still the same.
"""

import collections
import hashlib
import threading
from collections.abc import Sequence
from typing import Any, Protocol

from placement_rpc.db import api as db
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.objects.sync_result import SyncResult

# An entry takes some 500 bytes.
_MOST_NODES = 50_000


class ReportedCycle(Protocol):
    """A cycle to look for.

    ``fingerprint`` is that of the report, without its time; None for a cycle that is never
    remembered.
    """

    node_uuid: str
    request_id: str
    fingerprint: str | None


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

    def find(self, database: db.Database,
             cycles: Sequence[ReportedCycle]) -> list[SyncResult | None]:
        """Return the results of the cycles that are remembered, in the order of the cycles.

        :returns: None for a cycle if the last report was another one or if the store has changed;
            for all of them if one of the requests was settled before: that is a repeated one
            which changed something, and rare
        """
        known = [self._known(each) for each in cycles]
        asked = [each for each, digest in zip(cycles, known, strict=True) if digest is not None]
        if not asked:
            return [None] * len(cycles)
        with database.reader() as tx:
            rows = queries.unshared(tx, {each.node_uuid for each in asked},
                                    [each.request_id for each in asked])
        return [self._result(rows.get(each.node_uuid), digest)
                for each, digest in zip(cycles, known, strict=True)]

    def _known(self, cycle):
        """Return the digest of the last cycle of a node, if it was the same as this one."""
        fingerprint, digest = self._entries.get(cycle.node_uuid, (None, None))
        return digest if fingerprint is not None and fingerprint == cycle.fingerprint else None

    def _result(self, row, digest):
        if row is None or digest != _digest(row):
            return None
        with self._mutex:
            if row.uuid in self._entries:
                self._entries.move_to_end(row.uuid)
        return SyncResult(provider_uuid=row.uuid, shared_disk_uuid=None, changed=[],
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
