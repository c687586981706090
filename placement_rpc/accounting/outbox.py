# SPDX-License-Identifier: Apache-2.0
"""Events of a change, written in the transaction of the change (DESIGN rule 7).

Beside what it tells the world, each event says for the candidate indexes what its transaction
touched: JSON of ``read``, the uuid of a provider to be read again; ``classes``, true where the
resource classes changed; or ``used``, a list of provider id, its generation before and after, and
class ids each with what is used now. Empty where no candidate is touched. NULL, where an event of
allocations came without, makes an index doubt itself.
"""

import datetime
import json
import uuid

from placement_rpc.db import api as db
from placement_rpc.db.queries import events
from placement_rpc.objects.base import backported


def primitive(cls, **data):
    """What an object of the class looks like on its way, without making the object.

    :param data: its fields, as they travel
    """
    return {"placement_object.name": cls.__name__,
            "placement_object.namespace": cls.OBJ_PROJECT_NAMESPACE,
            "placement_object.version": cls.VERSION, "placement_object.data": data}


class Outbox:
    """Collects the events of one request.

    No change is without its event and no event without its change: the rules add to the outbox
    where they change something, and whoever runs the transaction writes it there.

    :param request_id: str, of the request that causes them; None for none
    """

    def __init__(self, request_id=None):
        self._request_id = request_id
        self._rows = []

    def add(self, event_type, payload):
        """Note that something happened.

        :param event_type: str, of :data:`placement_rpc.objects.catalog.EVENTS`
        :param payload: :class:`placement_rpc.objects.payloads.EventPayload`
        """
        # What changed on an object since when means nothing to who receives an event.
        payload.forget_changes()
        self._add(event_type, payload.obj_to_primitive())

    def add_plain(self, event_type, payload_class, **data):
        """As :meth:`add`, for the events of the claim path.

        The data comes from the store and was coerced on its way there; to do so once more for
        every field costs four times as much as the rest.

        :param payload_class: the payload's class
        :param data: the payload's own fields, as they travel
        """
        self._add(event_type, primitive(payload_class, **data))

    def _add(self, event_type, payload):
        touched = _touched(event_type, payload["placement_object.data"])
        at = datetime.datetime.now(datetime.UTC)
        event_id = str(uuid.uuid4())
        payload["placement_object.data"] |= {
            "event_id": event_id, "position": None, "occurred_at": at.isoformat(),
            "request_id": self._request_id}
        self._rows.append(
            (event_id, event_type, at.replace(tzinfo=None), json.dumps(payload), touched))

    def write(self, tx):
        """Write the events, in one statement."""
        rows = self.rows(tx)
        if rows:
            events.insert(tx, rows)

    def rows(self, tx, *others, used=None):
        """The rows of the events, and of those of other outboxes.

        :param used: list, what the transaction left used of which providers, as above; the last
            event says it for all of them
        :returns: list of tuples of event_id, event_type, occurred_at, payload, touched
        """
        rows = [row for outbox in (self, *others) for row in outbox._rows]
        versions = tx.info.get(db.VERSIONS)
        if versions:
            rows = [(*row, json.dumps(backported(json.loads(payload), versions)), touched)
                    for *row, payload, touched in rows]
        if used is not None:
            rows = [(*row, touched or "") for *row, touched in rows]
        if used:
            rows[-1] = (*rows[-1][:-1], json.dumps({"used": used}, separators=(",", ":")))
        return rows


def _touched(event_type, data):
    """What an event says to the indexes; None where the transaction has to say it."""
    if event_type.startswith(("resource_provider.", "inventory.")):
        return json.dumps({"read": data["provider_uuid"]})
    if event_type.startswith("resource_class."):
        return '{"classes":true}'
    return None if event_type in _OF_HOLDINGS else ""


_OF_HOLDINGS = frozenset(("allocation.create", "allocation.update", "allocation.delete"))


def changing(context, change, request_id=None):
    """Make a change in the transaction of the request that is under way, or in one of its own.

    :param context: :class:`placement_rpc.context.RequestContext` with a database
    :param change: callable that takes the connection and the :class:`Outbox`
    :param request_id: str, of the request that causes it
    :returns: what it returned
    """
    if context.transaction is not None:
        return change(*context.transaction)
    return written(context.database, change, request_id)


def written(database, change, request_id=None):
    """Make a change, and tell of it, in a transaction.

    :param database: :class:`placement_rpc.db.api.Database`
    :param change: as of :func:`changing`
    """
    def attempt(tx):
        outbox = Outbox(request_id)
        result = change(tx, outbox)
        outbox.write(tx)
        return result

    return database.write(attempt, "change")
