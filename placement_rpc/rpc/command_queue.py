# SPDX-License-Identifier: Apache-2.0
"""The queue of casts that must not be lost, as both of its ends see it.

An RPC cast is acknowledged before it is run, and gone when its server dies. A command stays in
this queue until what it asks for is committed.
"""

import json

from placement_rpc import exception
from placement_rpc.amqp import dead_letters, topology

# The consumer counts attempts at each command by itself; the broker counts for all that a dead
# process held, and so only puts an end to what nothing else does.
_DELIVERY_LIMIT = 1_000_000

def name(topic):
    """:param topic: str, where the service listens; :returns: str, the queue's name"""
    return f"{topic}_commands"


def declare(connection, topic, options):
    """Make sure that the queue is there, and the one behind it.

    :param options: ``conf.queues``
    """
    dead_letters.declare(connection, options)
    topology.declare(connection, name(topic), {
        "x-queue-type": "quorum",
        # One process works at a time, so that what was sent first is done first.
        "x-single-active-consumer": True,
        "x-max-length": options.commands_max_length, "x-overflow": "reject-publish",
        "x-delivery-limit": _DELIVERY_LIMIT,
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": options.dead_letters,
        # A letter leaves this queue when the other one has confirmed it.
        "x-dead-letter-strategy": "at-least-once"})


def sealed(version, method, arguments, context):
    """The message of a command.

    :param version: str, of the contract
    :param arguments: dict, as they travel
    :param context: dict, as it travels
    :returns: str
    :raises InvalidInput: when something can not be written down as JSON
    """
    try:
        return json.dumps({"version": version, "method": method, "args": arguments,
                           "context": context}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise exception.InvalidInput(what=method, reason=str(error)) from None


def opened(body):
    """The command in a message.

    :param body: bytes or str
    :returns: dict of version, method, args, context
    :raises InvalidInput: when there is none in it
    """
    try:
        command = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise exception.InvalidInput(what="command", reason=str(error)) from None
    if not isinstance(command, dict) or set(command) != {"version", "method", "args", "context"}:
        raise exception.InvalidInput(
            what="command", reason="it is not a mapping of version, method, args and context")
    return command
