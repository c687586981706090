# SPDX-License-Identifier: Apache-2.0
"""Events for clients without access to the broker: JSON lines, or server-sent events."""

import contextlib
import json
import logging
import re
import time

from placement_rpc import exception
from placement_rpc.http import errors, streams
from placement_rpc.http.call import Answer

LOG = logging.getLogger(__name__)

LINES, STREAM = "application/x-ndjson", "text/event-stream"
_MAX_LIMIT = 1000
_POSITION = re.compile(r"[0-9]{1,18}", re.ASCII)


def listed(call):
    """List the events after a position, at once or as soon as there are any."""
    call.refuse_condition()
    after = _after(call)
    if call.wants(STREAM, LINES):
        if call.query.keys() - {"after"}:
            raise errors.BadRequest(
                reason="limit and wait apply to application/x-ndjson only; omit them for "
                       "text/event-stream")
        first = call.api.list_events(call.context, after, streams.PAGE)
        return Answer(stream=_stream(call, first), content_type=STREAM)
    limit = min(_MAX_LIMIT, int(call.query.get("limit", _MAX_LIMIT)))
    ends = time.monotonic() + int(call.query.get("wait", 0))
    page = call.api.list_events(call.context, after, limit)
    if not page.events and time.monotonic() < ends:
        with call.follower.places.place(call.user):
            call.follower.wait(page.position, ends - time.monotonic())
        page = call.api.list_events(call.context, page.position, limit)
    return Answer(position=page.position, content_type=LINES,
                  stream=[f"{json.dumps(event)}\n".encode() for event in page.events])


def _after(call):
    """Return the position to begin after; None to begin with the oldest event that is kept."""
    # A client that reconnects requests the same address, and gives the last position it saw here.
    text = call.header("Last-Event-ID")
    if text is None:
        text = call.query.get("after")
    elif not _POSITION.fullmatch(text):
        raise errors.BadRequest(
            reason=f"Last-Event-ID {text[:40]!r} is not a position, which is a whole number")
    if text == "now":
        return call.position()
    return None if text is None else int(text)


def _stream(call, first):
    """Return what the server's thread sends of a stream: all of it, or only the beginning.

    :raises TooManyWaiting: if all places are taken
    """
    if call.hand_over is None:
        return _Stream(call, first)
    call.hand_over(call.streams.client(call.user, first))
    return [streams.opening(first)]


class _Stream:
    """Server-sent events until the client disconnects or the service stops.

    :raises TooManyWaiting: on construction, if all places for waiting requests are taken
    """

    def __init__(self, call, page):
        self._call = call
        self._place = contextlib.ExitStack()
        self._place.enter_context(call.follower.places.place(call.user))
        self._events = self._follow(page)

    def __iter__(self):
        return self._events

    def close(self):
        """Release the place. WSGI servers always call this at the end of an answer (PEP 3333)."""
        self._events.close()
        self._place.close()

    def _follow(self, page):
        call = self._call
        yield streams.opening(page)
        while not call.follower.closed:
            yield streams.encoded(page.events)
            if not page.events and not call.follower.wait(page.position, streams.KEEP_ALIVE):
                yield b": nothing new\n\n"
            try:
                page = call.api.list_events(call.context, page.position, streams.PAGE)
            except exception.PlacementException as error:
                LOG.warning("Ending a stream of events: %s", error)
                yield streams.failure(error)
                return
