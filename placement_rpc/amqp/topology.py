# SPDX-License-Identifier: Apache-2.0
"""Declare exchanges and queues on RabbitMQ."""

import logging
import re
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import amqp
from amqp import exceptions as amqp_exceptions
from oslo_config import cfg

from placement_rpc.amqp.connection import Connection
from placement_rpc.amqp.publisher import Unconfirmed

LOG = logging.getLogger(__name__)
# Seconds after which a binding that was deleted is restored.
_RESTORE_EVERY = 2.0
#: The most bytes in the name of a queue or an exchange.
LONGEST_NAME = 255


class Unsuitable(Unconfirmed):
    """A queue exists and is of another type than the one it has to be."""


class Binding(NamedTuple):
    """A queue, and the routing key of the messages that an exchange routes to it."""

    queue: str
    routing_key: str


def declare_exchange(connection: Connection, name: str, options: cfg.ConfigOpts.GroupAttr) -> None:
    """Declare a topic exchange as the RPC transport declares it.

    :param options: ``conf.oslo_messaging_rabbit``
    :raises FAILURES: if it exists and is of another kind, or the connection is lost
    """
    with connection.asking() as channel:
        _declare_exchange(channel, name, options)


def _declare_exchange(channel, name, options, nowait=False):
    channel.exchange_declare(
        name, "topic", auto_delete=options.amqp_auto_delete,
        durable=options.amqp_durable_queues or options.rabbit_quorum_queue, nowait=nowait)


def declare_again(channel: amqp.Channel, exchange: str, options: cfg.ConfigOpts.GroupAttr,
                  bindings: Sequence[Binding]) -> None:
    """Declare an exchange and bind queues to it, without waiting for the broker.

    What exists is not changed. If one of the queues does not exist, the broker closes the channel.
    The caller holds the write lock of the connection.

    :param options: ``conf.oslo_messaging_rabbit``
    :raises FAILURES: if the connection is lost
    """
    _declare_exchange(channel, exchange, options, nowait=True)
    for binding in bindings:
        channel.queue_bind(binding.queue, exchange, binding.routing_key, nowait=True)


class KeptBindings:
    """Restores an exchange, and the bindings of queues to it, if they are deleted.

    The broker tells a consumer that its queue is gone, but not that no message reaches the queue
    any more. So both are declared again every two seconds.

    :param connection: an open connection, which the caller reads
    :param exchange: the name of the exchange
    :param options: ``conf.oslo_messaging_rabbit``
    :raises FAILURES: if the connection is lost
    """

    def __init__(self, connection: Connection, exchange: str, options: cfg.ConfigOpts.GroupAttr,
                 bindings: Sequence[Binding]) -> None:
        self._connection = connection
        self._channel = connection.channel()
        self._exchange, self._options, self._bindings = exchange, options, bindings
        self._due = 0.0

    def keep(self) -> None:
        """Declare them again, if it is time to; called about once a second or more often.

        :raises FAILURES: if the connection is lost
        """
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _RESTORE_EVERY
        with self._connection.writing():
            declare_again(self._channel, self._exchange, self._options, self._bindings)


def declare_call_queue(connection: Connection, queue: str, exchange: str,
                       options: cfg.ConfigOpts.GroupAttr) -> None:
    """Declare a queue of calls as the RPC transport declares it, and bind it by its name.

    :param options: ``conf.oslo_messaging_rabbit``
    :raises Unsuitable: if a quorum queue is wanted and another one of that name exists
    :raises FAILURES: if the connection is lost
    """
    declare_exchange(connection, exchange, options)
    if options.rabbit_quorum_queue:
        declare(connection, queue, _quorum_arguments(options))
    else:
        with connection.asking() as channel:
            channel.queue_declare(
                queue, durable=options.amqp_durable_queues, auto_delete=options.amqp_auto_delete,
                arguments={"x-ha-policy": "all"} if options.rabbit_ha_queues else {})
    bind(connection, queue, exchange, queue)


def declare_reply_queue(connection: Connection, queue: str,
                        options: cfg.ConfigOpts.GroupAttr) -> None:
    """Declare a queue of answers as the RPC transport declares it.

    :param options: ``conf.oslo_messaging_rabbit``
    :raises FAILURES: if the connection is lost
    """
    arguments: dict[str, Any] = {}
    if options.rabbit_transient_queues_ttl > 0:
        arguments["x-expires"] = options.rabbit_transient_queues_ttl * 1000
    if options.rabbit_transient_quorum_queue:
        arguments["x-queue-type"] = "quorum"
    with connection.asking() as channel:
        channel.queue_declare(queue, durable=options.rabbit_transient_quorum_queue,
                              auto_delete=False, arguments=arguments)


def consumer_arguments(options: cfg.ConfigOpts.GroupAttr) -> dict[str, Any]:
    """Return the arguments of the consumers of request and reply queues.

    :param options: ``conf.oslo_messaging_rabbit``
    """
    return {"x-cancel-on-ha-failover": True} if options.enable_cancel_on_failover else {}


def declare(connection: Connection, queue: str, arguments: dict[str, Any]) -> None:
    """Declare a durable queue.

    The limits of a queue that exists are not changed by this; a policy of the broker does.

    :param arguments: as RabbitMQ names them (``x-queue-type`` and others)
    :raises Unsuitable: if a queue of that name exists and differs in more than its limits
    :raises FAILURES: if the connection is lost
    """
    asked, limits = dict(arguments), []
    # The broker names one difference at a time.
    while (difference := _differs(connection, queue, asked)) is not None:
        name, current = difference
        if name in limits or name not in _LIMITS:
            raise Unsuitable(f"queue {queue} exists and is of another kind ({name}); use "
                             "another name, or delete the queue if no program needs it")
        limits.append(name)
        asked.pop(name, None)
        if current is not None:
            asked[name] = current
    if limits:
        LOG.warning("Queue %s keeps the limits that it was created with: %s", queue,
                    ", ".join(limits))


def bind(connection: Connection, queue: str, exchange: str, routing_key: str) -> None:
    """Bind a queue to an exchange.

    :raises FAILURES: if one of them does not exist, or the connection is lost
    """
    with connection.asking() as channel:
        channel.queue_bind(queue, exchange=exchange, routing_key=routing_key)


def _quorum_arguments(options):
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

    :returns: tuple of the name of an argument in which an existing queue differs and its value
        there (None if the queue lacks the argument); None if there is no difference
    """
    try:
        with connection.asking() as channel:
            channel.queue_declare(queue, durable=True, auto_delete=False, arguments=arguments)
    except amqp_exceptions.PreconditionFailed as error:
        found = _INEQUIVALENT.search(str(error))
        if found is None:
            raise
        name, text, value = found.groups()
        return name, text if value is None else int(value) if value.isdigit() else value
    return None


_INEQUIVALENT = re.compile(
    r"inequivalent arg '([^']+)'.* current is (?:none|the value '([^']*)'|'([^']*)')")
# The arguments that a policy can change; any other is fixed when the queue is created.
_LIMITS = ("x-max-length", "x-max-length-bytes", "x-max-age", "x-message-ttl", "x-delivery-limit",
           "x-expires")


def depth(connection: Connection, queue: str) -> int:
    """Return how many messages are in a queue.

    :raises FAILURES: if there is no such queue, or the connection is lost
    """
    with connection.asking() as channel:
        return channel.queue_declare(queue, passive=True).message_count
