# SPDX-License-Identifier: Apache-2.0
"""Where the relay puts events: RabbitMQ with confirms, or the bus inside the process."""

import logging

import amqp
import kombu
import oslo_messaging

from placement_rpc.notifications import envelope

LOG = logging.getLogger(__name__)

# A broker that does not confirm for so long is as good as away.
_CONFIRM_TIMEOUT = 30
_CONNECT_TIMEOUT = 5


class Unconfirmed(Exception):
    """The broker is away, or did not confirm everything: all of it has to be sent again."""


class RabbitPublisher:
    """Publishes batches with pipelined publisher confirms.

    The library's notifier swallows failures and waits for each confirm in turn.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param urls: list of str, kombu URLs of the brokers, tried in turn
    :param exchange: str, where the topic lives
    """

    def __init__(self, conf, urls, exchange):
        self._options = conf.notifications
        self._durable = conf.oslo_messaging_rabbit.amqp_durable_queues or (
            conf.oslo_messaging_rabbit.rabbit_quorum_queue)
        self._routing_key = f"{self._options.topic}.{envelope.PRIORITY}"
        self._exchange = exchange
        self._connection = kombu.Connection(
            urls, connect_timeout=_CONNECT_TIMEOUT, heartbeat=30,
            ssl=_tls(conf.oslo_messaging_rabbit))
        self._channel = None
        self._unconfirmed = set()
        self._refused = False

    def publish(self, rows):
        """Publish events, and return when the broker has confirmed all of them.

        :param rows: list of rows of events, with positions
        :raises Unconfirmed: and nothing is known of any of them
        """
        try:
            channel = self._open()
            for row in rows:
                self._unconfirmed.add(next(self._tags))
                channel.basic_publish(
                    amqp.Message(
                        envelope.sealed(envelope.message(row)), delivery_mode=2,
                        content_type="application/json", content_encoding="utf-8",
                        message_id=row.event_id),
                    exchange=self._exchange, routing_key=self._routing_key)
            while self._unconfirmed:
                self._connection.drain_events(timeout=_CONFIRM_TIMEOUT)
        except (*self._connection.recoverable_connection_errors,
                *self._connection.recoverable_channel_errors, OSError) as error:
            self.close()
            raise Unconfirmed(f"{type(error).__name__}: {error}") from error
        if self._refused:
            self.close()
            raise Unconfirmed("the broker refused an event")

    def _open(self):
        """:returns: the channel, in confirm mode, with the exchange and the stream declared"""
        if self._channel is None:
            self._connection.ensure_connection(max_retries=1, timeout=_CONNECT_TIMEOUT)
            channel = self._connection.channel()
            channel.exchange_declare(
                self._exchange, "topic", durable=self._durable, auto_delete=False)
            channel.queue_declare(
                self._options.stream, durable=True, auto_delete=False, arguments={
                    "x-queue-type": "stream", "x-max-age": self._options.stream_max_age,
                    "x-max-length-bytes": self._options.stream_max_bytes})
            channel.queue_bind(
                self._options.stream, exchange=self._exchange, routing_key=self._routing_key)
            channel.confirm_select()
            channel.events["basic_ack"].add(self._confirmed)
            channel.events["basic_nack"].add(self._nacked)
            self._tags = iter(range(1, 2 ** 62))
            self._channel = channel
        return self._channel

    def _confirmed(self, tag, multiple):
        if multiple:
            self._unconfirmed = {each for each in self._unconfirmed if each > tag}
        else:
            self._unconfirmed.discard(tag)

    def _nacked(self, tag, multiple):
        self._refused = True
        self._confirmed(tag, multiple)

    def close(self):
        """Close the connection; the next publish opens another."""
        self._channel, self._unconfirmed, self._refused = None, set(), False
        # What is closed may be broken; that is why it is closed.
        self._connection.collect(socket_timeout=1)


class TransportPublisher:
    """Hands events to an oslo.messaging transport, for the bus inside the process.

    :param transport: an oslo.messaging transport
    """

    def __init__(self, conf, transport, exchange):
        self._transport = transport
        self._target = oslo_messaging.Target(
            exchange=exchange, topic=f"{conf.notifications.topic}.{envelope.PRIORITY}")

    def publish(self, rows):
        """As :meth:`RabbitPublisher.publish`."""
        for row in rows:
            self._transport._send_notification(
                self._target, {}, envelope.message(row), version=2.0, retry=0)

    def close(self):
        """The transport is its owner's."""


def get_publisher(conf, transport, exchange):
    """The publisher for a transport.

    :param transport: the oslo.messaging transport that the service works with
    :param exchange: str, where the topic lives
    """
    url = oslo_messaging.TransportURL.parse(conf)
    if url.transport not in ("rabbit", "kombu"):
        return TransportPublisher(conf, transport, exchange)
    hosts = url.hosts or [oslo_messaging.TransportHost("localhost", 5672, "guest", "guest")]
    return RabbitPublisher(conf, [
        f"amqp://{kombu.utils.url.quote(host.username or 'guest')}:"
        f"{kombu.utils.url.quote(host.password or 'guest')}@{host.hostname}:"
        f"{host.port or 5672}/{kombu.utils.url.quote(url.virtual_host or '/')}"
        for host in hosts], exchange)


def _tls(options):
    if not options.ssl:
        return False
    chosen = {"ca_certs": options.ssl_ca_file, "certfile": options.ssl_cert_file,
              "keyfile": options.ssl_key_file}
    return {name: value for name, value in chosen.items() if value} or True
