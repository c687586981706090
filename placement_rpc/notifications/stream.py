# SPDX-License-Identifier: Apache-2.0
"""Reading events from the stream: in order, each once, from any place, across reconnections."""

import collections
import contextlib
import datetime
import logging
import time

from amqp import exceptions as amqp_exceptions

from placement_rpc import exception, rabbit
from placement_rpc.notifications.event import Event
from placement_rpc.notifications.sequence import Sequence

LOG = logging.getLogger(__name__)

_PREFETCH = 200
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0


class StreamReader:
    """Reads the stream of events.

    An event that comes again is dropped. A position that is left out is told to ``on_gap``:
    the stream was cut before it was read, or events were pruned before they could be sent
    again. What is no event of this service, or one that is too new for this release, is passed
    over, with a line in the log.

    :param broker: str, as ``rabbit://user:password@host:port/``, or
        :class:`placement_rpc.rabbit.Broker`
    :param stream: str, the stream's name
    :param start: int, the position to begin with; a datetime to begin at; ``"next"`` for what
        comes from now on
    :param on_gap: callable of the position that was expected and the one that came
    """

    def __init__(self, broker, stream, start="next", on_gap=None):
        self._broker = rabbit.Broker.at(broker)
        self._stream = stream
        self._start = start
        self._sequence = Sequence(on_gap=on_gap)
        self._offset = None
        self._messages = collections.deque()

    @property
    def position(self):
        """int, the position of the last event that was given out; None before the first"""
        return self._sequence.position

    def events(self, idle=None, end=None):
        """Give out events as they come.

        :param idle: float, seconds without an event after which to end; None for never
        :param end: int, the place in the stream after which to end, of :meth:`last_offset`; None
            for no end
        :returns: generator of :class:`placement_rpc.notifications.event.Event`
        :raises ServiceUnavailable: when there is no such stream
        """
        quiet_since, pause = time.monotonic(), _FIRST_PAUSE

        def over():
            return (idle is not None and time.monotonic() - quiet_since >= idle) or (
                end is not None and self._offset is not None and self._offset >= end)

        while not over():
            try:
                with self._consuming(self._from()) as connection:
                    while not over():
                        for event in self._received(connection):
                            yield event
                            quiet_since, pause = time.monotonic(), _FIRST_PAUSE
            except amqp_exceptions.NotFound:
                raise _no_stream(self._stream) from None
            except rabbit.FAILURES as error:
                LOG.warning("The stream is away: %s", error)
                time.sleep(pause)
                pause = min(_LONGEST_PAUSE, 2 * pause)

    def last_offset(self, idle=1.0):
        """Where the stream ends now.

        :param idle: float, seconds without a message after which it is taken for ended
        :returns: int; None when the stream is empty
        :raises ServiceUnavailable: when there is no such stream, or no broker
        """
        offset, quiet_since = None, time.monotonic()
        try:
            with self._consuming("last") as connection:
                while time.monotonic() - quiet_since < idle:
                    rabbit.wait(connection, 0.1)
                    while self._messages:
                        message = self._messages.popleft()
                        offset = message.headers["x-stream-offset"]
                        message.channel.basic_ack(message.delivery_tag)
                        quiet_since = time.monotonic()
        except amqp_exceptions.NotFound:
            raise _no_stream(self._stream) from None
        except rabbit.FAILURES as error:
            raise exception.ServiceUnavailable(reason=f"{type(error).__name__}") from error
        return offset

    @contextlib.contextmanager
    def _consuming(self, offset):
        self._messages.clear()
        connection = self._broker.connect()
        try:
            channel = connection.channel()
            channel.basic_qos(0, _PREFETCH, False)
            channel.basic_consume(
                self._stream, callback=self._messages.append,
                arguments={"x-stream-offset": offset})
            yield connection
        finally:
            rabbit.close(connection)

    def _from(self):
        """Where in the stream to begin, or to go on."""
        if self._offset is not None:
            return self._offset + 1
        if isinstance(self._start, int):
            # Offsets count deliveries, and positions events: only reading tells.
            return "first"
        return self._start

    def _received(self, connection):
        """Wait a moment for messages; gives out the events among them."""
        rabbit.wait(connection, 1)
        while self._messages:
            message = self._messages.popleft()
            event = self._event(message)
            if event is not None:
                yield event
            self._offset = message.headers.get("x-stream-offset", self._offset)
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
        if isinstance(self._start, int):
            return event.position < self._start
        if isinstance(self._start, datetime.datetime):
            # A time finds a chunk of the stream, not a message.
            return event.time < self._start
        return False


def _no_stream(name):
    return exception.ServiceUnavailable(
        reason=f"there is no stream {name!r}; it is made when a conductor publishes the first "
               "event")
