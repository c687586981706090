# SPDX-License-Identifier: Apache-2.0
"""Settling a request exactly once (DESIGN rule 4).

The outcome of a change is stored in the transaction of the change, under the id that the
client made. A request that comes again, because an answer was lost or the bus delivered it
twice, is answered with what was stored.
"""

import dataclasses
import json

from placement_rpc import exception
from placement_rpc.accounting import fingerprint as plain_data
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.db import api as db
from placement_rpc.db.queries import requests
from placement_rpc.objects import base, fields
from placement_rpc.objects.request_result import outcome_result


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """A request for a change.

    :param request_id: str, made by the client
    :param method: str, name of the call
    :param fingerprint: str, of the call's arguments
    """

    request_id: str
    method: str
    fingerprint: str

    @classmethod
    def of(cls, request_id, method, arguments):
        """:param arguments: dict of argument name to value, what the request asks for"""
        request_id = fields.RequestId().coerce(None, "request_id", request_id)
        return cls(request_id, method, plain_data.fingerprint(method, arguments))

    def part(self, number, arguments):
        """The request that one entry of a batch is.

        :param number: int, its place in the batch
        :param arguments: dict, what this entry asks for
        """
        # The first has the batch's own id, which nothing else can then have; no client can make
        # the others, since theirs have no such sign.
        request_id = f"{self.request_id}#{number}" if number else self.request_id
        return Request(request_id, self.method, plain_data.fingerprint(
            self.method, [self.fingerprint, arguments]))

    def check_same(self, row):
        """:raises RequestIdReused: when the stored request was another one"""
        if row.fingerprint != self.fingerprint:
            raise exception.RequestIdReused(request_id=self.request_id, method=row.method)

    def row(self, outcome):
        """:returns: tuple, the row by which the outcome is stored"""
        return self.request_id, self.method, self.fingerprint, json.dumps(outcome)


def of_result(tx, result):
    """:param result: a versioned object or JSON values; :returns: dict, to be stored"""
    return {"result": base.Serializer().serialize_entity(
        None, result, tx.info.get(db.VERSIONS))}


def of_error(error):
    """:param error: a PlacementException; :returns: dict, to be stored"""
    return {"error": {"code": error.code, "kwargs": error.kwargs}}


def run_once(context, request, change):
    """Make a change exactly once.

    :param context: :class:`placement_rpc.context.RequestContext` with a database
    :param request: :class:`Request`
    :param change: callable that takes the connection of the transaction and a
        :class:`~placement_rpc.accounting.outbox.Outbox`, makes the change and returns the
        result; run anew when concurrent writers collide
    :returns: the result of the change, or the stored one
    :raises RequestIdReused: when another request had the same id
    :raises PlacementException: what the change raised, now or when it was first asked for
    """
    def attempt(tx):
        found = requests.find(tx, [request.request_id]).get(request.request_id)
        if found:
            request.check_same(found)
            return json.loads(found.outcome), None
        # After the look for an outcome: what was done in time is answered however late it is
        # asked for again.
        context.check_deadline()
        outbox = Outbox(request.request_id)
        result = change(tx, outbox)
        # And after whatever locks the change had to wait for.
        context.check_deadline()
        outbox.write(tx)
        requests.insert(tx, [request.row(of_result(tx, result))])
        return None, result

    try:
        stored, result = context.database.write(attempt, request.method)
    except exception.RequestIdReused:
        raise
    except (exception.NotFound, exception.Conflict, exception.InvalidInput) as error:
        return store_refusal(context.database, request, error)
    return outcome_result(stored) if stored else result


def store_refusal(database, request, error, event=None):
    """Refuse a request for good: raise the error, and store it as the outcome.

    Unless there is an outcome already: then another delivery of the same request was faster,
    and what stood in the way of this one may have been its very success.

    :param error: the PlacementException
    :param event: tuple of event type and payload that goes with the refusal; None for none
    :returns: the stored result
    :raises PlacementException: the stored error, or the one given
    """
    def store(tx):
        found = requests.find(tx, [request.request_id]).get(request.request_id)
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
        # Not stored, so not final yet: the client asks again.
        raise failure from error
    if found is None:
        raise error
    request.check_same(found)
    return outcome_result(json.loads(found.outcome))


def store_outcome(database, request, result):
    """Keep a result that was come to in several transactions; what is there already stays."""
    def write(tx):
        if not requests.find(tx, [request.request_id]):
            requests.insert(tx, [request.row(of_result(tx, result))])

    database.write(write, request.method)


def stored_outcome(database, request):
    """What is stored for a request.

    :returns: the result of the request when it was settled before; None when it was not
    :raises RequestIdReused: when another request had the same id
    :raises PlacementException: what it was refused with
    """
    with database.reader() as tx:
        row = requests.find(tx, [request.request_id]).get(request.request_id)
    if row is None:
        return None
    request.check_same(row)
    return outcome_result(json.loads(row.outcome))
