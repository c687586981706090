# SPDX-License-Identifier: Apache-2.0
"""Where the relay puts events: RabbitMQ with confirms, or the memory of an embedded service."""

import collections
import logging
import threading
import time

from placement_rpc.amqp import publisher, topology
from placement_rpc.amqp.broker import FAILURES, HEARTBEAT, Broker, drop, wait
from placement_rpc.amqp.publisher import Unconfirmed
from placement_rpc.notifications import envelope

LOG = logging.getLogger(__name__)
__all__ = ["MemoryPublisher", "RabbitPublisher", "Unconfirmed", "get_publisher"]


class RabbitPublisher:
    """Publishes batches with pipelined publisher confirms.

    The library's notifier swallows failures and waits for each confirm in turn.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param broker: :class:`placement_rpc.amqp.broker.Broker`
    :param exchange: str, where the topic lives
    """

    def __init__(self, conf, broker, exchange):
        self._options = conf.notifications
        self._rabbit = conf.oslo_messaging_rabbit
        self._routing_key = f"{self._options.topic}.{envelope.PRIORITY}"
        self._exchange = exchange
        self._broker = broker
        self._connection = self._channel = None
        self._beat_at = 0

    def publish(self, rows, still=lambda: None):
        """Publish events, and return when the broker has confirmed all of them.

        :param rows: list of rows of events, with positions
        :param still: callable that is called while it waits; what it raises ends the waiting
        :raises Unconfirmed: and nothing is known of any of them
        """
        try:
            self._open()
            for row in rows:
                # The stream is bound; where it is not any more, nothing would keep the event,
                # and then it is not confirmed.
                self._channel.send(
                    envelope.sealed(row), self._exchange, self._routing_key, row.event_id)
            self._channel.settle(still=still)
        except FAILURES as error:
            self.close()
            raise Unconfirmed(f"{type(error).__name__}: {error}") from error
        except BaseException:
            self.close()
            raise

    def idle(self):
        """Be ready: connected, with a stream to listen to, while there is nothing to publish."""
        if time.monotonic() < self._beat_at:
            return
        self._beat_at = time.monotonic() + HEARTBEAT / 6
        try:
            self._open()
            wait(self._connection, 0.001)
        except FAILURES as error:
            LOG.info("The broker is away, or closed an idle connection: %s", error)
            self.close()

    def _open(self):
        """Connect, and declare the exchange and the stream, unless that is done."""
        if self._channel is not None:
            return
        self._connection = self._broker.connect()
        channel = publisher.ConfirmedChannel(self._connection)
        topology.declare_exchange(channel.channel, self._exchange, self._rabbit)
        topology.declare(self._connection, self._options.stream, {
            "x-queue-type": "stream", "x-max-age": self._options.stream_max_age,
            "x-max-length-bytes": self._options.stream_max_bytes})
        channel.channel.queue_bind(
            self._options.stream, exchange=self._exchange, routing_key=self._routing_key)
        self._channel = channel

    def close(self):
        """Drop the connection, which may be broken; the next publish opens another."""
        connection, self._connection, self._channel = self._connection, None, None
        drop(connection)


class MemoryPublisher:
    """Keeps the newest events of an embedded service in memory, for a reader in its process.

    :param limit: int, how many events are kept; beyond it the oldest is dropped
    """

    def __init__(self, limit=10_000):
        self._rows = collections.deque(maxlen=limit)
        self._changed = threading.Condition()

    def publish(self, rows, still=lambda: None):
        """As :meth:`RabbitPublisher.publish`; nothing is waited for."""
        with self._changed:
            self._rows.extend(rows)
            self._changed.notify_all()

    def read(self, timeout=0):
        """Remove and return the events that were published since the last read.

        :param timeout: float, seconds to wait for an event if there is none
        :returns: list of dict, notifications as any oslo.messaging listener receives them, in
            order; empty if there was none in time
        """
        with self._changed:
            self._changed.wait_for(lambda: self._rows, timeout)
            rows = list(self._rows)
            self._rows.clear()
        return [envelope.message(row) for row in rows]

    def idle(self):
        """Do nothing: there is no connection to keep alive."""

    def close(self):
        """Do nothing: events stay readable."""


def get_publisher(conf, exchange):
    """Return the publisher for the configured transport.

    :param exchange: str, the exchange of the topic
    :raises InvalidInput: for a bus that is neither RabbitMQ nor ``inprocess://``
    """
    broker = Broker.of(conf)
    if broker is None:
        return MemoryPublisher()
    return RabbitPublisher(conf, broker, exchange)
