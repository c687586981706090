# SPDX-License-Identifier: Apache-2.0
"""Group commit: claims that arrive while a transaction runs are settled together in the next.

There is no thread of its own and no timer. The first caller to come settles at once, so a lone
claim never waits; those who come meanwhile queue up, and when the transaction is done one of
them settles for all that wait. The busier the service, the larger the batches.
"""

import collections
import logging
import threading

from placement_rpc import exception
from placement_rpc.accounting.batch import Outcome, settle
from placement_rpc.telemetry.spans import span

LOG = logging.getLogger(__name__)
# Amounts in one transaction; bounds the parameters of one statement.
_MAX_WEIGHT = 5000


class _Waiter:
    """Settlements of one caller, and the lock that it waits on."""

    __slots__ = ("answers", "called", "error", "leads", "settlements", "weight")

    def __init__(self, settlements):
        self.settlements = settlements
        self.weight = sum(each.weight for each in settlements)
        self.answers = None
        self.error = None
        self.leads = False
        self.called = threading.Lock()
        self.called.acquire()

    @property
    def done(self):
        return self.answers is not None or self.error is not None


class GroupCommit:
    """Settles what concurrent callers ask for, as few transactions as it takes.

    :param database: :class:`placement_rpc.db.api.Database`
    :param limit: int, the most settlements in one transaction
    :param settle_batch: callable of database and settlements
    :param settled: callable that is told how many settlements a transaction had
    :param method: str, what is settled, for errors and the log
    """

    def __init__(self, database, limit, settle_batch=settle, settled=lambda count: None,
                 method="claim"):
        self._database = database
        self._limit = limit
        self._settle_batch = settle_batch
        self._settled = settled
        self._method = method
        self._waiting = collections.deque()
        self._mutex = threading.Lock()
        self._busy = False

    def settle(self, settlements):
        """Settle, together with what other threads bring.

        :param settlements: list of :class:`placement_rpc.accounting.batch.AllocationChange`
        :returns: list of :class:`placement_rpc.accounting.batch.Outcome`
        :raises StoreUnavailable: :raises StoreBusy: nothing of them was done, so far as is known
        """
        answers, some, weight = [], [], 0
        for each in settlements:
            weight += each.weight
            if some and (len(some) == self._limit or weight > _MAX_WEIGHT):
                answers += self._settle_some(some)
                some, weight = [], each.weight
            some.append(each)
        return answers + self._settle_some(some) if some else answers

    def _settle_some(self, settlements):
        ticket = _Waiter(settlements)
        with self._mutex:
            self._waiting.append(ticket)
            ticket.leads, self._busy = not self._busy, True
        if not ticket.leads:
            with span("group commit"):
                self._await_call(ticket)
        if ticket.leads:
            try:
                while not ticket.done:
                    self._settle_tickets(self._take())
            finally:
                self._hand_over()
        if ticket.error is not None:
            raise ticket.error
        return ticket.answers

    def _await_call(self, ticket):
        try:
            ticket.called.acquire()
        except BaseException:
            # Interrupted: nobody may wait for this thread to lead.
            with self._mutex:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
            if ticket.leads:
                self._hand_over()
            raise

    def _take(self):
        """:returns: list of the tickets for the next transaction"""
        batch, size, weight = [], 0, 0
        with self._mutex:
            while self._waiting:
                ticket = self._waiting[0]
                size += len(ticket.settlements)
                weight += ticket.weight
                if batch and (size > self._limit or weight > _MAX_WEIGHT):
                    break
                batch.append(self._waiting.popleft())
        return batch

    def _settle_tickets(self, tickets):
        settlements = [each for ticket in tickets for each in ticket.settlements]
        try:
            answers = iter(self._settle_batch(self._database, settlements))
            self._settled(len(settlements))
            for ticket in tickets:
                ticket.answers = [next(answers) for _ in ticket.settlements]
        except exception.PlacementException as error:
            for ticket in tickets:
                ticket.error = error
        except Exception:
            self._settle_one_by_one(tickets, settlements)
        finally:
            for ticket in tickets:
                if not ticket.done:
                    # The thread is being ended; whoever waits must not wait for ever.
                    ticket.error = exception.StoreBusy(method=self._method, attempts=1)
                if not ticket.leads:
                    ticket.called.release()

    def _settle_one_by_one(self, tickets, settlements):
        # One that the database chokes on must not take the others down with it.
        LOG.exception("A batch of %d (%s) failed; they are settled singly", len(settlements),
                      self._method)
        for ticket in tickets:
            answers = []
            for each in ticket.settlements:
                try:
                    answers += self._settle_batch(self._database, [each])
                except Exception as error:
                    LOG.exception("Request %s failed", each.request.request_id)
                    answers.append(Outcome(error=error))
            ticket.answers = answers

    def _hand_over(self):
        """Let the first who waits lead; with nobody waiting, whoever comes next does."""
        with self._mutex:
            if not self._waiting:
                self._busy = False
                return
            heir = self._waiting[0]
            heir.leads = True
        heir.called.release()
