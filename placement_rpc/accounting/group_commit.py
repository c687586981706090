# SPDX-License-Identifier: Apache-2.0
"""Group commit: requests that arrive while a transaction runs are settled together in the next.

There is no separate thread and no timer. The first caller becomes the leader and settles its
requests at once, so a lone request never waits. Callers that arrive meanwhile queue up; when the
transaction ends, the first of them becomes the next leader and settles the requests of all that
wait. The busier the service, the larger the batches.
"""

import collections
import logging
import threading
from collections.abc import Callable, Sequence

from placement_rpc import exception
from placement_rpc.accounting import blocked_requests
from placement_rpc.accounting.batch import Outcome, PendingRequest
from placement_rpc.accounting.batch_settler import BatchSettler
from placement_rpc.db.api import Database
from placement_rpc.telemetry.spans import span

LOG = logging.getLogger(__name__)
# The largest sum of weights in one transaction; it bounds the parameters of one statement.
_MAX_WEIGHT = 5000


class _Waiter:
    """The requests of one caller, and the lock that the caller's thread waits on."""

    __slots__ = ("error", "is_leader", "outcomes", "pending", "wake", "weight")

    def __init__(self, pending):
        self.pending = pending
        self.weight = sum(each.weight for each in pending)
        self.outcomes = None
        self.error = None
        self.is_leader = False
        self.wake = threading.Lock()
        self.wake.acquire()

    @property
    def done(self):
        return self.outcomes is not None or self.error is not None

    def result(self):
        if self.error is None:
            return self.outcomes
        # The same error may be raised in many threads, and raising one sets its traceback and
        # its context: each thread raises an error of its own.
        raise exception.from_code(self.error.code, self.error.kwargs) from self.error


class GroupCommit:
    """Settles the requests of concurrent callers in as few transactions as possible.

    :param limit: the most requests in one transaction
    :param settle_batch: settles requests in one transaction, as
        :meth:`placement_rpc.accounting.batch_settler.BatchSettler.settle` does; None for that
    :param observe_batch_size: called with the number of requests of each transaction
    :param method: what is settled; named in errors and in the log
    """

    def __init__(self, database: Database, limit: int,
                 settle_batch: Callable[..., list[Outcome]] | None = None,
                 observe_batch_size: Callable[[int], None] = lambda size: None,
                 method: str = "claim"):
        self._database = database
        self._limit = limit
        #: Settles each batch.
        self.settle_batch = settle_batch or BatchSettler().settle
        self._observe_batch_size = observe_batch_size
        self._method = method
        self._waiting: collections.deque[_Waiter] = collections.deque()
        self._mutex = threading.Lock()
        self._has_leader = False

    @property
    def waiting(self) -> int:
        """How many callers wait for a transaction that has not begun."""
        return len(self._waiting)

    def settle(self, pending: Sequence[PendingRequest]) -> list[Outcome]:
        """Settle requests, together with those of other threads.

        More than ``limit`` requests take several transactions.

        :returns: outcomes in the order of the requests
        :raises StoreUnavailable: if the database cannot be reached; the batch may have been
            committed, or not
        :raises StoreBusy: if other writers collided with every attempt; nothing was done. After a
            transaction that was committed, both are the errors of the other outcomes instead
        """
        return blocked_requests.settle_parts(
            self._parts(pending), self._settle_some, self._method)

    def _parts(self, pending):
        """Yield the requests of each transaction."""
        some: list[PendingRequest] = []
        weight = 0
        for each in pending:
            weight += each.weight
            if some and (len(some) == self._limit or weight > _MAX_WEIGHT):
                yield some
                some, weight = [], each.weight
            some.append(each)
        if some:
            yield some

    def _settle_some(self, pending):
        waiter = _Waiter(pending)
        try:
            with self._mutex:
                self._waiting.append(waiter)
                waiter.is_leader, self._has_leader = not self._has_leader, True
            if not waiter.is_leader:
                with span("group commit"):
                    waiter.wake.acquire()
            if waiter.is_leader:
                while not waiter.done:
                    self._settle_batch()
        finally:
            self._leave(waiter)
        return waiter.result()

    def _settle_batch(self):
        """Settle the requests of those that wait, as many as one transaction takes."""
        taken: list[_Waiter] = []
        try:
            self._take_batch(taken)
            self._settle_waiters(taken)
        finally:
            if not all(each.done for each in taken):
                self._give_up(taken)
            for each in taken:
                if not each.is_leader:
                    each.wake.release()

    def _give_up(self, waiters):
        """Have waiters end with an error, since the leader's thread is interrupted."""
        with self._mutex:
            for each in waiters:
                if each in self._waiting:
                    self._waiting.remove(each)
                if not each.done:
                    # It may have been committed.
                    each.error = exception.StoreUnavailable(reason="the thread that settled the "
                                                                   "request was interrupted")

    def _take_batch(self, taken):
        """Take the waiters of the next transaction, in the order of their arrival.

        :param taken: list that gets them
        """
        size = weight = 0
        with self._mutex:
            for waiter in self._waiting:
                size += len(waiter.pending)
                weight += waiter.weight
                if taken and (size > self._limit or weight > _MAX_WEIGHT):
                    break
                taken.append(waiter)
            # Removed after all are taken: an interrupt must not lose one between the two lists.
            for _ in taken:
                self._waiting.popleft()

    def _settle_waiters(self, waiters):
        pending = [each for waiter in waiters for each in waiter.pending]
        try:
            outcomes = iter(self.settle_batch(self._database, pending, self._method))
            self._observe_batch_size(len(pending))
            for waiter in waiters:
                waiter.outcomes = [next(outcomes) for _ in waiter.pending]
        except exception.PlacementException as error:
            for waiter in waiters:
                waiter.error = error
        except Exception:
            self._settle_one_by_one(waiters, len(pending))

    def _settle_one_by_one(self, waiters, size):
        # A request that the database cannot handle must not fail the others of its batch.
        LOG.exception("A batch of %d requests (%s) failed; each is settled on its own", size,
                      self._method)
        for waiter in waiters:
            outcomes = []
            for each in waiter.pending:
                try:
                    outcomes += self.settle_batch(self._database, [each], self._method)
                except Exception as error:
                    LOG.exception("Request %s failed", each.request.request_id)
                    outcomes.append(Outcome(error=error))
            waiter.outcomes = outcomes

    def _leave(self, waiter):
        """Remove a waiter; if it led, make the first of the others the next leader.

        If none waits, the next caller leads.
        """
        if waiter.done and not waiter.is_leader:
            return
        with self._mutex:
            if waiter in self._waiting:
                # Interrupted: no other thread may wait for this one to lead.
                self._waiting.remove(waiter)
            if not waiter.is_leader:
                return
            if not self._waiting:
                self._has_leader = False
                return
            next_leader = self._waiting[0]
            next_leader.is_leader = True
        next_leader.wake.release()
