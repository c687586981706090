# SPDX-License-Identifier: Apache-2.0
"""Batches: many requests for changes, settled in one transaction.

Each request is accepted or refused on its own (DESIGN rule 6). All of them are applied to one
:class:`placement_rpc.accounting.locked_state.LockedState`, in their order. A single request is a
batch of one.
"""

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from placement_rpc import exception
from placement_rpc.accounting import idempotency, locked_state
from placement_rpc.accounting.idempotency import Request
from placement_rpc.accounting.locked_state import LockedState, Scope
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.context import Cause, cause, check_deadline
from placement_rpc.db import api as db
from placement_rpc.db.queries import events, requests
from placement_rpc.objects import request_result
from placement_rpc.objects.payloads import EventPayload

# Errors that are never the outcome of a request: it is refused now, and may succeed later.
_NOT_FINAL = (exception.RequestExpired, exception.UpgradeInProgress)


class PendingRequest:
    """One request that is settled together with others; subclasses say what it changes.

    :param deadline: seconds since the epoch after which nothing may be changed; None for no
        deadline
    """

    #: Whether a refusal is the final answer, to be stored as the request's outcome.
    final = True

    def __init__(self, request: Request, deadline: float | None = None):
        self.request = request
        self.deadline = deadline
        self._cause = cause()

    def cause(self) -> Cause:
        """Return who made the request, and why, as its events say it."""
        return self._cause

    @property
    def weight(self) -> int:
        """The share of a transaction that the request takes: about the rows that it writes."""
        raise NotImplementedError

    def add_to_scope(self, scope: Scope) -> None:
        """Add the consumers, providers and classes that have to be locked for the request."""
        raise NotImplementedError

    def apply(self, state: LockedState, outbox: Outbox) -> Any:
        """Change the state, and record the events of the change.

        :returns: the result of the request, a versioned object
        :raises PlacementException: if the request is refused; the state is as it was
        """
        raise NotImplementedError

    def check_stored(self, tx: db.Connection, row: Any) -> None:
        """Check that a stored outcome is the outcome of this request.

        :param row: row of the stored outcome
        :raises RequestIdReused: if it is the outcome of another request of the same id
        """
        self.request.check_same(row)

    def refused(self, error: exception.PlacementException) -> list[tuple[str, EventPayload]]:
        """Return the type and the payload of each event of a refusal."""
        return []

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed, so that the client has stopped waiting."""
        return self.deadline is not None and time.time() > self.deadline

    def check_deadline(self) -> None:
        """Check the deadline, as :func:`placement_rpc.context.check_deadline` does."""
        check_deadline(self.deadline)


@dataclasses.dataclass(slots=True)
class Outcome:
    """The outcome of a request: ``result``, a versioned object, or ``error``.

    ``replayed`` is set if the request was settled before, and this is its first outcome.
    ``blocked`` is set if it was not settled, since another transaction keeps a row locked.
    """

    result: Any = None
    error: Exception | None = None
    replayed: bool = False
    blocked: bool = False


def blocked(method: str) -> Outcome:
    """Return the outcome of a request that waits for a row that another transaction has locked."""
    return Outcome(error=exception.StoreBusy(method=method, attempts=1), blocked=True)


def not_settled(error: exception.PlacementException,
                pending: Sequence[PendingRequest]) -> list[Outcome]:
    """Return the outcomes of requests that an error kept from being settled.

    Each has an error of its own: they may be raised in different threads.
    """
    outcomes = []
    for _ in pending:
        of_request = exception.from_code(error.code, error.kwargs)
        of_request.__cause__ = error.__cause__ or error
        outcomes.append(Outcome(error=of_request))
    return outcomes


def settle(database: db.Database, pending: Sequence[PendingRequest], method: str = "claim",
           ) -> list[Outcome]:
    """Settle a batch in one transaction.

    :param method: named in errors and in the log
    :returns: outcomes in the order of the requests
    :raises StoreUnavailable: if the database cannot be reached; the batch may have been
        committed, or not
    :raises StoreBusy: if other writers collided with every attempt; nothing was done
    """
    return database.write(lambda tx: settle_once(tx, pending), method)


def settle_once(
        tx: db.Connection, pending: Sequence[PendingRequest],
        find_blocked: Callable[[db.Connection, list[PendingRequest]], set[int]] | None = None,
        ) -> list[Outcome]:
    """Settle the requests that are new, and answer the others with their stored outcomes.

    :param find_blocked: locks what the new requests need and returns the ids of those request
        objects that are not settled, since they would wait; None to wait for every lock
    :returns: outcomes in the order of the requests
    :raises StoreHeld: if some are new, and the store is held
    :raises placement_rpc.db.api.Stale: if a concurrent writer changed what was read
    :raises placement_rpc.db.api.Locked: if another transaction keeps a row locked
    """
    ids = {each.request.request_id for each in pending}
    if find_blocked is None:
        stored, state = locked_state.lock_unless_stored(tx, _scope(pending), ids)
    else:
        stored, state = requests.of_change(tx, ids), None
    new = [each for each in pending if each.request.request_id not in stored]
    waiting = find_blocked(tx, [each for each in new if not each.is_late]) if (
        find_blocked and new) else set()
    free = [each for each in new if id(each) not in waiting]
    settled = _settle_new(tx, free, state) if free else {}
    settled |= {id(each): blocked(each.request.method) for each in new if id(each) in waiting}
    return [settled[id(each)] if id(each) in settled
            else _stored_outcome(tx, each, stored[each.request.request_id]) for each in pending]


def _scope(pending):
    """Return what has to be locked for requests."""
    scope = Scope()
    for each in pending:
        # An expired request must not take locks, or wait for any.
        if not each.is_late:
            each.add_to_scope(scope)
    return scope


def _settle_new(tx, pending, state):
    """Return a dict of the id of each request object to its outcome.

    :param state: what is locked for them; None if it is not read yet
    """
    if state is None:
        state = locked_state.lock(tx, _scope(pending))
    outcomes = BatchOutcomes(tx)
    for each in pending:
        outcomes.add(each, lambda outbox, each=each: each.apply(state, outbox))
    locked_state.check_absent(tx, state)
    locked_state.write(tx, state, *outcomes.rows(state.used_after()))
    return outcomes.by_id


def _stored_outcome(tx, pending, row):
    """Return the outcome of a request that was settled before."""
    try:
        pending.check_stored(tx, row)
        return Outcome(
            result=request_result.outcome_result(json.loads(row.outcome)), replayed=True)
    except exception.PlacementException as error:
        return Outcome(error=error, replayed=True)


class BatchOutcomes:
    """The outcomes and the events of the requests of one transaction."""

    def __init__(self, tx: db.Connection):
        self._tx = tx
        self._first: dict[str, tuple[Request, Outcome]] = {}
        self._rows: list[tuple] = []
        self._outboxes: list[Outbox] = []
        #: dict of the id of a request object to its outcome
        self.by_id: dict[int, Outcome] = {}

    def add(self, pending: PendingRequest, change: Callable[[Outbox], Any]) -> None:
        """Make the change of one request, unless one with the same request id came before.

        :param change: makes the change and returns the result, or raises the PlacementException
            with which the request is refused
        """
        first = self._first.get(pending.request.request_id)
        if first is not None:
            self.by_id[id(pending)] = _repeated(pending, *first)
            return
        outbox = Outbox(pending.request.request_id, pending.cause)
        try:
            pending.check_deadline()
            outcome = Outcome(result=change(outbox))
        except exception.PlacementException as error:
            # The traceback would keep all that was read alive for as long as the error is.
            outcome = Outcome(error=error.with_traceback(None))
        self.by_id[id(pending)] = outcome
        if outcome.error is None or (
                pending.final and not isinstance(outcome.error, _NOT_FINAL)):
            self._record(pending, outcome, outbox)

    def _record(self, pending, outcome, outbox):
        self._first[pending.request.request_id] = (pending.request, outcome)
        self._rows.append(pending.request.row(
            idempotency.of_error(outcome.error) if outcome.error else
            idempotency.of_result(self._tx, outcome.result)))
        for event_type, payload in pending.refused(outcome.error) if outcome.error else ():
            outbox.add(event_type, payload)
        self._outboxes.append(outbox)

    def rows(self, used: list[list]) -> tuple[list[events.NewEvent], list[tuple]]:
        """Return the rows of the events and the rows of the outcomes.

        :param used: as for :meth:`placement_rpc.accounting.outbox.Outbox.rows`
        """
        return Outbox().rows(self._tx, *self._outboxes, used=used), self._rows


def _repeated(pending, request, outcome):
    """Return the outcome of the second request of one id in a batch.

    It is either a second delivery or a mistake of the client.
    """
    if not pending.request.is_same(request):
        return Outcome(error=exception.RequestIdReused(
            request_id=request.request_id, method=request.method))
    # Each thread raises an error of its own: raising one sets its traceback.
    error = outcome.error and exception.from_code(outcome.error.code, outcome.error.kwargs)
    return Outcome(result=outcome.result, error=error, replayed=True)
