# SPDX-License-Identifier: Apache-2.0
"""Publishers for the relay: RabbitMQ with confirms, or the memory of an embedded service."""

import collections
import threading
from collections.abc import Callable, Iterable
from typing import Any

from oslo_config import cfg

from placement_rpc import exception
from placement_rpc.amqp import topology
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.outgoing import Outgoing
from placement_rpc.amqp.publisher import Publisher, Unconfirmed
from placement_rpc.notifications import envelope
from placement_rpc.notifications.event import Event
from placement_rpc.notifications.stream import StreamReader

__all__ = ["MemoryPublisher", "RabbitPublisher", "Unconfirmed", "get_publisher"]


class RabbitPublisher:
    """Publishes batches of events with pipelined publisher confirms.

    The library's notifier swallows failures and waits for each confirm in turn.

    :param conf: made by :mod:`placement_rpc.conf`
    :param broker: where to connect
    :param exchange: where the topic is
    """

    def __init__(self, conf: cfg.ConfigOpts, broker: Broker, exchange: str) -> None:
        self._options = conf.notifications
        self._rabbit = broker.options
        self._routing_key = f"{self._options.topic}.{envelope.PRIORITY}"
        self._exchange = exchange
        self._broker = broker
        self._publisher = Publisher(broker, self._declare, self._declare_again)

    def messages(self, rows: Iterable[Any]) -> list[Outgoing]:
        """Return the messages of events, for :meth:`publish`.

        :param rows: rows of events, with positions
        """
        return [Outgoing(envelope.sealed(row), self._exchange, self._routing_key, row.event_id)
                for row in rows]

    def publish(self, messages: Iterable[Outgoing], still: Callable[[], object] = lambda: None,
                meanwhile: Callable[[], object] = lambda: None) -> None:
        """Publish the messages of events, and return when the broker has confirmed all of them.

        The stream is bound to the exchange again before each batch: otherwise an event that
        reached another queue would be confirmed, and be missing in the stream.

        :param messages: of :meth:`messages`
        :param still: called while it waits; an error of it ends the wait
        :param meanwhile: called each time all are sent, before it waits
        :raises Unconfirmed: if not all are confirmed; any of them may have been kept
        """
        self._publisher.publish(messages, still=still, meanwhile=meanwhile)

    #: Whether readers of what was published may remember more than the store does.
    is_kept = True

    def last_events(self, position: int) -> list[Event]:
        """Return the events at the end of the stream, back to one with at least a position.

        :raises Unconfirmed: if the stream cannot be read
        """
        try:
            return StreamReader(self._broker, self._options.stream).last_events(position)
        except exception.ServiceUnavailable as error:
            raise Unconfirmed(str(error)) from error

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

    def _declare_again(self, channel):
        topology.declare_again(channel, self._exchange, self._rabbit, [
            topology.Binding(self._options.stream, self._routing_key)])

    def close(self) -> None:
        """Drop the connection, which may be broken; the next publish opens another."""
        self._publisher.close()


class MemoryPublisher:
    """Keeps the newest events of an embedded service in memory, for a reader in its process.

    :param limit: int, how many events are kept; beyond it the oldest is dropped
    """

    def __init__(self, limit=10_000):
        self._rows = collections.deque(maxlen=limit)
        self._changed = threading.Condition()

    def messages(self, rows):
        """Return the rows; :meth:`read` makes the messages."""
        return rows

    def publish(self, rows, still=lambda: None, meanwhile=lambda: None):
        """As :meth:`RabbitPublisher.publish`, without waiting."""
        with self._changed:
            self._rows.extend(rows)
            self._changed.notify_all()

    def read(self, timeout=0):
        """Remove and return the events that were published since the last read.

        :param timeout: float, seconds to wait if there is no event
        :returns: list of dict, notifications as any oslo.messaging listener receives them, in
            order; empty if no event was published in time
        """
        with self._changed:
            self._changed.wait_for(lambda: self._rows, timeout)
            rows = list(self._rows)
            self._rows.clear()
        return [envelope.message(row) for row in rows]

    is_kept = False

    def last_events(self, _position):
        """Return nothing: there is no stream."""
        return []

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
