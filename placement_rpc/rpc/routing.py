# SPDX-License-Identifier: Apache-2.0
"""Routing: in which request queue a call waits.

Each request queue is a topic of its own, bounded on its own in every conductor. Clients of older
releases know only the service's own topic, where all calls are answered.
"""

from placement_rpc.versions import contract, releases

EXCHANGE = "placement"
TOPIC = "placement"

#: The request queues; None is the service's own topic.
QUEUES = (None, contract.CLAIMS, contract.FLEET)

# The version of the contract that introduced more than one.
_SINCE = releases.number("1.2")


def name(topic: str, queue: str | None) -> str:
    """Return the topic of a request queue.

    :param topic: where the service listens
    :param queue: one of :data:`QUEUES`
    """
    return f"{topic}_{queue}" if queue else topic


def topic_of(topic: str, method: str, release: releases.Release) -> str:
    """Return the topic to which a call is sent.

    :param topic: where the service listens
    :param release: the release that the service speaks
    """
    call = contract.CALLS.get(method)
    if call is None or release.number < _SINCE:
        return topic
    return name(topic, call.queue)
