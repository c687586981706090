# SPDX-License-Identifier: Apache-2.0
"""Compare the allocations that a resource tracker reports with those that are stored.

Pure functions: nothing here reads or writes the database.
"""

import dataclasses

from placement_rpc.nova.inventory import CLASSES
from placement_rpc.objects.sync_result import Disagreement

ORPHANED, MISSING, DIFFERENT = "orphaned", "missing", "different"


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """The stored allocations of a consumer.

    :param allocations: dict of provider uuid to dict of class to amount
    :param changed_at: datetime in UTC without a zone
    """

    project_id: str
    user_id: str
    generation: int
    changed_at: object
    allocations: dict


def reported(resources, provider, disk_provider):
    """Return the allocations that a tracker reports for a consumer, by provider.

    The disk of a node with shared storage belongs to the other provider (generic-resource-pools).
    Classes that no node has are left out.

    :param resources: dict of class name to amount
    :param provider: str, uuid of the node's provider
    :param disk_provider: str, uuid of the provider of the consumer's disk; None for none
    :returns: dict of provider uuid to dict of class name to amount
    """
    own, found = {name: amount for name, amount in resources.items() if name in CLASSES}, {}
    disk = own.pop("DISK_GB", 0)
    if disk and disk_provider == provider:
        own["DISK_GB"] = disk
    elif disk and disk_provider is not None:
        found[disk_provider] = {"DISK_GB": disk}
    if own:
        found[provider] = own
    return found


def compare(held, reports, provider, shared, before):
    """Return the consumers whose reported and stored allocations differ.

    A consumer that changed in the store after the tracker's snapshot is skipped, since the
    tracker cannot know the change.

    :param held: dict of consumer uuid to :class:`Held`
    :param reports: dict of consumer uuid to what :func:`reported` returned
    :param provider: str, uuid of the node's provider
    :param shared: set of the uuids of the providers whose disk the node shares
    :param before: datetime of the snapshot; later changes are newer than the report
    :returns: list of :class:`Disagreement`, ordered by consumer
    """
    found = []
    for consumer in sorted(held.keys() | reports.keys()):
        holding = held.get(consumer)
        if holding is not None and holding.changed_at >= before:
            continue
        wants = reports.get(consumer, {})
        has = _here(holding, wants, provider, shared)
        if has != wants:
            found.append(Disagreement(
                consumer_uuid=consumer, held=has, said=wants, healed=False, reason=None,
                kind=ORPHANED if not wants else MISSING if provider not in has else DIFFERENT))
    return found


def _here(holding, wants, provider, shared):
    """Return the part of a consumer's allocations that the node's tracker can report on.

    These are the classes that nodes have, and the shared disk of a consumer on this node. The
    disk of a consumer on another node is for the tracker of that node.
    """
    if holding is None:
        return {}
    own = {name: amount for name, amount in holding.allocations.get(provider, {}).items()
           if name in CLASSES}
    has = {provider: own} if own else {}
    for uuid in shared & holding.allocations.keys():
        if has or uuid in wants:
            has[uuid] = holding.allocations[uuid]
    return has


def healed(holding, disagreement):
    """Return the allocations with which a consumer agrees with the tracker.

    Allocations that the tracker cannot report on stay.

    :param holding: :class:`Held`; None for a consumer without allocations
    :param disagreement: :class:`Disagreement`
    :returns: dict of provider uuid to dict of class name to amount; empty for no allocations
    """
    wanted = {uuid: dict(amounts) for uuid, amounts in disagreement.said.items()}
    for uuid, amounts in (holding.allocations if holding else {}).items():
        here = disagreement.held.get(uuid, {})
        kept = {name: amount for name, amount in amounts.items() if name not in here}
        if kept:
            wanted[uuid] = {**kept, **wanted.get(uuid, {})}
    if disagreement.kind == ORPHANED and any(
            "VCPU" in amounts or "MEMORY_MB" in amounts for amounts in wanted.values()):
        # It is on another node too, which may share the same disk.
        for uuid, amounts in disagreement.held.items():
            if set(amounts) == {"DISK_GB"}:
                wanted[uuid] = dict(amounts)
    return wanted
