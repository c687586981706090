# SPDX-License-Identifier: Apache-2.0
"""Settle batches while other transactions keep rows locked.

A process that is stopped in the middle of a transaction keeps its row locks until the database
ends its session. The requests of a batch that need one of these rows must not hold up the others:
a batch waits for a lock for a short time, and is then settled without the requests that are
blocked. These get an error that asks the client to retry.

The rows that blocked a batch are remembered for a second, so that the next batches that need them
do not wait again.
"""

import logging
import time
from collections.abc import Sequence

from placement_rpc import exception
from placement_rpc.accounting import batch, blocked_requests
from placement_rpc.accounting.batch import Outcome, PendingRequest
from placement_rpc.accounting.locked_state import Scope
from placement_rpc.db import api as db

LOG = logging.getLogger(__name__)
# Seconds for which a row that was locked is expected to be locked still.
_REMEMBERED = 1.0
# How many parts of one batch may each wait for locks until the time-out.
_MOST_WAITS = 4


class BatchSettler:
    """Settles the batches of one process; one of them at a time."""

    def __init__(self) -> None:
        # The uuids of locked rows, and until when they are expected to be locked.
        self._locked: dict[str, float] = {}

    def settle(self, database: db.Database, pending: Sequence[PendingRequest],
               method: str = "claim") -> list[Outcome]:
        """Settle a batch in one transaction if nothing blocks it, otherwise in parts.

        :param method: named in errors and in the log
        :returns: outcomes in the order of the requests; those of requests that need a row that
            another transaction keeps locked are ``blocked``
        :raises StoreUnavailable: if the database cannot be reached; the batch may have been
            committed, or not
        :raises StoreBusy: if other writers collided with every attempt; nothing was done. After a
            part that was settled, both are the errors of the other outcomes instead
        """
        if not self._needs_locked_row(pending):
            try:
                return database.write(
                    lambda tx: batch.settle_once(tx, pending), method, waits=False)
            except db.Locked as error:
                LOG.info("A batch of %d requests (%s) is settled without those that wait for a "
                         "locked row: %s", len(pending), method, error.__cause__)
        return _Parts(self, database, method).settle(pending)

    def _needs_locked_row(self, pending):
        now = time.monotonic()
        self._locked = {uuid: until for uuid, until in self._locked.items() if until > now}
        if not self._locked:
            return False
        scope = Scope()
        for each in pending:
            each.add_to_scope(scope)
        return not self._locked.keys().isdisjoint(scope.consumers | scope.providers)

    def remember(self, locked: set[str]) -> None:
        """Expect rows to be locked for a while.

        :param locked: uuids of consumers and providers
        """
        self._locked |= dict.fromkeys(locked, time.monotonic() + _REMEMBERED)


class _Parts:
    """A batch that is settled without its blocked requests, in halves if something else waits."""

    def __init__(self, settler, database, method):
        self._settler = settler
        self._database = database
        self._method = method
        self._waits = 0
        # The error after which nothing more is tried.
        self._failure = None

    def settle(self, pending):
        locked = set()

        def attempt(tx):
            locked.clear()
            return batch.settle_once(tx, pending, lambda tx, new: blocked_requests.find(
                tx, new, locked))

        if self._failure is not None:
            return batch.not_settled(self._failure, pending)
        if self._waits >= _MOST_WAITS:
            return [batch.blocked(self._method) for _ in pending]
        try:
            outcomes = self._database.write(attempt, self._method, waits=False)
        except db.Locked as error:
            # A row of another kind, such as the same new consumer in two transactions.
            LOG.info("%d requests (%s) wait for a locked row: %s", len(pending), self._method,
                     error.__cause__)
            self._waits += 1
            if len(pending) == 1:
                return [batch.blocked(self._method)]
            middle = len(pending) // 2
            return blocked_requests.settle_parts(
                (pending[:middle], pending[middle:]), self.settle, self._method)
        except exception.PlacementException as error:
            self._failure = error
            raise
        self._settler.remember(locked)
        return outcomes
