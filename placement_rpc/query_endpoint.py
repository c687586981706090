# SPDX-License-Identifier: Apache-2.0
"""The server's end of the calls that look into things: a part of the manager."""

from placement_rpc.exposure import MAX_PAGE, an, as_limit, as_uuid, exposed, having
from placement_rpc.notifications.event import Event
from placement_rpc.objects import event_page, explanation, fields, request


class QueryEndpoint:
    """Calls about events and reasons; :class:`placement_rpc.manager.Manager` has what they work
    on."""

    @exposed
    def explain(self, context, wanted, marker=None, limit=None):
        having(an(request.ResourceRequest, "wanted", wanted), "resources")
        return explanation.ExplanationList.of_looks(wanted, self.candidates.look(
            wanted, as_uuid("marker", marker) if marker is not None else None, as_limit(limit)))

    @exposed
    def verify_index(self, context, after=0, limit=None):
        return self.candidates.verify(
            fields.WholeNumber(maximum=2 ** 62).coerce(None, "after", after),
            as_limit(limit))

    @exposed
    def get_event_positions(self, context):
        return event_page.EventPositions.get(context)

    @exposed
    def list_events(self, context, after=None, limit=None):
        if after is not None:
            after = fields.WholeNumber(maximum=2 ** 63 - 1).coerce(None, "after", after)
        rows, position = event_page.rows_after(context, after, as_limit(limit or MAX_PAGE))
        return event_page.EventPage(position=position, events=[
            {"position": event.position, "event_type": event.event_type,
             "event_id": event.event_id, "occurred_at": event.occurred_at,
             "payload": event.payload} for event in map(Event.of_row, rows)])
