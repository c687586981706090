# SPDX-License-Identifier: Apache-2.0
"""A server's connection to RabbitMQ: one thread reads, and many answer."""

import collections
import contextlib
import logging
import threading
import time

import amqp

from placement_rpc.amqp import frames, topology
from placement_rpc.amqp.broker import raw_channel

LOG = logging.getLogger(__name__)
# Seconds between two looks whether the broker is alive.
_LOOK = 1.0


class ConsumerChannel:
    """Takes messages from queues, sends answers, and acknowledges.

    :param connection: an open :class:`kombu.Connection`
    :param broker: :class:`placement_rpc.amqp.broker.Broker` that it is to
    :param options: ``conf.oslo_messaging_rabbit``
    """

    def __init__(self, connection, broker, options):
        self._connection = connection
        self._options = options
        self._messages = collections.deque()
        self._consumers = []
        self._channel = raw_channel(connection)
        # Held where something is written; with TLS where something is read, too.
        self._writing = threading.Lock()
        self._reading = self._writing if broker.tls else contextlib.nullcontext()
        self._look_at = 0
        self._taken = 0

    def declare(self, queue, exchange):
        """Make sure that a queue is there and is reached by its name, as the library declares it.

        :raises Unsuitable: when there is another one of that name
        """
        options, channel = self._options, self._channel
        topology.declare_exchange(channel, exchange, options)
        if options.rabbit_quorum_queue:
            topology.declare(self._connection, queue, topology.quorum_arguments(options))
        else:
            channel.queue_declare(
                queue, durable=options.amqp_durable_queues, auto_delete=options.amqp_auto_delete,
                arguments={"x-ha-policy": "all"} if options.rabbit_ha_queues else {})
        channel.queue_bind(queue, exchange, queue)

    def listen(self, queue, window):
        """Begin to take messages of a queue.

        :param window: int, how many of this queue it holds that are not acknowledged
        """
        self._channel.basic_qos(0, window, False)
        self._consumers.append(
            self._channel.basic_consume(queue, callback=self._messages.append))

    def listen_no_more(self):
        """Take no further messages."""
        with self._written():
            for consumer in self._consumers:
                self._channel.basic_cancel(consumer, nowait=True)

    def give_back(self, message):
        """Let another process have a message."""
        with self._written():
            self._channel.basic_reject(message.delivery_tag, requeue=True)
            self._taken -= 1

    def receive(self, seconds, most):
        """Wait for messages; for one thread alone.

        :param seconds: float, how long to wait when there are none
        :param most: int, how many messages at the most
        :returns: list of messages
        :raises: one of :data:`placement_rpc.amqp.broker.FAILURES`
        """
        waits = 0 if self._messages else seconds
        while len(self._messages) < most and frames.has_come(self._connection, waits):
            self._read()
            waits = 0
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK
            with self._written():
                frames.check(self._connection)
        taken = [self._messages.popleft() for _ in range(min(most, len(self._messages)))]
        with self._writing:
            self._taken += len(taken)
        return taken

    def _read(self):
        try:
            with self._reading:
                frames.read_event(self._connection)
        except frames.Unreadable as error:
            if error.delivery_tag is not None:
                # It would come again for ever.
                LOG.error("A message is dropped: %s", error)
                with self._written():
                    self._channel.basic_reject(error.delivery_tag, requeue=False)
            raise

    @contextlib.contextmanager
    def _written(self):
        """Alone with the connection; what fails may leave half a frame, and ends it."""
        with self._writing:
            try:
                yield
            except BaseException:
                frames.shut(self._connection)
                raise

    def answer_all(self, answers, messages):
        """Send answers, and acknowledge what was asked.

        :param answers: list of tuples of the queue of who asked, None for nobody, and the body
        :param messages: list of the messages in the order in which they came
        :raises: one of :data:`placement_rpc.amqp.broker.FAILURES`
        """
        with self._written():
            for queue, body in answers:
                self._answer(queue, body)
            if len(messages) == self._taken:
                # All that are held: one word for all of them.
                self._acknowledge(messages[-1], multiple=True)
            else:
                for message in messages:
                    self._acknowledge(message)
            self._taken -= len(messages)

    def answer(self, queue, body):
        """Send somebody something; as of :meth:`answer_all`."""
        with self._written():
            self._answer(queue, body)

    def acknowledge(self, message):
        """Acknowledge a message that is not answered."""
        with self._written():
            self._acknowledge(message)
            self._taken -= 1

    def end(self):
        """Break the connection off: what is held is delivered to another."""
        frames.shut(self._connection)

    def beat(self):
        """Tell the broker that this end is alive, whatever the thread that reads is doing."""
        with self._written():
            frames.beat(self._connection)

    def _answer(self, queue, body):
        if queue is not None:
            frames.publish(self._channel, amqp.Message(
                body, content_type="application/json", content_encoding="utf-8",
                delivery_mode=1), "", queue)

    def _acknowledge(self, message, multiple=False):
        self._channel.basic_ack(message.delivery_tag, multiple=multiple)


#: How many messages a process takes from a queue before it has acknowledged any.
WINDOW = 200


class QueueConsumer:
    """Takes in messages of a queue, several at a time.

    What a process held that died is delivered again, in the order that it had: as long as
    nobody holds more than :data:`WINDOW` messages, and nobody less. A quorum queue puts what
    comes back a second time behind the rest of what came back.

    :param connection: an open :class:`kombu.Connection`
    :param window: int, how many messages it holds that are not acknowledged
    """

    def __init__(self, connection, queue, window=WINDOW):
        self._connection = connection
        self._messages = collections.deque()
        self._channel = raw_channel(connection)
        self._channel.basic_qos(0, window, False)
        self._channel.basic_consume(queue, callback=self._messages.append)

    def receive(self, seconds, most=WINDOW):
        """Wait for messages.

        :param seconds: float, how long to wait when there are none
        :param most: int, how many messages at the most
        :returns: list of messages
        """
        with contextlib.suppress(TimeoutError):
            if not self._messages:
                self._connection.drain_events(timeout=seconds)
            while len(self._messages) < most and frames.has_come(self._connection):
                self._connection.drain_events(timeout=seconds)
        self._connection.heartbeat_check()
        return [self._messages.popleft() for _ in range(min(most, len(self._messages)))]

    def acknowledge(self, message):
        """Acknowledge a message and all that were received before it."""
        self._channel.basic_ack(message.delivery_tag, multiple=True)


def deliveries(message):
    """:returns: int, how often the broker delivered a message before; 0 where it does not say"""
    count = (message.headers or {}).get("x-delivery-count", 0)
    return count if type(count) is int else 0
