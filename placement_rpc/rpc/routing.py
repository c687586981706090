# SPDX-License-Identifier: Apache-2.0
"""The intakes of the service: which calls wait in which queue.

What comes in great numbers at once must not stand before what cannot wait: in the morning of a
fleet ten thousand resource trackers report their inventories in the same minute in which
schedulers claim. Each intake is a topic of its own, with a queue and a bound of its own in every
conductor. Whoever does not know of the others, as clients of older releases, calls the first.
"""

from placement_rpc.versions import releases

#: Since which version of the contract there is more than one.
SINCE = releases.number("1.2")
CLAIMS, FLEET = "claims", "fleet"
#: dict of intake to the calls that wait there; all others wait at the topic itself
METHODS = {
    CLAIMS: ("claim_allocations", "release_allocations"),
    FLEET: ("add_inventory", "create_provider", "delete_inventory", "set_aggregates",
            "set_inventory", "sync_compute_node", "update_inventory", "update_provider"),
}
_OF_METHOD = {method: intake for intake, methods in METHODS.items() for method in methods}


def name(topic, intake):
    """The topic of an intake.

    :param topic: str, where the service listens
    :param intake: str; None for the service's own topic
    """
    return f"{topic}_{intake}" if intake else topic


def topic_of(topic, method, release):
    """Where a call goes.

    :param topic: str, where the service listens
    :param method: str
    :param release: :class:`placement_rpc.versions.releases.Release` that the service speaks
    :returns: str, a topic
    """
    intake = _OF_METHOD.get(method)
    if intake is None or release.number < SINCE:
        return topic
    return name(topic, intake)


EXCHANGE = "placement"
TOPIC = "placement"
