# SPDX-License-Identifier: Apache-2.0
"""Declare exchanges and queues on RabbitMQ."""

import re

from amqp import exceptions as amqp_exceptions

from placement_rpc.amqp.broker import LOG
from placement_rpc.amqp.publisher import Unconfirmed

#: How often a call is delivered that nobody survives.
DELIVERY_LIMIT = 20


class Unsuitable(Unconfirmed):
    """A queue is there and is not of the kind that it has to be."""


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


def depth(connection, queue):
    """:returns: int, how many messages are in a queue; :raises: what ends a channel"""
    channel = connection.channel()
    count = channel.queue_declare(queue, passive=True).message_count
    channel.close()
    return count
