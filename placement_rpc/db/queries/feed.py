# SPDX-License-Identifier: Apache-2.0
"""How the feed of events is read: the last position, its epoch, and events, in one statement.

All of it is then of the same moment. A query of the feed is a union of :func:`head` and of the
events, whose first columns are those of :data:`KEYS`.
"""

from typing import Any, NamedTuple

import sqlalchemy as sa

from placement_rpc.db import models

_events = models.events
_state = models.relay_state

#: The columns that identify an event.
KEYS = (_events.c.id, _events.c.position, _events.c.event_id)


class Since(NamedTuple):
    """The events from a position on.

    :param position: the last position that was assigned
    :param epoch: of the positions
    :param events: rows of id, position, event_id and what else the query has, in the order of
        their ids
    """

    position: int
    epoch: str | None
    events: list[Any]


def head(*others):
    """Return a query of the row that has the last position, and its epoch in place of an event id.

    :param others: further columns of the events, which are null in this row
    """
    return sa.select(
        sa.literal(0).label("id"), _state.c.last_position.label("position"),
        sa.cast(_state.c.epoch, _events.c.event_id.type).label("event_id"),
        *(sa.cast(sa.null(), each.type).label(each.name) for each in others))


def since(tx, query, values):
    """Execute a query of the feed, and return :class:`Since`."""
    position, epoch, events = 0, None, []
    for row in tx.execute(query, values):
        if row[0]:
            events.append(row)
        else:
            _, position, epoch, *_ = row
    events.sort(key=lambda row: row[0])
    return Since(position, epoch, events)
