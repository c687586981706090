# SPDX-License-Identifier: Apache-2.0
"""Settle each request exactly once (DESIGN rule 4).

The outcome of a change is stored in the transaction of the change, under the id that the
client made. A repeated request, because an answer was lost or the bus delivered it twice, is
answered with the stored outcome.

A precondition (a generation, an entity tag) says when a change may be made, and not which change
it is. It is judged after the look for a stored outcome, and a repeated request may have another
one. A row has the fingerprint of the request with its preconditions, which is what processes of
release 2026.2 store and compare; if there are any, the outcome has the fingerprint without them
too.
"""

import base64
import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from placement_rpc import exception
from placement_rpc.accounting import fingerprint as plain_data
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.context import RequestContext
from placement_rpc.db import api as db
from placement_rpc.db.queries import requests
from placement_rpc.objects import base, fields
from placement_rpc.objects.payloads import EventPayload
from placement_rpc.objects.request_result import outcome_result

# The member of a stored outcome that has the fingerprint without preconditions, if it differs.
_CHANGE_FINGERPRINT = "change"
# Letters of the hash in the id of a part: what the column has left after the longest request id.
_NAME_LENGTH = 13


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """A request for a change.

    :param request_id: made by the client
    :param method: name of the call
    :param fingerprint: of the call's arguments with their preconditions
    :param change_fingerprint: of the arguments without their preconditions; None if there are none
    """

    request_id: str
    method: str
    fingerprint: str
    change_fingerprint: str | None = None

    @classmethod
    def of(cls, request_id: str, method: str, arguments: Mapping[str, Any],
           conditional: Mapping[str, Any] | None = None) -> "Request":
        """Return the request of a call.

        :param arguments: what the request asks for, by name, without preconditions
        :param conditional: those of the arguments that have preconditions, with them, in the form
            of release 2026.2; None if no argument can have any
        :raises InvalidInput: if the id is not valid
        """
        request_id = fields.RequestId().coerce(None, "request_id", request_id)
        change = plain_data.fingerprint(method, arguments)
        whole = {**arguments, **(conditional or {})}
        if whole == arguments:
            return cls(request_id, method, change)
        return cls(request_id, method, plain_data.fingerprint(method, whole), change)

    def part(self, number: int, arguments: Mapping[str, Any],
             conditional: Mapping[str, Any] | None = None) -> "Request":
        """Return the request of one entry of a batch.

        :param number: the entry's place in the batch, from 0
        :param arguments: what this entry asks for, as for :meth:`of`
        :param conditional: as for :meth:`of`
        """
        # The first entry has the batch's own id, which no other request can then have. No client
        # can make the ids of the others, since "#" is not allowed in an id.
        request_id = f"{self.request_id}#{number}" if number else self.request_id
        whole = plain_data.fingerprint(
            self.method, [self.fingerprint, {**arguments, **(conditional or {})}])
        if self.change_fingerprint is None:
            return Request(request_id, self.method, whole)
        return Request(request_id, self.method, whole, plain_data.fingerprint(
            self.method, [self.change_fingerprint, arguments]))

    def is_same(self, other: "Request") -> bool:
        """Return whether another request of the same id asks for the same change."""
        return self.fingerprint == other.fingerprint or (
            self.change_fingerprint or self.fingerprint) == (
                other.change_fingerprint or other.fingerprint)

    def is_request_of(self, row: Any) -> bool:
        """Return whether a stored outcome is the outcome of this request.

        :param row: row of the stored outcome
        """
        return row.fingerprint == self.fingerprint or self.is_same(Request(
            row.request_id, row.method, row.fingerprint,
            json.loads(row.outcome).get(_CHANGE_FINGERPRINT)))

    def named_part(self, name: str, arguments: Mapping[str, Any]) -> "Request":
        """Return the request of a part that has a name and no number.

        The id ends with 78 bits of a hash: parts of different names have different ids.

        :param name: of the part, the same in every attempt
        :param arguments: what this part asks for
        """
        digest = hashlib.sha256(f"{self.request_id}#{name}".encode()).digest()
        part = base64.urlsafe_b64encode(digest)[:_NAME_LENGTH].decode()
        return Request(f"{self.request_id}#{part}", self.method, plain_data.fingerprint(
            self.method, [self.fingerprint, arguments]))

    def check_same(self, row: Any) -> None:
        """Check that a stored outcome is the outcome of this request.

        :param row: row of the stored outcome
        :raises RequestIdReused: if it is the outcome of another request of the same id
        """
        if not self.is_request_of(row):
            raise exception.RequestIdReused(request_id=self.request_id, method=row.method)

    def row(self, outcome: dict[str, Any]) -> tuple[str, str, str, str]:
        """Return the row that stores an outcome.

        :param outcome: as :func:`of_result` or :func:`of_error` returns it
        """
        if self.change_fingerprint is not None:
            outcome = {**outcome, _CHANGE_FINGERPRINT: self.change_fingerprint}
        return self.request_id, self.method, self.fingerprint, json.dumps(outcome)


def of_result(tx: db.Connection, result: Any) -> dict[str, Any]:
    """Return the stored form of a result.

    :param result: a versioned object, or JSON values
    """
    return {"result": base.Serializer().serialize_entity(
        None, result, tx.info.get(db.VERSIONS))}


def of_error(error: exception.PlacementException) -> dict[str, Any]:
    """Return the stored form of an error."""
    return {"error": {"code": error.code, "kwargs": error.kwargs}}


def run_once(context: RequestContext, request: Request,
             change: Callable[[db.Connection, Outbox], Any]) -> Any:
    """Make a change exactly once.

    :param context: a context with a database
    :param change: makes the change and returns the result; run again if concurrent writers
        collide
    :returns: the result of the change, or the stored one
    :raises RequestIdReused: if another request had the same id
    :raises RequestExpired: if the deadline passed; nothing was done
    :raises PlacementException: the error of the change, now or when it was first requested
    """
    def attempt(tx):
        found = requests.of_change(tx, [request.request_id]).get(request.request_id)
        if found:
            request.check_same(found)
            return json.loads(found.outcome), None
        # Checked after the search for a stored outcome: a change that was made in time is
        # answered, however late it is retried.
        context.check_deadline()
        outbox = Outbox(request.request_id)
        result = change(tx, outbox)
        # Checked again, since the change may have waited for locks.
        context.check_deadline()
        outbox.write(tx)
        requests.insert(tx, [request.row(of_result(tx, result))])
        return None, result

    try:
        stored, result = context.database.write(attempt, request.method)
    except exception.RequestIdReused:
        raise
    except exception.REFUSALS as error:
        return store_refusal(context.database, request, error)
    return outcome_result(stored) if stored else result


def store_refusal(database: db.Database, request: Request, error: exception.PlacementException,
                  event: tuple[str, EventPayload] | None = None) -> Any:
    """Store an error as the outcome of a request, and raise it.

    If there is an outcome already, another delivery of the same request was faster, and its
    success may be the reason for this error. Its outcome then stands.

    :param event: type and payload of the event of the refusal; None for no event
    :returns: the stored result of the other delivery
    :raises PlacementException: the stored error of the other delivery, or the one given
    """
    def store(tx):
        found = requests.of_change(tx, [request.request_id]).get(request.request_id)
        if found is None:
            requests.insert(tx, [request.row(of_error(error))])
            outbox = Outbox(request.request_id)
            if event:
                outbox.add(*event)
            outbox.write(tx)
        return found

    try:
        found = database.write(store, request.method)
    except exception.PlacementException as failure:
        # The refusal is not stored and so not final: the client may retry.
        raise failure from error
    if found is None:
        raise error
    request.check_same(found)
    return outcome_result(json.loads(found.outcome))


def store_outcome(database: db.Database, request: Request, result: Any) -> None:
    """Store the result of a request that took several transactions, unless one is stored."""
    def write(tx):
        if not requests.of_change(tx, [request.request_id]):
            requests.insert(tx, [request.row(of_result(tx, result))])

    database.write(write, request.method)


def stored_outcome(database: db.Database, request: Request) -> Any:
    """Return the stored result of a request; None if it was not settled yet.

    :raises RequestIdReused: if another request had the same id
    :raises PlacementException: the error with which the request was refused
    """
    row = _checked_row(database, request)
    if row is None:
        return None
    return outcome_result(json.loads(row.outcome))


def check_id(database: db.Database, request: Request) -> None:
    """Check that no other request has had the id of this one.

    :raises RequestIdReused: if another one had
    """
    _checked_row(database, request)


def _checked_row(database, request):
    """Return the row of the stored outcome of a request; None if it was not settled yet."""
    with database.reader() as tx:
        row = requests.find(tx, [request.request_id]).get(request.request_id)
    if row is not None:
        request.check_same(row)
    return row
