# SPDX-License-Identifier: Apache-2.0
"""Where the relay puts events: RabbitMQ with confirms, or the bus inside the process."""

from collections.abc import Callable, Iterable
from typing import Any

import oslo_messaging
from oslo_config import cfg

from placement_rpc.amqp import topology
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.publisher import Outgoing, Publisher, Unconfirmed
from placement_rpc.notifications import envelope

__all__ = ["RabbitPublisher", "TransportPublisher", "Unconfirmed", "get_publisher"]


class RabbitPublisher:
    """Publishes batches of events with pipelined publisher confirms.

    The library's notifier swallows failures and waits for each confirm in turn.

    :param conf: made by :mod:`placement_rpc.conf`
    :param broker: where to connect
    :param exchange: where the topic is
    """

    def __init__(self, conf: cfg.ConfigOpts, broker: Broker, exchange: str) -> None:
        self._options = conf.notifications
        self._rabbit = conf.oslo_messaging_rabbit
        self._routing_key = f"{self._options.topic}.{envelope.PRIORITY}"
        self._exchange = exchange
        self._publisher = Publisher(broker, self._declare)

    def publish(self, rows: Iterable[Any], still: Callable[[], object] = lambda: None) -> None:
        """Publish events, and return when the broker has confirmed all of them.

        The stream is bound to the exchange. If it no longer is, no queue would keep an event, and
        the event is not confirmed.

        :param rows: rows of events, with positions
        :param still: called while it waits; an error of it ends the wait
        :raises Unconfirmed: if not all are confirmed; any of them may have been kept
        """
        self._publisher.publish(
            (Outgoing(envelope.sealed(row), self._exchange, self._routing_key, row.event_id)
             for row in rows), still=still)

    def idle(self) -> None:
        """Stay connected, with a stream for readers, while there is nothing to publish.

        :raises Unconfirmed: if the stream's queue exists and is of another kind
        """
        self._publisher.keep_alive()

    def _declare(self, connection):
        topology.declare_exchange(connection, self._exchange, self._rabbit)
        topology.declare(connection, self._options.stream, {
            "x-queue-type": "stream", "x-max-age": self._options.stream_max_age,
            "x-max-length-bytes": self._options.stream_max_bytes})
        topology.bind(connection, self._options.stream, self._exchange, self._routing_key)

    def close(self) -> None:
        """Drop the connection, which may be broken; the next publish opens another."""
        self._publisher.close()


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
    """Return the publisher for a transport.

    :param transport: the oslo.messaging transport of the service
    :param exchange: str, where the topic is
    """
    broker = Broker.of(conf)
    if broker is None:
        return TransportPublisher(conf, transport, exchange)
    return RabbitPublisher(conf, broker, exchange)
