# SPDX-License-Identifier: Apache-2.0
"""Take messages from queues and streams, acknowledge them, and send answers."""

import collections
import socket
from collections.abc import Callable, Iterable
from typing import Any

from placement_rpc.amqp import frames
from placement_rpc.amqp.connection import Connection
from placement_rpc.amqp.outgoing import Outgoing

#: How many messages of a queue a process holds that it has not acknowledged.
WINDOW = 200


class Unreadable(ValueError):
    """A message of which the properties cannot be parsed, or the body is too large."""


class Consumer:
    """Takes messages from queues, acknowledges them, and sends answers.

    One thread receives; any thread may acknowledge and answer. Messages that are not acknowledged
    when the connection ends are delivered again, to this process or to another. They come in the
    order that they had as long as every process holds the same number of messages, and no more
    than :data:`WINDOW`: a quorum queue puts a message that it returns a second time behind the
    others that it returns.

    :param connection: an open connection
    :raises FAILURES: if the connection is lost
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._channel = connection.channel()
        self._messages: collections.deque = collections.deque()
        # The queue of each consumer tag.
        self._queues: dict[str, str] = {}
        # Delivery tags of the messages that were handed out and not acknowledged, in order.
        self._held: dict[int, None] = {}

    @property
    def held(self) -> int:
        """How many messages were handed out and are not acknowledged"""
        return len(self._held)

    def consume(self, queue: str, window: int | None = WINDOW,
                arguments: dict[str, Any] | None = None,
                callback: Callable[[Any], object] | None = None) -> None:
        """Begin to take messages of a queue.

        :param window: how many of this queue's messages to hold unacknowledged; None for
            messages that need no acknowledgement
        :param arguments: of the consumer, as RabbitMQ names them
        :param callback: called with each message as it is read, instead of :meth:`receive`
            returning it
        :raises FAILURES: if there is no such queue, or the connection is lost
        """
        with self._connection.writing():
            if window is not None:
                self._channel.basic_qos(0, window, False)
            tag = self._channel.basic_consume(
                queue, no_ack=window is None, arguments=arguments,
                callback=callback or self._messages.append)
            self._queues[tag] = queue

    def queue_of(self, message: Any) -> str:
        """Return the queue from which a message came."""
        return self._queues[message.delivery_info["consumer_tag"]]

    def cancel(self) -> None:
        """Take no further messages; those that are on their way still arrive.

        :raises FAILURES: if the connection is lost
        """
        with self._connection.writing():
            for tag in self._queues:
                self._channel.basic_cancel(tag, nowait=True)

    def on_return(self, callback: Callable[..., object]) -> None:
        """Have a callback called with each mandatory message that reached no queue.

        :param callback: callable of an error, the exchange, the routing key and the message
        """
        self._channel.events["basic_return"].add(callback)

    def receive(self, seconds: float, most: int = WINDOW,
                waker: socket.socket | None = None) -> list:
        """Wait for messages.

        :param seconds: how long to wait if there are none
        :param most: how many messages to return at most
        :param waker: a socket that ends the wait when it becomes readable
        :returns: list of messages, which may be empty
        :raises FAILURES: if the connection is lost
        """
        self._connection.read(0 if self._messages else seconds,
                              lambda: len(self._messages) >= most, waker)
        received = [self._messages.popleft() for _ in range(min(most, len(self._messages)))]
        if received:
            with self._connection.writing():
                self._held.update((message.delivery_tag, None) for message in received)
        return received

    def get(self, queue: str) -> Any:
        """Take one message of a queue, without waiting for one.

        :returns: the message, or None if the queue is empty
        :raises FAILURES: if there is no such queue, or the connection is lost
        """
        with self._connection.writing():
            message = self._channel.basic_get(queue)
            if message is not None:
                self._held[message.delivery_tag] = None
        return message

    def keep_alive(self, seconds: float) -> None:
        """Read frames and check the broker's heartbeats, without returning messages.

        :param seconds: how long to wait; it returns earlier when a frame arrives
        :raises FAILURES: if the connection is lost
        """
        self._connection.read(seconds)

    def acknowledge(self, messages: list) -> None:
        """Acknowledge messages that were received.

        :raises FAILURES: if the connection is lost
        """
        with self._connection.writing():
            self._acknowledge(messages)

    def requeue(self, message: Any) -> None:
        """Return a message to its queue, for another process.

        :raises FAILURES: if the connection is lost
        """
        with self._connection.writing():
            self._channel.basic_reject(message.delivery_tag, requeue=True)
            self._held.pop(message.delivery_tag, None)

    def send(self, message: Outgoing, timeout: float) -> None:
        """Publish a message without a confirm; it is returned if it reaches no queue.

        :param timeout: seconds to wait for another thread that writes
        :raises ValueError: if the message cannot be sent as it is; the connection is kept
        :raises TimeoutError: if the other thread has not finished by then
        :raises FAILURES: if the connection is lost
        """
        # Before the lock is held: an error of a thread that writes ends the connection.
        encoded = frames.encoded(self._channel, [message], mandatory=True)
        with self._connection.writing(max(0.0, timeout)):
            frames.write(self._channel, encoded)

    def answer_all(self, answers: Iterable[tuple[str | None, str]], messages: list) -> None:
        """Send answers, and acknowledge the messages that they answer.

        :param answers: pairs of the queue of the client, None if it expects no answer, and the
            body
        :param messages: the messages that were answered
        :raises FAILURES: if the connection is lost
        """
        with self._connection.writing():
            self._answer(answers)
            self._acknowledge(messages)

    def answer(self, queue: str | None, body: str) -> None:
        """Send one answer and acknowledge nothing; errors are those of :meth:`answer_all`."""
        with self._connection.writing():
            self._answer([(queue, body)])

    def end(self) -> None:
        """End the connection: the messages that are held are delivered again."""
        self._connection.shut()

    def _answer(self, answers):
        frames.publish(self._channel, [Outgoing(body, "", queue, durable=False)
                                       for queue, body in answers if queue is not None])

    def _acknowledge(self, messages):
        tags = [message.delivery_tag for message in messages]
        for tag in tags:
            self._held.pop(tag, None)
        last = max(tags)
        if next(iter(self._held), last + 1) > last:
            # No earlier message is held: one frame acknowledges all of them.
            self._channel.basic_ack(last, multiple=True)
            return
        for tag in tags:
            self._channel.basic_ack(tag)


def deliveries(message: Any) -> int:
    """Return how often the broker delivered a message before; 0 if it does not say."""
    count = (message.headers or {}).get("x-delivery-count", 0)
    return count if type(count) is int else 0


def is_redelivered(message: Any) -> bool:
    """Return whether a message was delivered before, and may have ended a process."""
    return bool(message.delivery_info.get("redelivered")) or deliveries(message) > 0


def body_of(message: Any) -> bytes:
    """Return the body of a message.

    :raises Unreadable: if the message cannot be read
    """
    if message.unreadable is not None:
        raise Unreadable(message.unreadable)
    return message.body
