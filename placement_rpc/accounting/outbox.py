# SPDX-License-Identifier: Apache-2.0
"""Events of a change, written in the transaction of the change (DESIGN rule 7).

In addition to its payload, each event row has a column ``touched`` that tells the candidate
indexes what the transaction changed. It is JSON with one of these keys:

* ``read``: the uuid of a provider that is to be read again;
* ``classes``: true if the resource classes changed;
* ``traits``: true if a trait was created or deleted;
* ``used``: a list of provider id, its generation before and after, and a list of class ids, each
  followed by what is used of it now.

The column is empty if no candidate is affected. NULL makes an index stale: for an event of
allocations that does not say what it touched, and for one that says that everything has to be read
again.
"""

import contextlib
import datetime
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from placement_rpc.context import Cause, RequestContext, cause
from placement_rpc.db import api as db
from placement_rpc.db.queries import events
from placement_rpc.objects import catalog
from placement_rpc.objects.base import PlacementObject, backported
from placement_rpc.objects.catalog import Effect
from placement_rpc.objects.payloads import EventPayload

_Result = TypeVar("_Result")


def primitive(cls: type[PlacementObject], **data: Any) -> dict[str, Any]:
    """Return the serialized form of an object without making the object.

    :param data: its fields in their serialized form
    """
    return {"placement_object.name": cls.__name__,
            "placement_object.namespace": cls.OBJ_PROJECT_NAMESPACE,
            "placement_object.version": cls.VERSION, "placement_object.data": data}


class Outbox:
    """Collects the events of one request.

    There is no change without its event and no event without its change: the rules add an event
    where they change something, and the transaction that makes the change writes the outbox.

    :param request_id: id of the request that causes the events; None for none
    :param caused_by: callable that returns who made that request and why, as
        :func:`placement_rpc.context.cause` does
    """

    def __init__(self, request_id: str | None = None,
                 caused_by: Callable[[], Cause] = cause):
        self._request_id = request_id
        self._initiator, self._reason = caused_by()
        self._rows: list[events.NewEvent] = []

    def add(self, event_type: str, payload: EventPayload) -> None:
        """Record an event.

        :param event_type: a key of :data:`placement_rpc.objects.catalog.EVENTS`
        """
        # A listener has no use for the names of the object's changed fields.
        payload.forget_changes()
        self._add(event_type, payload.obj_to_primitive())

    def add_plain(self, event_type: str, payload_class: type[EventPayload], **data: Any) -> None:
        """As :meth:`add`, for the events of the claim path.

        The data comes from the store and was coerced before it was stored; coercing every field
        again costs four times as much as the rest.

        :param data: the payload's own fields in their serialized form
        """
        self._add(event_type, primitive(payload_class, **data))

    @contextlib.contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Forget the events that the block records if it raises an error."""
        count = len(self._rows)
        try:
            yield
        except BaseException:
            del self._rows[count:]
            raise

    def _add(self, event_type, payload):
        data = payload["placement_object.data"]
        touched = _touched(event_type, data)
        released = data.get("consumer_uuid") if event_type == "allocation.delete" else None
        at = datetime.datetime.now(datetime.UTC)
        event_id = str(uuid.uuid4())
        data |= {
            "event_id": event_id, "position": None, "occurred_at": at.isoformat(),
            "request_id": self._request_id, "epoch": None, "initiator": self._initiator}
        if self._reason is not None:
            data["reason"] = self._reason
        self._rows.append(events.NewEvent(
            event_id, event_type, at.replace(tzinfo=None), json.dumps(payload), touched,
            released))

    def write(self, tx: db.Connection, while_held: bool = False) -> None:
        """Write the events, in one statement.

        :param while_held: for the one that holds the store
        :raises StoreHeld: if the store is held by another
        """
        rows = self.rows(tx)
        if rows:
            (events.insert_while_held if while_held else events.insert)(tx, rows)

    def rows(self, tx: db.Connection, *others: "Outbox", used: list[list] | None = None,
             ) -> list[events.NewEvent]:
        """Return the rows of the events, and of those of other outboxes.

        :param used: the used amounts after the transaction, by provider, as above. The last event
            of allocations says it for all of them; None if there are no events of allocations.
        """
        rows = [row for outbox in (self, *others) for row in outbox._rows]
        versions = tx.info.get(db.VERSIONS)
        if versions:
            rows = [row._replace(payload=json.dumps(
                backported(json.loads(row.payload), versions))) for row in rows]
        return rows if used is None else _with_used(rows, used)


def _with_used(rows, used):
    """Write what is used now into the last event of allocations, and nothing into the others."""
    text = json.dumps({"used": used}, separators=(",", ":")) if used else ""
    done = []
    for row in reversed(rows):
        if row.touched is None:
            row, text = row._replace(touched=text), ""
        done.append(row)
    return done[::-1]


def _touched(event_type, data):
    """Return ``touched`` of an event; None if the transaction has to determine it, or for all."""
    effect = catalog.EVENTS[event_type].effect
    if effect is Effect.PROVIDER:
        return json.dumps({"read": data["provider_uuid"]})
    if effect in (Effect.CLASSES, Effect.TRAITS):
        return json.dumps({effect.value: True}, separators=(",", ":"))
    return None if effect in (Effect.USED, Effect.EVERYTHING) else ""


def changing(context: RequestContext, change: Callable[[db.Connection, Outbox], _Result],
             request_id: str | None = None) -> _Result:
    """Make a change in the transaction of the current request, or in a transaction of its own.

    :param context: a context with a database
    :param request_id: id of the request that causes the change
    :returns: the result of the change
    """
    if context.transaction is not None:
        return change(*context.transaction)
    return written(context.database, change, request_id)


def written(database: db.Database, change: Callable[[db.Connection, Outbox], _Result],
            request_id: str | None = None) -> _Result:
    """Make a change and write its events, in one transaction.

    :param change: run again if concurrent writers collide
    :param request_id: id of the request that causes the change
    :returns: the result of the change
    """
    def attempt(tx):
        outbox = Outbox(request_id)
        result = change(tx, outbox)
        outbox.write(tx)
        return result

    return database.write(attempt, "change")
