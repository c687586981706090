# SPDX-License-Identifier: Apache-2.0
"""Reading events from the stream: in order, each once, from any place, across reconnections."""

import datetime
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator

from amqp import exceptions as amqp_exceptions

from placement_rpc import bodies, exception
from placement_rpc.amqp import topology
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.consumer import WINDOW, Consumer, Unreadable, body_of
from placement_rpc.amqp.frames import FAILURES
from placement_rpc.amqp.outgoing import Outgoing
from placement_rpc.amqp.reconnect import Reconnect
from placement_rpc.notifications.event import Event
from placement_rpc.notifications.sequence import Sequence

LOG = logging.getLogger(__name__)

_PATIENCE = 30
# Seconds to wait for a message at a time.
_WAIT = 1.0
# Seconds without a message after which a stream of depth 0 counts as empty.
_EMPTY = 2
# The header of a mark, a message without an event that shows where a stream ended.
_MARK = "placement_mark"
# Where the broker can begin.
_STARTS = ("first", "last", "next")
# How many messages before the end to read first, and at most.
_BACK, _FARTHEST = 1000, 100_000
# The header in which the broker states a message's offset, as it is on the wire.
_OFFSET = b"\x0fx-stream-offsetl"
_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


class StreamNotFound(exception.ServiceUnavailable):
    """There is no such stream."""


class StreamReader:
    """Reads the stream of events.

    A duplicate is dropped. A gap in the positions is reported to ``on_gap``: the stream was
    truncated before it was read, or events were pruned before they could be published again. An
    event that fills a gap is returned when it arrives, out of order. A message that is not an
    event of this service, or is too new for this release, is skipped and logged. So is a message
    that cannot be read; it may have been an event, and so ``on_gap`` is called too.

    :param broker: a URL such as ``rabbit://user:password@host:port/``, or a
        :class:`placement_rpc.amqp.broker.Broker`
    :param stream: the stream's name
    :param start: the position to begin with, from 1 on; a datetime with a zone to begin at;
        ``"first"`` or ``"last"`` for what the broker has, and ``"next"`` for events that are
        published from now on
    :param on_gap: callable of the position that was expected and the one that came, which are the
        same for a message that cannot be read; None for a line in the log
    :param limits: what a message may be; a message that exceeds them is skipped and logged
    :raises InvalidInput: for a start of another kind
    """

    def __init__(self, broker: Broker | str, stream: str,
                 start: int | str | datetime.datetime = "next",
                 on_gap: Callable[[int, int], object] | None = None,
                 limits: bodies.Limits = bodies.ANSWERS) -> None:
        self._broker = Broker.at(broker)
        self._stream = stream
        self._start = _checked(start)
        self._limits = limits
        # Events that are missing before the first one are a gap, too.
        self._sequence = Sequence(
            {"position": start - 1} if isinstance(start, int) else None, on_gap)
        #: The offset in the stream of the last message that was read; None before the first.
        self.offset: int | None = None
        self._quiet_since = 0.0

    @property
    def position(self) -> int | None:
        """The position of the last event that was returned; None before the first"""
        return self._sequence.position

    def events(self, idle: float | None = None, tail: int | None = None,
               patience: float = _PATIENCE) -> Iterator[Event]:
        """Yield events as they arrive.

        :param idle: seconds without a message after which to end; None for never
        :param tail: an offset in the stream, as of :meth:`tail`, that has to be reached before
            ``idle`` counts; None for none
        :param patience: seconds without a message before that offset after which to raise
        :raises ServiceUnavailable: if there is no such stream, or the tail does not come
        """
        def is_over():
            return self._is_over(idle, tail, patience)

        self._quiet_since = time.monotonic()
        for session in Reconnect(
                f"Stream {self._stream}", self._broker, threading.Event(),
                largest_body=self._limits.size).sessions(is_over):
            with session as connection:
                consumer = self._consume(connection, self._from())
                self._quiet_since = time.monotonic()
                while not is_over():
                    yield from self._received(consumer)

    def _is_over(self, idle, tail, patience):
        quiet = time.monotonic() - self._quiet_since
        if tail is None or (self.offset is not None and self.offset >= tail):
            return idle is not None and quiet >= idle
        if quiet >= patience:
            raise exception.ServiceUnavailable(
                reason=f"nothing came from stream {self._stream!r} for {patience:.0f} s")
        return False

    def last_events(self, position: int) -> list[Event]:
        """Return the events at the end of the stream, back to one with at least a position.

        Events that were published again may follow it, and messages that are no events. A pause
        does not show where a stream ends, and a replica may not have the newest messages yet. So a
        mark is published, and all that comes before it is read.

        :returns: list of :class:`Event`, duplicates among them; empty for a stream that is empty,
            or that does not exist
        :raises ServiceUnavailable: if there is no broker
        """
        offset: int | str = "last"
        step, mark, is_sent = _BACK, str(uuid.uuid4()), False
        while True:
            try:
                with self._broker.connected() as connection:
                    consumer = self._consume(connection, offset)
                    if not is_sent:
                        self._send_mark(consumer, mark)
                        is_sent = True
                    found, first = self._read_to_mark(consumer, mark)
            except StreamNotFound:
                return []
            except FAILURES as error:
                raise exception.ServiceUnavailable(
                    reason=f"{type(error).__name__}: {str(error)[:200]}") from error
            if first <= 0 or step > _FARTHEST or (
                    found and max(event.position for event in found) >= position):
                return found
            offset, step = max(0, first - step), step * 4

    def _send_mark(self, consumer, mark):
        consumer.send(Outgoing("{}", "", self._stream, headers={_MARK: mark}), _PATIENCE)

    def _read_to_mark(self, consumer, mark):
        """Return the events before a mark, and the offset of the first message.

        :raises ServiceUnavailable: if the mark does not come
        """
        found, first, quiet_since = [], None, time.monotonic()
        while time.monotonic() < quiet_since + _PATIENCE:
            for message in (received := consumer.receive(_WAIT)):
                first = _offset_of(message, -1) if first is None else first
                if _mark_of(message) == mark:
                    return found, first
                event = self._opened(message, LOG.debug)
                if event is not None:
                    found.append(event)
            if received:
                consumer.acknowledge(received)
                quiet_since = time.monotonic()
        raise exception.ServiceUnavailable(
            reason=f"the end of stream {self._stream!r} did not come for {_PATIENCE} s")

    def _is_empty(self, connection, quiet):
        """Return whether nothing comes since the stream is empty.

        :raises ServiceUnavailable: if nothing comes for too long from one that is not
        """
        if quiet > _EMPTY and not topology.depth(connection, self._stream):
            return True
        if quiet > _PATIENCE:
            raise exception.ServiceUnavailable(
                reason=f"nothing came from stream {self._stream!r}")
        return False

    def tail(self) -> int | None:
        """Return an offset near the end of the stream: of the first message of its last chunk.

        :returns: the offset; None if the stream is empty
        :raises ServiceUnavailable: if there is no such stream, or no broker
        """
        try:
            with self._broker.connected() as connection:
                consumer = self._consume(connection, "last")
                began = time.monotonic()
                while not (received := consumer.receive(0.1, 1)):
                    if self._is_empty(connection, time.monotonic() - began):
                        return None
                return _offset_of(received[0], -1)
        except FAILURES as error:
            raise exception.ServiceUnavailable(
                reason=f"RabbitMQ at {', '.join(node.address for node in self._broker.nodes)}: "
                       f"{type(error).__name__}: {str(error)[:200]}") from error

    def _consume(self, connection, offset):
        consumer = Consumer(connection)
        try:
            consumer.consume(self._stream, WINDOW, {"x-stream-offset": offset})
        except amqp_exceptions.NotFound:
            raise StreamNotFound(
                reason=f"there is no stream {self._stream!r}; it is created when a conductor "
                       "publishes the first event") from None
        return consumer

    def _from(self):
        """Return the offset specification at which to begin, or to continue."""
        if self.offset is not None:
            return self.offset + 1
        if isinstance(self._start, int):
            # Offsets count messages and positions count events: a position is found by reading.
            return "first"
        if isinstance(self._start, datetime.datetime):
            return max(self._start, _EPOCH)
        return self._start

    def _received(self, consumer):
        """Wait a moment for messages; yield the events among them."""
        received = consumer.receive(_WAIT)
        if received:
            # Only so that more come: after a loss the reader continues by the offset.
            consumer.acknowledge(received)
        for message in received:
            event = self._event(message)
            if event is not None:
                yield event
            self.offset = _offset_of(message, -1 if self.offset is None else self.offset)
            self._quiet_since = time.monotonic()

    def _event(self, message):
        """Return the event in a message; None for other messages, duplicates and early events."""
        event = self._opened(message, LOG.warning, self._sequence.report_unreadable)
        if event is None:
            return None
        if not self._sequence.is_new(event) or self._is_too_early(event):
            return None
        self._sequence.report_gap(event)
        self._sequence.add(event)
        return event

    def _opened(self, message, log, report_unreadable=lambda: None):
        """Return the event in a message; None for other messages."""
        if _mark_of(message) is not None:
            return None
        try:
            return Event.of_message(
                body_of(message), (message.headers or {}).get("compression"), self._limits)
        except Unreadable as error:
            log("A message that cannot be read is skipped: %s", error)
            report_unreadable()
        except Exception as error:
            log("A message that is no event is skipped: %s", error or repr(error))
        return None

    def _is_too_early(self, event):
        # A stream opened at a time begins with a whole chunk, which may begin earlier.
        return isinstance(self._start, datetime.datetime) and event.time < self._start


def _mark_of(message):
    """Return the mark that a message is; None if it is none."""
    return message.headers.get(_MARK) if message.unreadable is None and message.headers else None


def _offset_of(message, last):
    """Return the offset of a message in the stream.

    :param last: the offset of the message before it
    """
    if message.unreadable is None:
        return message.headers["x-stream-offset"]
    # The broker's own entry is the last of the headers, one of which may be what is broken.
    _, name, rest = _table_of(message.raw_header).rpartition(_OFFSET)
    found = int.from_bytes(rest[:8], "big") if name and len(rest) >= 8 else last
    return max(found, last + 1)


def _table_of(header):
    """Return the bytes of the table of headers in a frame with the properties of a message."""
    flags, at = int.from_bytes(header[12:14], "big"), 14
    for before in (1 << 15, 1 << 14):
        if flags & before:
            at += 1 + int.from_bytes(header[at:at + 1], "big")
    return header[at + 4:at + 4 + int.from_bytes(header[at:at + 4], "big")]


def _checked(start):
    """Return a start of a reader.

    :raises InvalidInput: if a reader cannot begin there
    """
    if (start in _STARTS if isinstance(start, str) else
            start.tzinfo is not None if isinstance(start, datetime.datetime) else
            isinstance(start, int) and not isinstance(start, bool) and start > 0):
        return start
    raise exception.InvalidInput(
        what="start", reason=f"{start!r} is neither a position from 1 on, nor a datetime with a "
                             f"zone, nor one of {', '.join(_STARTS)}")
