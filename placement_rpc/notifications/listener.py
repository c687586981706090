# SPDX-License-Identifier: Apache-2.0
"""Reading events from the stream: in order, each once, from any place, across reconnections."""

import collections
import contextlib
import dataclasses
import datetime
import logging
import time

import kombu
from amqp import exceptions as amqp_exceptions

from placement_rpc import exception
from placement_rpc.notifications import envelope

LOG = logging.getLogger(__name__)

_PREFIX = "placement_object."
_PREFETCH = 200
_REMEMBERED = 10_000
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """An event as it was received.

    ``payload`` is plain data, without the envelopes of versioned objects.
    """

    event_id: str
    event_type: str
    position: int
    occurred_at: str
    payload: dict

    @classmethod
    def of_message(cls, body):
        """:param body: bytes or str; :raises ValueError: when it is no event of this service"""
        message = envelope.opened(body)
        payload = plain(message.get("payload"))
        if not isinstance(payload, dict):
            raise ValueError("its payload is not a mapping")
        try:
            event = cls(payload["event_id"], message["event_type"], payload["position"],
                        payload["occurred_at"], payload)
        except KeyError as error:
            raise ValueError(f"its payload has no {error}") from None
        if type(event.position) is not int:
            raise ValueError("its position is not a number")
        return event

    @property
    def providers(self):
        """set of str, the uuids of the providers that it is about"""
        found = {each["provider_uuid"] for each in self.payload.get("providers", ())}
        found.update(self.payload.get("allocations", ()))
        return found | {self.payload[name] for name in ("provider_uuid",) if name in self.payload}


def plain(value):
    """Versioned objects as they travel, without their envelopes.

    :param value: JSON values
    """
    if isinstance(value, dict):
        if f"{_PREFIX}data" in value:
            return plain(value[f"{_PREFIX}data"])
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


class StreamReader:
    """Reads the stream of events.

    An event that comes again is dropped. A position that is left out is told to ``on_gap``:
    the stream was cut before it was read, or events were pruned before they could be sent
    again. What is no event of this service is passed over, with a line in the log.

    :param url: str, the broker, as ``rabbit://user:password@host:port/``
    :param stream: str, the stream's name
    :param start: int, the position to begin with; a datetime to begin at; ``"next"`` for what
        comes from now on
    :param on_gap: callable of the position that was expected and the one that came
    """

    def __init__(self, url, stream, start="next", on_gap=None):
        self._url = url.replace("rabbit:", "amqp:", 1)
        self._stream = stream
        self._start = start
        self._on_gap = on_gap or _log_gap
        self._seen = collections.OrderedDict()
        self._offset = None
        self._messages = collections.deque()
        #: int, the position of the last event that was given out; None before the first
        self.position = None

    def events(self, idle=None):
        """Give out events as they come, without end.

        :param idle: float, seconds without an event after which to end; None for never
        :returns: generator of :class:`Event`
        :raises ServiceUnavailable: when there is no such stream
        """
        quiet_since, pause = time.monotonic(), _FIRST_PAUSE
        while idle is None or time.monotonic() - quiet_since < idle:
            try:
                with self._consuming() as connection:
                    while idle is None or time.monotonic() - quiet_since < idle:
                        for event in self._received(connection):
                            yield event
                            quiet_since, pause = time.monotonic(), _FIRST_PAUSE
            except amqp_exceptions.NotFound:
                raise exception.ServiceUnavailable(
                    reason=f"there is no stream {self._stream!r}; it is made when a conductor "
                           "publishes the first event") from None
            except (*kombu.Connection(self._url).recoverable_connection_errors,
                    *kombu.Connection(self._url).recoverable_channel_errors, OSError) as error:
                LOG.warning("The stream is away: %s", error)
                time.sleep(pause)
                pause = min(_LONGEST_PAUSE, 2 * pause)

    @contextlib.contextmanager
    def _consuming(self):
        self._messages.clear()
        with kombu.Connection(self._url, connect_timeout=5, heartbeat=30) as connection:
            channel = connection.channel()
            channel.basic_qos(0, _PREFETCH, False)
            channel.basic_consume(
                self._stream, callback=self._messages.append,
                arguments={"x-stream-offset": self._from()})
            yield connection

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
        with contextlib.suppress(TimeoutError):
            connection.drain_events(timeout=1)
        connection.heartbeat_check()
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
        if event.event_id in self._seen or self._is_too_early(event):
            return None
        self._seen[event.event_id] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        if self.position is not None and event.position > self.position + 1:
            self._on_gap(self.position + 1, event.position)
        self.position = max(event.position, self.position or 0)
        return event

    def _is_too_early(self, event):
        if isinstance(self._start, int):
            return event.position < self._start
        if isinstance(self._start, datetime.datetime):
            # A time finds a chunk of the stream, not a message.
            return datetime.datetime.fromisoformat(event.occurred_at) < self._start
        return False


def _log_gap(expected, found):
    LOG.warning("The stream goes from position %d to %d: what is between is lost to it",
                expected - 1, found)
