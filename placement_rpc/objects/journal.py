# SPDX-License-Identifier: Apache-2.0
"""Events of a change, written in the transaction of the change (DESIGN rule 7)."""

import datetime
import json
import uuid

from placement_rpc.db.queries import events


class Journal:
    """Collects the events of one request.

    No change is without its event and no event without its change: the rules add to the journal
    where they change something, and whoever runs the transaction writes it there.

    :param request_id: str, of the request that causes them; None for none
    """

    def __init__(self, request_id=None):
        self._request_id = request_id
        self._rows = []

    def add(self, event_type, payload):
        """Note that something happened.

        :param event_type: str, of :data:`placement_rpc.notifications.catalog.EVENTS`
        :param payload: :class:`placement_rpc.objects.payloads.EventPayload`
        """
        at = datetime.datetime.now(datetime.UTC)
        payload.event_id = str(uuid.uuid4())
        payload.position = None
        payload.occurred_at = at.isoformat()
        payload.request_id = self._request_id
        self._rows.append((payload.event_id, event_type, at.replace(tzinfo=None),
                           json.dumps(payload.obj_to_primitive())))

    def write(self, tx, *others):
        """Write the events, and those of other journals, in one statement."""
        rows = [row for journal in (self, *others) for row in journal._rows]
        if rows:
            events.insert(tx, rows)
