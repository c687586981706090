# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ itself, for what oslo.messaging has not: confirms, limits of queues, streams.

kombu is the library below oslo.messaging; the connections here are made from the same options.
"""

import contextlib
import dataclasses
import logging
import random
import ssl

import kombu
import oslo_messaging
from amqp import exceptions as amqp_exceptions
from kombu.utils import url as kombu_url
from oslo_utils import netutils

from placement_rpc import exception
from placement_rpc.amqp import frames

LOG = logging.getLogger(__name__)
CONNECT_TIMEOUT = 5
HEARTBEAT = 30
#: The kind of transport URL of a service that is called in its own process only.
EMBEDDED = "inprocess"
_RABBIT = ("rabbit", "kombu")
_SOCKET_TIMEOUT = 60
#: What a connection or a channel may end with.
FAILURES = frames.FAILURES
#: What ends a channel and leaves its connection open.
CHANNEL_FAILURES = (amqp_exceptions.ChannelError,)


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
        :returns: :class:`Broker`; None for ``inprocess://``, the embedded service
        :raises InvalidInput: for a bus of another kind
        """
        parsed = oslo_messaging.TransportURL.parse(conf, url)
        if parsed.transport == EMBEDDED:
            return None
        if parsed.transport not in _RABBIT:
            raise exception.InvalidInput(
                what="transport_url", reason=f"a bus of the kind {parsed.transport!r} is not "
                "supported; there are rabbit://user:password@host:port/ and inprocess://name/")
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
        frames.opened(connection)._transport.sock.settimeout(patience)
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


def raw_channel(connection):
    """A channel that leaves bodies alone: a message can name an encoding that breaks them."""
    channel = connection.channel()
    channel.auto_decode = False
    return channel
