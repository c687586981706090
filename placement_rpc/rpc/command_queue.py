# SPDX-License-Identifier: Apache-2.0
"""The queue of durable casts, as both of its ends see it.

An RPC cast is acknowledged before it runs, and lost if its server is killed. A command stays in
this queue until the change that it asks for is committed.
"""

import json
from collections.abc import Callable
from typing import Any

from oslo_config import cfg

from placement_rpc import bodies, exception
from placement_rpc.amqp import topology
from placement_rpc.amqp.connection import Connection
from placement_rpc.amqp.dead_letters import DeadLetterQueue

# The consumer counts the attempts at each command. The broker counts deliveries of everything that
# a killed process held, so its limit is only a last resort.
_DELIVERY_LIMIT = 1_000_000


def name(topic: str) -> str:
    """Return the name of the queue of a topic."""
    return f"{topic}_commands"


def dead_letter_queue(options: cfg.ConfigOpts.GroupAttr,
                      on_kept: Callable[[], object] = lambda: None) -> DeadLetterQueue:
    """Return the queue of dead letters that ``conf.queues`` describes.

    :param on_kept: see :class:`~placement_rpc.amqp.dead_letters.DeadLetterQueue`
    """
    return DeadLetterQueue(
        options.dead_letters, options.dead_letters_max_length, options.dead_letters_max_age,
        on_kept)


def declare(connection: Connection, topic: str, options: cfg.ConfigOpts.GroupAttr) -> None:
    """Declare the queue, and the one of dead letters behind it.

    :param options: ``conf.queues``
    :raises Unsuitable: if a queue of that name exists and is of another kind
    :raises FAILURES: if the connection is lost
    """
    dead_letter_queue(options).declare(connection)
    topology.declare(connection, name(topic), {
        "x-queue-type": "quorum",
        # One process works at a time, so that commands are settled in the order they were sent.
        "x-single-active-consumer": True,
        "x-max-length": options.commands_max_length, "x-overflow": "reject-publish",
        "x-delivery-limit": _DELIVERY_LIMIT,
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": options.dead_letters,
        # A message leaves this queue when the other one has confirmed it.
        "x-dead-letter-strategy": "at-least-once"})


def sealed(version: str, method: str, arguments: dict[str, Any], context: dict[str, Any],
           limits: bodies.Limits = bodies.REQUESTS) -> str:
    """Return the message of a command.

    :param version: of the contract
    :param arguments: as they travel
    :param context: as it travels
    :raises MessageTooLarge: if it exceeds the limits
    :raises InvalidInput: if something in it cannot be written as JSON
    """
    try:
        body = json.dumps({"version": version, "method": method, "args": arguments,
                           "context": context}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise exception.InvalidInput(what=method, reason=str(error)) from None
    limits.check(body.encode())
    return body


def opened(body: bytes | str, compressed: object = None,
           limits: bodies.Limits = bodies.REQUESTS) -> dict[str, Any]:
    """Return the command in a message: a dict of version, method, args and context.

    :param compressed: how the body is compressed, the message's header ``compression``
    :raises MessageTooLarge: if it exceeds the limits
    :raises InvalidInput: if the message is not a command
    """
    try:
        command = bodies.parsed(bodies.decompressed(body, compressed, limits), limits)
    except exception.MessageTooLarge:
        raise
    except (ValueError, RecursionError, MemoryError) as error:
        raise exception.InvalidInput(what="command", reason=str(error)) from None
    if not isinstance(command, dict) or set(command) != {"version", "method", "args", "context"}:
        raise exception.InvalidInput(
            what="command", reason="it is not a mapping of version, method, args and context")
    return command
