# SPDX-License-Identifier: Apache-2.0
"""Where the relay puts events: RabbitMQ with confirms, or the bus inside the process."""

import contextlib
import itertools
import logging
import ssl
import time

import amqp
import kombu
import oslo_messaging
from amqp import exceptions as amqp_exceptions
from kombu import exceptions as kombu_exceptions
from kombu.utils import url as kombu_url
from oslo_utils import netutils

from placement_rpc.notifications import envelope

LOG = logging.getLogger(__name__)

# A broker that does not confirm for so long is as good as away.
_CONFIRM_TIMEOUT = 30
_CONNECT_TIMEOUT = 5
_HEARTBEAT = 30


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
        self._rabbit = conf.oslo_messaging_rabbit
        self._routing_key = f"{self._options.topic}.{envelope.PRIORITY}"
        self._exchange = exchange
        self._urls = urls
        self._connection = self._channel = None
        self._unconfirmed = set()
        self._refused = None
        self._beat_at = 0

    def publish(self, rows, still=lambda: None):
        """Publish events, and return when the broker has confirmed all of them.

        :param rows: list of rows of events, with positions
        :param still: callable that is called while it waits; what it raises ends the waiting
        :raises Unconfirmed: and nothing is known of any of them
        """
        try:
            self._send(rows)
            self._await_confirms(still)
        except _FAILURES as error:
            self.close()
            raise Unconfirmed(f"{type(error).__name__}: {error}") from error
        except BaseException:
            self.close()
            raise

    def _send(self, rows):
        self._open()
        for row in rows:
            self._unconfirmed.add(next(self._tags))
            self._channel.basic_publish(
                amqp.Message(
                    envelope.sealed(row), delivery_mode=2,
                    content_type="application/json", content_encoding="utf-8",
                    message_id=row.event_id),
                # The stream is bound; where it is not any more, nothing would keep the event.
                exchange=self._exchange, routing_key=self._routing_key, mandatory=True)

    def _await_confirms(self, still):
        deadline = time.monotonic() + _CONFIRM_TIMEOUT
        while self._unconfirmed and not self._refused:
            still()
            if time.monotonic() > deadline:
                raise Unconfirmed(f"no confirm within {_CONFIRM_TIMEOUT} s")
            with contextlib.suppress(TimeoutError):
                self._connection.drain_events(timeout=0.5)
        if self._refused:
            raise Unconfirmed(self._refused)

    def idle(self):
        """Keep the connection alive while there is nothing to publish."""
        if self._connection is None or time.monotonic() < self._beat_at:
            return
        self._beat_at = time.monotonic() + _HEARTBEAT / 6
        try:
            self._connection.heartbeat_check()
            with contextlib.suppress(TimeoutError):
                self._connection.drain_events(timeout=0.001)
        except _FAILURES as error:
            LOG.info("The broker closed an idle connection: %s", error)
            self.close()

    def _open(self):
        """Connect, and declare the exchange and the stream, unless that is done."""
        if self._channel is not None:
            return
        self._connection = kombu.Connection(
            self._urls, connect_timeout=_CONNECT_TIMEOUT, heartbeat=_HEARTBEAT,
            login_method=self._rabbit.rabbit_login_method, ssl=_tls(self._rabbit))
        self._connection.ensure_connection(
            max_retries=len(self._urls), interval_start=0, interval_step=0,
            timeout=_CONNECT_TIMEOUT)
        channel = self._connection.channel()
        channel.exchange_declare(
            self._exchange, "topic", auto_delete=self._rabbit.amqp_auto_delete,
            durable=self._rabbit.amqp_durable_queues or self._rabbit.rabbit_quorum_queue)
        self._declare_stream()
        channel.queue_bind(
            self._options.stream, exchange=self._exchange, routing_key=self._routing_key)
        channel.confirm_select()
        channel.events["basic_ack"].add(self._confirmed)
        channel.events["basic_nack"].add(self._nacked)
        channel.events["basic_return"].add(self._returned)
        self._tags = itertools.count(1)
        self._channel = channel

    def _declare_stream(self):
        channel = self._connection.channel()
        try:
            channel.queue_declare(
                self._options.stream, durable=True, auto_delete=False, arguments={
                    "x-queue-type": "stream", "x-max-age": self._options.stream_max_age,
                    "x-max-length-bytes": self._options.stream_max_bytes})
            channel.close()
        except amqp_exceptions.PreconditionFailed as error:
            # Its limits were given when it was made; a policy of the broker changes them.
            LOG.warning("The stream keeps the limits that it was made with: %s", error)

    def _confirmed(self, tag, multiple):
        if multiple:
            self._unconfirmed = {each for each in self._unconfirmed if each > tag}
        else:
            self._unconfirmed.discard(tag)

    def _nacked(self, _tag, _multiple):
        self._refused = "the broker refused an event"

    def _returned(self, *_arguments):
        self._refused = "an event reached no queue"

    def close(self):
        """Drop the connection, which may be broken; the next publish opens another."""
        connection, self._connection, self._channel = self._connection, None, None
        self._unconfirmed, self._refused = set(), None
        if connection is not None and connection.connected:
            connection.connection.collect()


# Of any kind of connection; which are recoverable matters to nobody who starts anew.
_FAILURES = (amqp_exceptions.AMQPError, kombu_exceptions.KombuError, OSError)


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
    url = oslo_messaging.TransportURL.parse(conf)
    if url.transport not in ("rabbit", "kombu"):
        return TransportPublisher(conf, transport, exchange)
    hosts = url.hosts or [oslo_messaging.TransportHost("localhost", 5672, "guest", "guest")]
    return RabbitPublisher(conf, [
        f"amqp://{kombu_url.quote(host.username or 'guest')}:"
        f"{kombu_url.quote(host.password or 'guest')}@"
        f"{netutils.escape_ipv6(host.hostname)}:{host.port or 5672}/"
        f"{kombu_url.quote(url.virtual_host or '/')}"
        for host in hosts], exchange)


def _tls(options):
    """What the RPC transport does, given the same options."""
    if not options.ssl:
        return False
    if not options.ssl_ca_file:
        return {"cert_reqs": ssl.CERT_NONE}
    chosen = {"ca_certs": options.ssl_ca_file, "certfile": options.ssl_cert_file,
              "keyfile": options.ssl_key_file}
    return {name: value for name, value in chosen.items() if value} or True
