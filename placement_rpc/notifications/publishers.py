# SPDX-License-Identifier: Apache-2.0
"""Where the relay puts events: RabbitMQ with confirms, or the bus inside the process."""

import logging
import time

import oslo_messaging

from placement_rpc.amqp import publisher, topology
from placement_rpc.amqp.broker import FAILURES, HEARTBEAT, Broker, drop, wait
from placement_rpc.amqp.publisher import Unconfirmed
from placement_rpc.notifications import envelope

LOG = logging.getLogger(__name__)
__all__ = ["RabbitPublisher", "TransportPublisher", "Unconfirmed", "get_publisher"]


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


class TransportPublisher:
    """Hands events to an oslo.messaging transport, for the bus inside the process.

    :param transport: an oslo.messaging transport
    """

    def __init__(self, conf, transport, exchange):
        self._transport = transport
        self._target = oslo_messaging.Target(
            exchange=exchange, topic=f"{conf.notifications.topic}.{envelope.PRIORITY}")

    def publish(self, rows, still=lambda: None):
        """As :meth:`RabbitPublisher.publish`."""
        for row in rows:
            self._transport._send_notification(
                self._target, {}, envelope.message(row), version=2.0, retry=0)

    def idle(self):
        """There is no connection to keep alive."""

    def close(self):
        """The transport is its owner's."""


def get_publisher(conf, transport, exchange):
    """The publisher for a transport.

    :param transport: the oslo.messaging transport that the service works with
    :param exchange: str, where the topic lives
    """
    broker = Broker.of(conf)
    if broker is None:
        return TransportPublisher(conf, transport, exchange)
    return RabbitPublisher(conf, broker, exchange)
