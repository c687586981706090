# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ itself, for what oslo.messaging has not: confirms, limits of queues, streams.

kombu is the library below oslo.messaging; the connections here are made from the same options.
"""

import collections
import contextlib
import dataclasses
import itertools
import logging
import random
import re
import ssl
import time

import amqp
import kombu
import oslo_messaging
from amqp import exceptions as amqp_exceptions
from kombu.utils import url as kombu_url
from oslo_utils import netutils

from placement_rpc import amqp_reading

LOG = logging.getLogger(__name__)

CONNECT_TIMEOUT = 5
HEARTBEAT = 30
_SOCKET_TIMEOUT = 60
# A broker that does not confirm for so long is as good as away.
CONFIRM_TIMEOUT = 30

#: How many messages a process takes from a queue before it has acknowledged any.
WINDOW = 200

#: How often a call is delivered that nobody survives.
DELIVERY_LIMIT = 20

#: What a connection or a channel may end with.
FAILURES = amqp_reading.FAILURES

#: What ends a channel and leaves its connection open.
CHANNEL_FAILURES = (amqp_exceptions.ChannelError,)


class Unconfirmed(Exception):
    """The broker is away, or did not take everything: all of it has to be sent again."""


class Unsuitable(Unconfirmed):
    """A queue is there and is not of the kind that it has to be."""


@dataclasses.dataclass(frozen=True, slots=True)
class Broker:
    """How a broker is reached.

    :param urls: tuple of str, kombu URLs of its nodes, tried in turn
    :param login_method: str, as ``[oslo_messaging_rabbit] rabbit_login_method``
    :param tls: False, or what kombu takes as ``ssl``
    """

    urls: tuple = dataclasses.field(repr=False)
    login_method: str = "AMQPLAIN"
    tls: object = False

    @classmethod
    def of(cls, conf, url=None):
        """The broker of a configuration.

        :param conf: :class:`oslo_config.cfg.ConfigOpts`
        :param url: str, instead of the configured ``transport_url``
        :returns: :class:`Broker`; None where the bus is no RabbitMQ
        """
        parsed = oslo_messaging.TransportURL.parse(conf, url)
        if parsed.transport not in ("rabbit", "kombu"):
            return None
        hosts = parsed.hosts or [
            oslo_messaging.TransportHost("localhost", 5672, "guest", "guest")]
        options = conf.oslo_messaging_rabbit
        return cls(
            tuple(f"amqp://{kombu_url.quote(host.username or 'guest')}:"
                  f"{kombu_url.quote(host.password or 'guest')}@"
                  f"{netutils.escape_ipv6(host.hostname)}:{host.port or 5672}/"
                  f"{kombu_url.quote(parsed.virtual_host or '/')}" for host in hosts),
            options.rabbit_login_method, _tls(options))

    @classmethod
    def at(cls, broker):
        """:param broker: :class:`Broker`, or str as ``rabbit://user:password@host:port/``"""
        return broker if isinstance(broker, cls) else cls(
            (broker.replace("rabbit:", "amqp:", 1),))

    def connect(self, patience=_SOCKET_TIMEOUT, **options):
        """Connect to one of the nodes, any of them first.

        :param patience: float, seconds that a broker may leave what it is sent, or half of what it
            sends, lying
        :param options: what py-amqp's connection takes beside
        :returns: an open :class:`kombu.Connection`
        :raises: one of :data:`FAILURES`
        """
        connection = kombu.Connection(
            random.sample(self.urls, len(self.urls)), connect_timeout=CONNECT_TIMEOUT,
            heartbeat=HEARTBEAT, login_method=self.login_method, ssl=self.tls,
            transport_options=options)
        connection.ensure_connection(
            max_retries=len(self.urls), interval_start=0, interval_step=0,
            timeout=CONNECT_TIMEOUT * len(self.urls))
        # The library's own time-outs do not end the wait for the rest of a frame.
        amqp_reading.opened(connection)._transport.sock.settimeout(patience)
        return connection

    @contextlib.contextmanager
    def connected(self, **options):
        """A connection for a block, as of :meth:`connect`; :raises: one of :data:`FAILURES`"""
        connection = self.connect(**options)
        try:
            yield connection
        except BaseException:
            # It may be broken: to say goodbye would be to wait for an answer.
            drop(connection)
            raise
        close(connection)


def _tls(options):
    """What the RPC transport does, given the same options."""
    if not options.ssl:
        return False
    if not options.ssl_ca_file:
        return {"cert_reqs": ssl.CERT_NONE}
    chosen = {"ca_certs": options.ssl_ca_file, "certfile": options.ssl_cert_file,
              "keyfile": options.ssl_key_file}
    return {name: value for name, value in chosen.items() if value} or True


def close(connection):
    """Close a connection that may be broken."""
    with contextlib.suppress(*FAILURES):
        connection.release()


def drop(connection):
    """Close a connection that may be broken, without a word to the broker."""
    found = connection and connection._connection
    if found is None:
        return
    socket_ = found._transport and found._transport.sock
    # TLS has a word of its own, for which it may be too late.
    with contextlib.suppress(OSError, ValueError):
        found.collect()
    if socket_ is not None:
        socket_.close()


def wait(connection, seconds):
    """Let callbacks of a connection run as messages come, for so many seconds at the most."""
    with contextlib.suppress(TimeoutError):
        connection.drain_events(timeout=seconds)
    connection.heartbeat_check()


def declare_exchange(channel, name, options):
    """Make sure that a topic exchange is there, as the RPC transport declares it.

    :param options: ``conf.oslo_messaging_rabbit``
    """
    channel.exchange_declare(
        name, "topic", auto_delete=options.amqp_auto_delete,
        durable=options.amqp_durable_queues or options.rabbit_quorum_queue)


def declare(connection, queue, arguments):
    """Make sure that a durable queue is there.

    The limits of a queue that exists are not changed by this; a policy of the broker does.

    :param arguments: dict, as RabbitMQ names them (``x-queue-type`` and others)
    :raises Unsuitable: when a queue of that name is there and is something else
    """
    asked, limits = dict(arguments), []
    # The broker names one difference at a time.
    while (difference := _differs(connection, queue, asked)) is not None:
        name, current = difference
        if name in limits or name not in _LIMITS:
            raise Unsuitable(f"queue {queue} is there and is of another kind ({name}); it has to "
                             "be deleted")
        limits.append(name)
        asked.pop(name, None)
        if current is not None:
            asked[name] = current
    if limits:
        LOG.warning("Queue %s keeps the limits that it was made with: %s", queue,
                    ", ".join(limits))


def quorum_arguments(options):
    """The arguments of a quorum queue of calls, as the library declares it.

    :param options: ``conf.oslo_messaging_rabbit``
    """
    arguments = {"x-queue-type": "quorum"}
    for name, value in (
            ("x-delivery-limit", options.rabbit_quorum_delivery_limit),
            ("x-max-in-memory-length", options.rabbit_quorum_max_memory_length),
            ("x-max-in-memory-bytes", options.rabbit_quorum_max_memory_bytes)):
        if value:
            arguments[name] = value
    return arguments


def _differs(connection, queue, arguments):
    """Declare a queue.

    :returns: tuple of an argument that the queue has otherwise and its value there, None where it
        has none; None when there is no difference
    """
    channel = connection.channel()
    try:
        channel.queue_declare(queue, durable=True, auto_delete=False, arguments=arguments)
    except amqp_exceptions.PreconditionFailed as error:
        found = _INEQUIVALENT.search(str(error))
        if found is None:
            raise
        name, text, value = found.groups()
        return name, text if value is None else int(value) if value.isdigit() else value
    channel.close()
    return None


_INEQUIVALENT = re.compile(
    r"inequivalent arg '([^']+)'.* current is (?:none|the value '([^']*)'|'([^']*)')")
# What a policy can change; anything else is what a queue is.
_LIMITS = ("x-max-length", "x-max-length-bytes", "x-max-age", "x-message-ttl", "x-delivery-limit",
           "x-expires")


def raw_channel(connection):
    """A channel that leaves bodies alone: a message can name an encoding that breaks them."""
    channel = connection.channel()
    channel.auto_decode = False
    return channel


def depth(connection, queue):
    """:returns: int, how many messages are in a queue; :raises: what ends a channel"""
    channel = connection.channel()
    count = channel.queue_declare(queue, passive=True).message_count
    channel.close()
    return count


class ConfirmedChannel:
    """Publishes many messages, and then waits until the broker has confirmed all of them.

    What reaches no queue counts as not taken.

    :param connection: an open :class:`kombu.Connection`
    """

    def __init__(self, connection):
        self.connection = connection
        self.channel = connection.channel()
        self.channel.confirm_select()
        self.channel.events["basic_ack"].add(self._confirmed)
        self.channel.events["basic_nack"].add(self._nacked)
        self.channel.events["basic_return"].add(self._returned)
        self._tags = itertools.count(1)
        self._unconfirmed = set()
        self._refused = None

    def send(self, body, exchange, routing_key, message_id, headers=None):
        """Publish a durable message of JSON.

        :param body: str or bytes
        :param message_id: str; None for none
        :param headers: dict of what else travels beside it
        """
        self._unconfirmed.add(next(self._tags))
        properties = {"message_id": message_id} if message_id else {}
        amqp_reading.publish(self.channel, amqp.Message(
            body, delivery_mode=2, content_type="application/json", content_encoding="utf-8",
            application_headers=headers or {}, **properties), exchange, routing_key,
            mandatory=True)

    def settle(self, timeout=CONFIRM_TIMEOUT, still=lambda: None):
        """Wait until everything that was sent is confirmed.

        :param timeout: float, seconds
        :param still: callable that is called while it waits; what it raises ends the waiting
        :raises Unconfirmed: and nothing is known of any message
        """
        deadline = time.monotonic() + timeout
        while self._unconfirmed and not self._refused:
            still()
            left = deadline - time.monotonic()
            if left <= 0:
                raise Unconfirmed(f"no confirm within {timeout:.0f} s")
            with contextlib.suppress(TimeoutError):
                self.connection.drain_events(timeout=min(0.5, left))
        if self._refused:
            refused, self._refused = self._refused, None
            raise Unconfirmed(refused)

    def _confirmed(self, tag, multiple):
        if multiple:
            self._unconfirmed = {each for each in self._unconfirmed if each > tag}
        else:
            self._unconfirmed.discard(tag)

    def _nacked(self, tag, multiple):
        self._confirmed(tag, multiple)
        self._refused = "the broker refused a message"

    def _returned(self, *_arguments):
        self._refused = "a message reached no queue"


class Intake:
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
            while len(self._messages) < most and amqp_reading.has_come(self._connection):
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
