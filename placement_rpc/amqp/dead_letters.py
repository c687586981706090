# SPDX-License-Identifier: Apache-2.0
"""Dead letters: messages that could not be handled, kept for an operator to replay or discard."""

import contextlib
import dataclasses
import datetime
import hashlib
import re
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any, Self

from placement_rpc import exception
from placement_rpc.amqp import contents, topology
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.connection import Connection
from placement_rpc.amqp.consumer import Consumer
from placement_rpc.amqp.frames import FAILURES
from placement_rpc.amqp.outgoing import Outgoing
from placement_rpc.amqp.publisher import ConfirmedChannel, Unconfirmed

# Headers of a dead letter: the reason, the queue that it was in, and the time.
_REASON, _QUEUE, _TIME = "placement-reason", "placement-queue", "placement-time"
# The header with the time in nanoseconds, by which dead letters are put in order.
_MOMENT = "placement-moment"
# The number of bytes in a body of which only the beginning is kept, and the header of a message
# that could not be parsed, in hexadecimal digits.
_SIZE, _HEADER = "placement-size", "placement-header"
_HEADER_EXCERPT = 1024
# How the body is compressed, as the message itself said.
_COMPRESSION = "compression"
# The year 9999.
_LATEST = 253_370_764_800
# How many acknowledgements are sent before waiting for the broker. RabbitMQ passes 32 on to the
# queue; those that wait for these are lost if the connection closes.
_ACKNOWLEDGED = 16
#: Header of a message that an operator replayed: an id of the replay, under which the attempts at
#: the message are counted from zero.
REPLAYED = "placement-replayed"
_REPLAY_ID = re.compile(r"[0-9a-f-]{36}")


@dataclasses.dataclass(frozen=True, slots=True)
class DeadLetterQueue:
    """The queue that keeps dead letters: its name, and its limits in messages and in seconds.

    ``on_kept`` is called when the broker has confirmed that a message is kept.
    """

    name: str
    max_length: int
    max_age: int
    on_kept: Callable[[], object] = dataclasses.field(default=lambda: None, compare=False)

    def declare(self, connection: Connection) -> None:
        """Declare the queue.

        :raises Unsuitable: if a queue of that name exists and is of another kind
        :raises FAILURES: if the connection is lost
        """
        topology.declare(connection, self.name, {
            "x-queue-type": "quorum", "x-max-length": self.max_length,
            "x-overflow": "drop-head", "x-message-ttl": self.max_age * 1000,
            # Reading a dead letter is a delivery: RabbitMQ 4 would drop it after twenty of them.
            "x-delivery-limit": 1_000_000})

    def dead_letter(self, channel: ConfirmedChannel, message: Any, queue: str,
                    reason: str, whole: bool = True) -> None:
        """Put a message into the queue, and wait for the confirm.

        :param message: as it was delivered; the caller acknowledges it
        :param queue: the queue that it was in
        :param reason: for a person
        :param whole: whether to keep all of its body, to handle it later; only an excerpt is kept
            of a message that cannot be read
        :raises Unconfirmed: if it is not certain that the message is kept
        :raises FAILURES: if the connection is lost
        """
        channel.send(self.outgoing(message, queue, reason, whole))
        channel.settle()
        self.on_kept()

    def outgoing(self, message: Any, queue: str, reason: str, whole: bool = True) -> Outgoing:
        """Return a dead letter to publish; parameters as of :meth:`dead_letter`."""
        body = message.body if whole else message.body[:contents.EXCERPT]
        headers: dict[str, Any] = {
            _REASON: _text(reason)[:1000], _QUEUE: queue, _TIME: int(time.time()),
            _MOMENT: time.time_ns()}
        if message.body_size > len(body):
            headers[_SIZE] = message.body_size
        if message.raw_header:
            headers[_HEADER] = message.raw_header[:_HEADER_EXCERPT].hex()
        compression = (message.headers or {}).get(_COMPRESSION)
        if isinstance(compression, str) and len(compression) <= topology.LONGEST_NAME:
            headers[_COMPRESSION] = compression
        return Outgoing(body, "", self.name, message.properties.get("message_id"), headers)


@dataclasses.dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that could not be handled.

    ``id`` is the message's id, or a digest of its body if it has none. ``queue`` is where it was.
    ``died_at`` is in seconds since the epoch; 0 if unknown. ``size`` is the number of bytes in the
    body of the message, of which ``body`` is only the beginning if ``truncated``. ``header`` has
    the properties of a message that could not be parsed, as they came, in hexadecimal digits.
    """

    id: str
    queue: str
    reason: str
    died_at: int
    body: str
    size: int = 0
    truncated: bool = False
    header: str = ""

    @classmethod
    def of_message(cls, message: Any) -> Self:
        """Return the dead letter in a delivered message, which may be unreadable."""
        headers = message.headers or {}
        # The library returns a str for a body that is empty.
        body = message.body or b""
        # Written by the broker when it dead-letters a message by itself.
        deaths = headers.get("x-death")
        death = deaths[0] if isinstance(deaths, list) and deaths else {}
        if not isinstance(death, dict):
            death = {}
        size = headers.get(_SIZE)
        size = size if type(size) is int and size > len(body) else message.body_size
        return cls(
            str(message.properties.get("message_id")
                or hashlib.sha256(body).hexdigest()[:32]),
            _string(headers.get(_QUEUE)) or _string(death.get("queue")),
            _string(headers.get(_REASON)) or message.unreadable or _broker_reason(
                _string(death.get("reason"))),
            _seconds(headers.get(_TIME), death.get("time")),
            body.decode(errors="replace"), size, size > len(body),
            _string(headers.get(_HEADER)) or message.raw_header[:_HEADER_EXCERPT].hex())


def _text(text):
    """Return a text without parts that cannot be written as UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def _string(value):
    return value[:2 * _HEADER_EXCERPT] if isinstance(value, str) else ""


def _seconds(number, moment):
    """Return a time in seconds since the epoch; 0 if neither of two values is a time."""
    if type(number) is int and 0 <= number < _LATEST:
        return number
    if isinstance(moment, datetime.datetime):
        return int(moment.replace(tzinfo=datetime.UTC).timestamp())
    return 0


def _moment(letter, message):
    """Return when a message became a dead letter, in nanoseconds since the epoch."""
    found = (message.headers or {}).get(_MOMENT)
    # An older release, or the broker, gives none.
    return found if type(found) is int else letter.died_at * 10 ** 9


def _broker_reason(reason):
    return {
        "delivery_limit": "it was delivered too often: each process that worked on it died",
        "rejected": "it was rejected", "expired": "it expired",
        "maxlen": "its queue was full"}.get(
            reason, f"dead-lettered by the broker: {reason}" if reason else "unknown")


def replay_of(message: Any) -> str | None:
    """Return the id of an operator's replay of a message; None if it was not replayed."""
    found = (message.headers or {}).get(REPLAYED)
    # Any other text may be one that the database does not take.
    return found if isinstance(found, str) and _REPLAY_ID.fullmatch(found) else None


class DeadLetters:
    """Lists dead letters, and replays or discards them.

    While a method runs it holds all of them, so another program sees none.

    :param broker: where they are
    :param queue: the queue that keeps them
    """

    def __init__(self, broker: Broker, queue: DeadLetterQueue) -> None:
        self._broker = broker
        self._queue = queue

    def all(self) -> list[DeadLetter]:
        """Return all dead letters, oldest first.

        :raises ServiceUnavailable: if the broker does not answer
        """
        with self._held() as (_, _, held):
            return [letter for letter, _ in held]

    def replay(self, wanted: Callable[[DeadLetter], bool],
               progress: Callable[[list], Iterable] = iter
               ) -> tuple[list[DeadLetter], list[DeadLetter]]:
        """Return dead letters to the queues that they were in, where they are handled again.

        :param wanted: whether a dead letter is to be replayed
        :param progress: wraps the list of those that are, to show progress
        :returns: those that were replayed, and those that stay because their queue is full or
            does not exist, or only an excerpt of them is kept
        :raises ServiceUnavailable: if the broker does not answer; those that were replayed by then
            stay replayed
        """
        return self._remove(wanted, progress, self._resend)

    def discard(self, wanted: Callable[[DeadLetter], bool],
                progress: Callable[[list], Iterable] = iter
                ) -> tuple[list[DeadLetter], list[DeadLetter]]:
        """Remove dead letters for good; otherwise as :meth:`replay`."""
        return self._remove(wanted, progress, lambda channel, letter, message: True)

    def _remove(self, wanted, progress, settle):
        done, left = [], []
        with self._held() as (reader, channel, held):
            chosen = [(letter, message) for letter, message in held if wanted(letter)]
            for letter, message in progress(chosen):
                if settle(channel, letter, message):
                    reader.acknowledge([message])
                    done.append(letter)
                    if len(done) % _ACKNOWLEDGED == 0:
                        # The answer comes after the broker has processed them. All dead letters
                        # are held, so it has none, or a new one.
                        reader.get(self._queue.name)
                else:
                    left.append(letter)
        return done, left

    @staticmethod
    def _resend(channel, letter, message):
        """Publish a dead letter to its queue; return whether the queue took it."""
        if letter.truncated or len(letter.queue.encode()) > topology.LONGEST_NAME:
            return False
        headers = {REPLAYED: str(uuid.uuid4())}
        compression = (message.headers or {}).get(_COMPRESSION)
        if isinstance(compression, str):
            headers[_COMPRESSION] = compression
        channel.send(Outgoing(message.body, "", letter.queue,
                              message.properties.get("message_id"), headers))
        try:
            channel.settle()
        except Unconfirmed:
            return False
        return True

    @contextlib.contextmanager
    def _held(self):
        """Hold all dead letters unacknowledged; the broker requeues them after the block."""
        try:
            with self._broker.connected() as connection:
                self._queue.declare(connection)
                reader = Consumer(connection)
                held = []
                while (message := reader.get(self._queue.name)) is not None:
                    held.append((DeadLetter.of_message(message), message))
                # Those that an earlier look held and returned may come in any order.
                held.sort(key=lambda each: _moment(*each))
                yield reader, ConfirmedChannel(connection), held
        except (Unconfirmed, *FAILURES) as error:
            raise exception.ServiceUnavailable(
                reason=f"{type(error).__name__}: {error}") from error
