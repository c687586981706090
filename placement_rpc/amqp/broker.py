# SPDX-License-Identifier: Apache-2.0
"""Connections to RabbitMQ, for features that oslo.messaging lacks: confirms, limits, streams.

kombu is the library below oslo.messaging; connections are made from the same options.
"""

import contextlib
import dataclasses
import functools
import socket
import ssl
import urllib.parse
from collections.abc import Iterator
from typing import Any, Self

import oslo_messaging
from oslo_config import cfg
from oslo_utils import netutils

from placement_rpc import conf as configuration
from placement_rpc import exception
from placement_rpc.amqp import contents, frames, heartbeats
from placement_rpc.amqp import options as rabbit_options
from placement_rpc.amqp.connection import Connection
from placement_rpc.amqp.node_order import NodeOrder
from placement_rpc.amqp.tls import (
    HandshakeFailed,
    Problem,
    Tls,
    explained,
    has_wrong_name,
    wrong_name,
)
from placement_rpc.backoff import Backoff

#: Seconds for an attempt to connect to a node; fewer if there is another one to try.
CONNECT_TIMEOUT = 5
_SHORT_CONNECT_TIMEOUT = 3
#: The kind of transport URL of a service that is called in its own process only.
EMBEDDED = "inprocess"
_RABBIT = ("rabbit", "kombu")
# Seconds that a read or a write of a part of a frame may block if there are no heartbeats.
_SOCKET_TIMEOUT = 60
_PORTS = 2 ** 16


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """The address of a node of a broker, and the account that is used on it."""

    host: str
    port: int
    user: str
    password: str = dataclasses.field(repr=False)

    @property
    def address(self) -> str:
        """``HOST:PORT``, with the brackets that an IPv6 address needs"""
        return f"{netutils.escape_ipv6(self.host)}:{self.port}"


@dataclasses.dataclass(frozen=True, slots=True)
class Broker:
    """The address of a broker, and how to connect to it.

    ``options`` are those of ``[oslo_messaging_rabbit]``, in which the query of the transport URL
    has the last word; ``tls`` is None for connections in clear text.
    """

    nodes: tuple[Node, ...]
    virtual_host: str
    options: cfg.ConfigOpts.GroupAttr = dataclasses.field(repr=False, compare=False)
    tls: Tls | None = None
    _order: NodeOrder = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self):
        object.__setattr__(self, "_order", NodeOrder(self.nodes))

    @classmethod
    def of(cls, conf: cfg.ConfigOpts, url: str | None = None) -> Self | None:
        """Return the broker of a configuration; None if the bus is not RabbitMQ.

        :param url: replaces the configured ``transport_url``
        :returns: None for ``inprocess://``, the embedded service
        :raises InvalidInput: for a bus of another kind, for a URL that cannot be read, and for an
            option of ``[oslo_messaging_rabbit]`` that cannot be honoured
        """
        parsed = parse_url(conf, url)
        if parsed.transport == EMBEDDED:
            return None
        if parsed.transport not in _RABBIT:
            raise exception.InvalidInput(
                what="transport_url", reason=f"a bus of the kind {parsed.transport!r} is not "
                "supported; there are rabbit://user:password@host:port/ and inprocess://name/")
        hosts = parsed.hosts or [
            oslo_messaging.TransportHost("localhost", 5672, "guest", "guest")]
        options = rabbit_options.of_url(conf, parsed)
        rabbit_options.check(options)
        return cls(
            tuple(Node(host.hostname, host.port or 5672, host.username or "guest",
                       host.password or "guest") for host in hosts),
            parsed.virtual_host or "/", options, Tls.of(options, conf.broker.check_hostname))

    @classmethod
    def at(cls, broker: Self | str) -> Self:
        """Return the broker at a URL such as ``rabbit://user:password@host:port/``.

        Options of ``[oslo_messaging_rabbit]`` may stand in the query of the URL:
        ``rabbit://user:password@host:5671/?ssl=true&ssl_ca_file=/etc/ssl/rabbit.pem``.

        :param broker: the URL; a :class:`Broker` is returned as it is
        :raises InvalidInput: as :meth:`of`, and for the embedded service
        """
        if not isinstance(broker, str):
            return broker
        found = cls.of(configuration.new_config(config_files=[]), broker)
        if found is None:
            raise exception.InvalidInput(what="broker", reason="it must be a RabbitMQ")
        return found

    def backoff(self) -> Backoff:
        """Return the pauses between attempts to connect, up to ``rabbit_interval_max``."""
        return Backoff(longest=self.options.rabbit_interval_max)

    @property
    def silence(self) -> float:
        """Seconds after which a node counts as hung if nothing comes from it."""
        heartbeat = self.options.heartbeat_timeout_threshold
        return heartbeat / 2 * frames.MISSED_HEARTBEATS or _SOCKET_TIMEOUT

    def connect(self, patience: float | None = None,
                largest_body: int = contents.LARGEST_BODY, **options: Any) -> Connection:
        """Connect to one of the nodes.

        All connections of this object go to one node, which differs from process to process. When
        it is lost, or a connection to it, they go to the next one.

        :param patience: seconds that a read or a write of a part of a frame may block; None for
            :attr:`silence`
        :param largest_body: the most bytes in the body of a message that is read
        :param options: further arguments of py-amqp's connection
        :raises FAILURES: if no node accepts a connection
        """
        failed: Exception | None = None
        for node in self._order.now():
            try:
                connection = self._connect(node, largest_body, options)
            except frames.FAILURES as error:
                # What TLS says helps more than that another node is down.
                if not isinstance(failed, HandshakeFailed):
                    failed = explained(error, node.address) or error
                self._order.leave(node)
                continue
            frames.set_patience(connection, self.silence if patience is None else patience)
            found = Connection(connection, self.tls is not None,
                               on_loss=functools.partial(self._order.leave, node))
            if self.options.heartbeat_timeout_threshold:
                heartbeats.send_on(found)
            return found
        raise failed or ValueError("a broker without nodes")

    def _connect(self, node, largest_body, options):
        several = len(self.nodes) > 1
        settings = {}
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # In milliseconds. The library's second ends connections when a network pauses.
            settings[socket.TCP_USER_TIMEOUT] = int(1000 * self.silence)
        connection = frames.KombuConnection(
            netutils.escape_ipv6(node.host), node.user, node.password, self.virtual_host,
            node.port, connect_timeout=_SHORT_CONNECT_TIMEOUT if several else CONNECT_TIMEOUT,
            heartbeat=self.options.heartbeat_timeout_threshold,
            login_method=self.options.rabbit_login_method,
            ssl=self.tls.parameters(node.host) if self.tls else False,
            transport_options={"socket_settings": settings, **options},
            largest_body=largest_body)
        connection.ensure_connection(max_retries=0)
        return connection

    @contextlib.contextmanager
    def connected(self, **options: Any) -> Iterator[Connection]:
        """Hold a connection for a block; arguments and errors are those of :meth:`connect`.

        An error of the connection in the block is the node's. Any other, such as that of a queue
        that does not exist, is not, and further connections go to the same node.
        """
        connection = self.connect(**options)
        try:
            yield connection
        except BaseException as error:
            # A graceful close of a broken connection would block on the reply.
            connection.drop(lost=frames.is_loss(error))
            raise
        connection.close()

    @staticmethod
    def reach(node: Node) -> None:
        """Open and close a TCP connection to a node.

        :raises OSError: if the node cannot be reached
        """
        socket.create_connection((node.host, node.port), CONNECT_TIMEOUT).close()

    def tls_problem(self, node: Node) -> Problem | None:
        """Make a TLS handshake with a node, without logging in, and return what fails.

        The name of the host is checked whether or not connections check it. Without TLS it only
        connects.

        :returns: None if the handshake succeeds, or without TLS
        :raises OSError: if the node cannot be reached
        """
        if self.tls is None:
            self.reach(node)
            return None
        try:
            try:
                self._handshake(node, checks_names=True)
                return None
            except ssl.SSLError as error:
                if not has_wrong_name(error):
                    raise
            return wrong_name(node.host, self._handshake(node, checks_names=False))
        except ssl.SSLError as error:
            failed = explained(error, node.address)
            return failed.problem if failed else None

    def _handshake(self, node, checks_names):
        tls = dataclasses.replace(self.tls, checks_names=checks_names)
        return frames.handshake(node.address, tls.parameters(node.host), CONNECT_TIMEOUT)


def parse_url(conf: cfg.ConfigOpts, url: str | None = None) -> oslo_messaging.TransportURL:
    """Parse a transport URL; an error does not show it, since it may contain a password.

    :param url: replaces the configured ``transport_url``
    :raises InvalidInput: if it is malformed
    """
    url = url or conf.transport_url
    try:
        parts = urllib.parse.urlsplit(url)
        if parts.fragment or "@" in parts.path + parts.query:
            # A part of a password that was taken for the rest of the URL.
            raise ValueError(url)
        parsed = oslo_messaging.TransportURL.parse(conf, url)
        if len({host.username is None for host in parsed.hosts}) > 1:
            # Or for another host, as a part of a password behind a comma.
            raise ValueError(url)
    except (oslo_messaging.InvalidTransportURL, ValueError):
        raise exception.InvalidInput(
            what="transport_url", reason="it must have the form "
            "rabbit://user:password@host:port/virtual_host, in which the characters / @ : % , # ? "
            "[ ] of a user, a password or a virtual host are percent-encoded, for example / as "
            "%2F; of several hosts, each has user and password, or none has"
        ) from None
    for host in parsed.hosts:
        if not host.hostname and parsed.transport in _RABBIT:
            raise exception.InvalidInput(what="transport_url", reason="it has no host name")
        if host.port is not None and not 0 < host.port < _PORTS:
            raise exception.InvalidInput(
                what="transport_url", reason=f"{host.port} is not a port")
    return parsed

