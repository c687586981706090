# SPDX-License-Identifier: Apache-2.0
"""A sample of the different requests of a log, with a bound on the memory that it takes."""

import hashlib
import heapq
from typing import NamedTuple

from placement_rpc.moving.access_log import Logged, Request


class SampledRequest(NamedTuple):
    """A request of the sample.

    :ivar times: int, how often the log has it
    :ivar statuses: frozenset of int, of the answers in the log; empty if it does not say them
    """

    request: Request
    times: int
    statuses: frozenset[int]


class RequestSample:
    """The different requests of each kind, or a random part of them.

    Which requests are taken depends on a digest of them, so two runs with one log take the same,
    and a request that is taken has been from its first line on: its count is exact.

    :param per_kind: int, the maximum number of different requests of a kind
    """

    def __init__(self, per_kind: int) -> None:
        self._per_kind = per_kind
        self._kinds: dict[str, dict[Request, tuple[int, set[int]]]] = {}
        # For each kind, the negated digests, so that the largest digest is the first to go.
        self._heaps: dict[str, list[tuple[int, Request]]] = {}

    def add(self, logged: Logged) -> None:
        """Count a request, and take it if its digest is among the smallest of its kind."""
        request, status = logged
        kind = request.kind
        taken = self._kinds.setdefault(kind, {})
        if request not in taken and not self._take(request, kind, taken):
            return
        times, statuses = taken[request]
        taken[request] = times + 1, statuses
        if status is not None:
            statuses.add(status)

    def _take(self, request: Request, kind: str,
              taken: dict[Request, tuple[int, set[int]]]) -> bool:
        heap, entry = self._heaps.setdefault(kind, []), (-_digest(request), request)
        if len(taken) < self._per_kind:
            heapq.heappush(heap, entry)
        else:
            _, dropped = heapq.heappushpop(heap, entry)
            if dropped == request:
                return False
            del taken[dropped]
        taken[request] = 0, set()
        return True

    def requests(self) -> list[SampledRequest]:
        """Return the requests that were taken, those of different kinds mixed."""
        return [SampledRequest(request, times, frozenset(statuses))
                for request, (times, statuses) in sorted(
                    (each for taken in self._kinds.values() for each in taken.items()),
                    key=lambda each: _digest(each[0]))]


def _digest(request: Request) -> int:
    text = f"{request.microversion} {request.target}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
