# SPDX-License-Identifier: Apache-2.0
"""Dead letters: what could not be handled, kept for somebody to look at and to send again."""

import contextlib
import dataclasses
import datetime
import hashlib
import time
import uuid

from placement_rpc import exception
from placement_rpc.amqp import publisher, topology
from placement_rpc.amqp.broker import FAILURES, raw_channel

# Beside the message: why it is here, where it was, and when it came.
_REASON, _QUEUE, _TIME = "placement-reason", "placement-queue", "placement-time"
#: Beside a message that an operator had delivered again: an id of that, so that attempts at it
#: are counted anew.
REPLAYED = "placement-replayed"


def declare(connection, options):
    """Make sure that the queue is there.

    :param options: ``conf.queues``
    """
    topology.declare(connection, options.dead_letters, {
        "x-queue-type": "quorum", "x-max-length": options.dead_letters_max_length,
        "x-overflow": "drop-head", "x-message-ttl": options.dead_letters_max_age * 1000,
        # Looking at a letter is a delivery: RabbitMQ 4 drops it after twenty of them otherwise.
        "x-delivery-limit": 1_000_000})


def dead_letter(channel, options, message, queue, reason):
    """Put a message among the dead letters.

    :param channel: :class:`placement_rpc.amqp.publisher.ConfirmedChannel`
    :param options: ``conf.queues``
    :param message: the message as it was delivered; it is for the caller to acknowledge
    :param queue: str, the queue that it was in
    :param reason: str, for a person
    :raises Unconfirmed: and it is not sure that it is kept
    """
    channel.send(message.body, "", options.dead_letters, message.properties.get("message_id"), {
        _REASON: reason[:1000], _QUEUE: queue, _TIME: int(time.time())})
    channel.settle()


@dataclasses.dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that could not be handled.

    ``letter_id`` is the message's id, or made of what is in it where it has none. ``died_at`` is
    in seconds since the epoch.
    """

    letter_id: str
    queue: str
    reason: str
    died_at: int
    body: str

    @classmethod
    def of_message(cls, message):
        """:param message: as it was delivered"""
        headers = message.headers or {}
        # The library makes a text of a body that is empty.
        body = message.body or b""
        # What the broker writes where it was the one who gave the message up.
        deaths = headers.get("x-death")
        death = deaths[0] if isinstance(deaths, list) and deaths else {}
        died_at = headers.get(_TIME)
        if not isinstance(died_at, int):
            at = death.get("time")
            died_at = int(at.replace(tzinfo=datetime.UTC).timestamp()) if at else 0
        return cls(
            str(message.properties.get("message_id")
                or hashlib.sha256(body).hexdigest()[:32]),
            str(headers.get(_QUEUE) or death.get("queue", "")),
            str(headers.get(_REASON) or _of_broker(death.get("reason"))),
            died_at, body.decode(errors="replace"))


def _of_broker(reason):
    return {
        "delivery_limit": "it was delivered too often: whoever worked on it died each time",
        "rejected": "it was refused", "expired": "it waited too long",
        "maxlen": "its queue was full"}.get(reason, f"given up by the broker: {reason}")


class DeadLetters:
    """Looks at dead letters, and sends them again.

    While it works, the letters are with it, and nobody else sees them.

    :param broker: :class:`placement_rpc.amqp.broker.Broker`
    :param options: ``conf.queues``
    """

    def __init__(self, broker, options):
        self._broker = broker
        self._options = options

    def letters(self):
        """:returns: list of :class:`DeadLetter`, oldest first; :raises ServiceUnavailable:"""
        with self._held() as (_, held):
            return [letter for letter, _ in held]

    def replay(self, wanted, progress=lambda letters: letters):
        """Send letters to where they were; whoever listens there handles them again.

        :param wanted: callable of a :class:`DeadLetter`, whether it is to be sent
        :param progress: callable that wraps the list of what is sent
        :returns: two lists of :class:`DeadLetter`: what was sent, and what stays since its queue
            is not there or is full
        :raises ServiceUnavailable: what was sent by then is sent
        """
        return self._empty(wanted, progress, self._resend)

    def discard(self, wanted, progress=lambda letters: letters):
        """Remove letters for good; as :meth:`replay` otherwise."""
        return self._empty(wanted, progress, lambda channel, letter, message: True)

    def _empty(self, wanted, progress, settle):
        done, left = [], []
        with self._held() as (channel, held):
            chosen = [(letter, message) for letter, message in held if wanted(letter)]
            for letter, message in progress(chosen):
                if settle(channel, letter, message):
                    message.channel.basic_ack(message.delivery_tag)
                    done.append(letter)
                else:
                    left.append(letter)
        return done, left

    @staticmethod
    def _resend(channel, letter, message):
        """:returns: bool, whether its queue took it"""
        channel.send(message.body, "", letter.queue, message.properties.get("message_id"),
                     {REPLAYED: str(uuid.uuid4())})
        try:
            channel.settle()
        except publisher.Unconfirmed:
            return False
        return True

    @contextlib.contextmanager
    def _held(self):
        """All letters, unacknowledged: they go back to the queue at the end of the block."""
        try:
            with self._broker.connected() as connection:
                declare(connection, self._options)
                reader = raw_channel(connection)
                held = []
                while (message := reader.basic_get(self._options.dead_letters)) is not None:
                    held.append((DeadLetter.of_message(message), message))
                yield publisher.ConfirmedChannel(connection), held
        except (publisher.Unconfirmed, *FAILURES) as error:
            raise exception.ServiceUnavailable(
                reason=f"{type(error).__name__}: {error}") from error
