# SPDX-License-Identifier: Apache-2.0
"""Reading events from the stream: in order, each once, from any place, across reconnections."""

import collections
import contextlib
import datetime
import logging
import time

from amqp import exceptions as amqp_exceptions

from placement_rpc import exception
from placement_rpc.amqp import topology
from placement_rpc.amqp.broker import FAILURES, Broker, raw_channel, wait
from placement_rpc.notifications.event import Event
from placement_rpc.notifications.sequence import Sequence

LOG = logging.getLogger(__name__)

_PREFETCH = 200
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_PATIENCE = 30
# Seconds after which a stream that says it is empty is believed.
_EMPTY = 2
_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


class StreamReader:
    """Reads the stream of events.

    An event that comes again is dropped. A position that is left out is told to ``on_gap``:
    the stream was cut before it was read, or events were pruned before they could be sent
    again. One that fills a gap is given out when it comes, late. What is no event of this
    service, or one that is too new for this release, is passed over, with a line in the log.

    :param broker: str, as ``rabbit://user:password@host:port/``, or
        :class:`placement_rpc.amqp.broker.Broker`
    :param stream: str, the stream's name
    :param start: int, the position to begin with; a datetime to begin at; ``"next"`` for what
        comes from now on
    :param on_gap: callable of the position that was expected and the one that came
    """

    def __init__(self, broker, stream, start="next", on_gap=None):
        self._broker = Broker.at(broker)
        self._stream = stream
        self._start = start
        # What is missing before the first event is a gap, too.
        self._sequence = Sequence(
            {"position": start - 1} if isinstance(start, int) else None, on_gap)
        #: int, the place in the stream of the last message that was read; None before the first
        self.offset = None
        self._messages = collections.deque()

    @property
    def position(self):
        """int, the position of the last event that was given out; None before the first"""
        return self._sequence.position

    def events(self, idle=None, tail=None, patience=_PATIENCE):
        """Give out events as they come.

        :param idle: float, seconds without a message after which to end; None for never
        :param tail: int, a place in the stream, of :meth:`tail`, that is to be reached before
            ``idle`` counts; None for none
        :param patience: float, seconds without a message before that place after which something
            must be wrong
        :returns: generator of :class:`placement_rpc.notifications.event.Event`
        :raises ServiceUnavailable: when there is no such stream, or the tail does not come
        """
        pause, self._quiet_since = _FIRST_PAUSE, time.monotonic()
        while not self._over(idle, tail, patience):
            try:
                with self._consuming(self._from()) as connection:
                    self._quiet_since = time.monotonic()
                    while not self._over(idle, tail, patience):
                        for event in self._received(connection):
                            yield event
                            pause = _FIRST_PAUSE
            except amqp_exceptions.NotFound:
                raise _no_stream(self._stream) from None
            except FAILURES as error:
                LOG.warning("The stream is away: %s", error)
                time.sleep(pause)
                pause = min(_LONGEST_PAUSE, 2 * pause)

    def _over(self, idle, tail, patience):
        quiet = time.monotonic() - self._quiet_since
        if tail is None or (self.offset is not None and self.offset >= tail):
            return idle is not None and quiet >= idle
        if quiet >= patience:
            raise exception.ServiceUnavailable(
                reason=f"nothing came from stream {self._stream!r} for {patience:.0f} s")
        return False

    def tail(self):
        """A place near the end of the stream: that of the first message of its last chunk.

        :returns: int; None when the stream is empty
        :raises ServiceUnavailable: when there is no such stream, or no broker
        """
        try:
            with self._consuming("last") as connection:
                began = time.monotonic()
                while not self._messages:
                    wait(connection, 0.1)
                    quiet = time.monotonic() - began
                    if quiet > _EMPTY and not topology.depth(connection, self._stream):
                        return None
                    if quiet > _PATIENCE:
                        raise exception.ServiceUnavailable(
                            reason=f"nothing came from stream {self._stream!r}")
                return self._messages[0].headers["x-stream-offset"]
        except amqp_exceptions.NotFound:
            raise _no_stream(self._stream) from None
        except FAILURES as error:
            raise exception.ServiceUnavailable(reason=f"{type(error).__name__}") from error

    @contextlib.contextmanager
    def _consuming(self, offset):
        self._messages.clear()
        with self._broker.connected() as connection:
            channel = raw_channel(connection)
            channel.basic_qos(0, _PREFETCH, False)
            channel.basic_consume(
                self._stream, callback=self._messages.append,
                arguments={"x-stream-offset": offset})
            yield connection

    def _from(self):
        """Where in the stream to begin, or to go on."""
        if self.offset is not None:
            return self.offset + 1
        if isinstance(self._start, int):
            # Offsets count deliveries, and positions events: only reading tells.
            return "first"
        if isinstance(self._start, datetime.datetime):
            return max(self._start, _EPOCH)
        return self._start

    def _received(self, connection):
        """Wait a moment for messages; gives out the events among them."""
        wait(connection, 1)
        while self._messages:
            message = self._messages.popleft()
            event = self._event(message)
            if event is not None:
                yield event
            self.offset = message.headers.get("x-stream-offset", self.offset)
            self._quiet_since = time.monotonic()
            message.channel.basic_ack(message.delivery_tag)

    def _event(self, message):
        """:returns: the message's event; None where there is none, or none to give out"""
        try:
            event = Event.of_message(message.body)
        except ValueError as error:
            LOG.warning("A message that is no event is passed over: %s", error)
            return None
        if not self._sequence.is_new(event) or self._is_too_early(event):
            return None
        self._sequence.tell_gap(event)
        self._sequence.add(event)
        return event

    def _is_too_early(self, event):
        # A time finds a chunk of the stream, not a message.
        return isinstance(self._start, datetime.datetime) and event.time < self._start


def _no_stream(name):
    return exception.ServiceUnavailable(
        reason=f"there is no stream {name!r}; it is made when a conductor publishes the first "
               "event")
