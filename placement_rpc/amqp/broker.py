# SPDX-License-Identifier: Apache-2.0
"""Connections to RabbitMQ, for features that oslo.messaging lacks: confirms, limits, streams.

kombu is the library below oslo.messaging; connections are made from the same options.
"""

import contextlib
import dataclasses
import random
import ssl
from collections.abc import Iterator
from typing import Any, Self

import oslo_messaging
from kombu.utils import url as kombu_url
from oslo_config import cfg
from oslo_utils import netutils

from placement_rpc import exception
from placement_rpc.amqp import contents, frames
from placement_rpc.amqp.connection import Connection

#: Seconds, for each node.
CONNECT_TIMEOUT = 5
#: Seconds; the broker closes a connection on which it receives nothing for twice as long.
HEARTBEAT = 30
#: The kind of transport URL of a service that is called in its own process only.
EMBEDDED = "inprocess"
_RABBIT = ("rabbit", "kombu")
_SOCKET_TIMEOUT = 60


@dataclasses.dataclass(frozen=True, slots=True)
class Broker:
    """The address of a broker.

    ``urls`` are kombu URLs of its nodes, ``login_method`` is as ``[oslo_messaging_rabbit]
    rabbit_login_method``, and ``tls`` is False or what kombu takes as ``ssl``.
    """

    urls: tuple[str, ...] = dataclasses.field(repr=False)
    login_method: str = "AMQPLAIN"
    tls: bool | dict[str, Any] = False

    @classmethod
    def of(cls, conf: cfg.ConfigOpts, url: str | None = None) -> Self | None:
        """Return the broker of a configuration; None if the bus is not RabbitMQ.

        :param url: replaces the configured ``transport_url``
        :returns: None for ``inprocess://``, the embedded service
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
    def at(cls, broker: Self | str) -> Self:
        """Return the broker at a URL such as ``rabbit://user:password@host:port/``.

        :param broker: the URL; a :class:`Broker` is returned as it is
        """
        if isinstance(broker, str):
            return cls((broker.replace("rabbit:", "amqp:", 1),))
        return broker

    def connect(self, patience: float = _SOCKET_TIMEOUT,
                largest_body: int = contents.LARGEST_BODY, **options: Any) -> Connection:
        """Connect to one of the nodes, in random order.

        :param patience: seconds that a read or a write of a part of a frame may block
        :param largest_body: the most bytes in the body of a message that is read
        :param options: further arguments of py-amqp's connection
        :raises FAILURES: if no node accepts a connection
        """
        connection = frames.KombuConnection(
            random.sample(self.urls, len(self.urls)), connect_timeout=CONNECT_TIMEOUT,
            heartbeat=HEARTBEAT, login_method=self.login_method, ssl=self.tls,
            transport_options=options, largest_body=largest_body)
        connection.ensure_connection(
            max_retries=len(self.urls), interval_start=0, interval_step=0,
            timeout=CONNECT_TIMEOUT * len(self.urls))
        frames.set_patience(connection, patience)
        return Connection(connection, bool(self.tls))

    @contextlib.contextmanager
    def connected(self, **options: Any) -> Iterator[Connection]:
        """Hold a connection for a block; arguments and errors are those of :meth:`connect`."""
        connection = self.connect(**options)
        try:
            yield connection
        except BaseException:
            # A graceful close of a broken connection would block on the reply.
            connection.drop()
            raise
        connection.close()


def _tls(options):
    """Return what kombu takes as ``ssl``, as the RPC transport does from the same options."""
    if not options.ssl:
        return False
    if not options.ssl_ca_file:
        return {"cert_reqs": ssl.CERT_NONE}
    chosen = {"ca_certs": options.ssl_ca_file, "certfile": options.ssl_cert_file,
              "keyfile": options.ssl_key_file}
    return {name: value for name, value in chosen.items() if value} or True
