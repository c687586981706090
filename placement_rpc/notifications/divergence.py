# SPDX-License-Identifier: Apache-2.0
"""Whether the store has everything that was published, and what it lacks.

A store that was restored from a backup lacks the newest events of the stream. So does one whose
place was taken by a standby without its last changes. Positions of the stream that the store has
not given, or has given to other events, show it. Positions that no event of the store has are no
difference: old events are deleted, and positions continue after a reconciliation.
"""

import datetime
from collections.abc import Callable, Iterable
from typing import Any

from placement_rpc import exception
from placement_rpc.db.queries import events
from placement_rpc.notifications.event import Event

# Events that are looked up in the store at once.
_PAGE = 500
# Clocks of the machines that write events may differ by so much.
_CLOCKS = datetime.timedelta(minutes=10)


class StreamAhead(Exception):
    """The stream has events that the store lacks."""


def difference(tx: Any, tail: Iterable[Event]) -> str | None:
    """Return in what the store differs from the end of the stream; None if it does not.

    :param tail: the last events of the stream
    """
    tail = list(tail)
    state = events.state(tx)
    last = state.last_position if state else 0
    newest = max((event.position for event in tail), default=0)
    if newest > last:
        return (f"the stream has events up to position {newest}, and the store has given "
                f"positions up to {last} only")
    stored = events.ids_at(tx, {event.position for event in tail})
    for event in tail:
        if _contradicts(event, last, stored):
            return (f"position {event.position} is that of the event {event.event_id} in the "
                    f"stream, and of {stored[event.position]} in the store")
    return None


def emptied(published: int, tail: Iterable[Event]) -> str | None:
    """Return a sentence if the stream has no events although some were published; otherwise None.

    A broker that was replaced has such a stream.

    :param published: position up to which events had been published before the tail was read; 0
        for none
    :param tail: as of :func:`difference`
    """
    if not published or any(tail):
        return None
    return (f"events up to position {published} were published, and the stream has none; "
            "'placement-rpc-manage outbox replay --since TIME' publishes events again")


def compare(database: Any, read: Callable[[datetime.datetime | str], Iterable[Event]],
            ) -> events.Comparison:
    """Compare the stream with the store from a time before they can differ.

    :param read: callable that returns the events of the stream, from a time on or from "first"
    """
    with database.reader() as tx:
        state = events.state(tx)
        # Later positions may have been given after the loss, while the broker was away.
        newest = events.newest_time(tx, state.published_position) if state else None
    last = state.last_position if state else 0
    lost, moved, agreed, end = [], [], last, 0
    for page in _pages(_from_before(read, state, newest)):
        with database.reader() as tx:
            stored = events.ids_at(tx, {event.position for event in page})
            known = events.positions_of(tx, {event.event_id for event in page})
        for event in page:
            end = max(end, event.position)
            # Also at a position that was given meanwhile.
            agrees = known.get(event.event_id) == event.position
            if not agrees and _contradicts(event, last, stored):
                (moved if event.event_id in known else lost).append(event)
                agreed = min(agreed, event.position - 1)
    return events.Comparison(lost, moved, agreed, end, state)


def _from_before(read, state, newest):
    """Yield the events of the stream from one on that the store has, or from the first.

    A clock that was wrong may have made the time at which the reading begins too late.

    :param newest: datetime of the last event that the store says is published; None for none
    """
    now = datetime.datetime.now(datetime.UTC)
    start = newest and newest.replace(tzinfo=datetime.UTC) - _CLOCKS
    if start and start <= now:
        try:
            found = iter(read(start))
            first = next(found, None)
        except exception.ServiceUnavailable:
            # Nothing comes from a time after the last event. If the broker is away, the second
            # read raises this.
            first = None
        if first and first.position <= state.published_position:
            yield first
            yield from found
            return
    yield from read("first")


def _contradicts(event, last, stored):
    """Return whether the store has not given an event's position, or has given it to another.

    :param last: the last position that the store has given
    :param stored: of positions to ids of events, as of ``events.ids_at``
    """
    return event.position > last or stored.get(event.position, event.event_id) != event.event_id


def _pages(found):
    page = []
    for event in found:
        page.append(event)
        if len(page) == _PAGE:
            yield page
            page = []
    yield page
