# SPDX-License-Identifier: Apache-2.0
"""What a resource tracker and the store say of who uses a node, compared.

Nothing here reads or writes.
"""

import dataclasses

from placement_rpc.nova.inventory import CLASSES
from placement_rpc.objects.sync_result import Disagreement

ORPHANED, MISSING, DIFFERENT = "orphaned", "missing", "different"


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """All that a consumer holds.

    :param allocations: dict of provider uuid to dict of class to amount
    :param changed_at: datetime in UTC without a zone
    """

    project_id: str
    user_id: str
    generation: int
    changed_at: object
    allocations: dict


def said_of(resources, provider, disk_provider):
    """What a tracker says that a consumer uses, by the providers that have it.

    The disk of a node that shares one is the other provider's (generic-resource-pools).

    :param resources: dict of class to amount
    :param provider: str, uuid of the node's provider
    :param disk_provider: str, uuid of the provider that its disk is claimed from; None for none
    :returns: dict of provider uuid to dict of class to amount
    """
    own, said = dict(resources), {}
    disk = own.pop("DISK_GB", 0)
    if disk and disk_provider == provider:
        own["DISK_GB"] = disk
    elif disk and disk_provider is not None:
        said[disk_provider] = {"DISK_GB": disk}
    if own:
        said[provider] = own
    return said


def compare(held, said, provider, shared, before):
    """The consumers of which the two say different things.

    One that changed in the store after the tracker looked is none: the tracker can not know.

    :param held: dict of consumer uuid to :class:`Held`
    :param said: dict of consumer uuid to what :func:`said_of` returned
    :param provider: str, uuid of the node's provider
    :param shared: set of the uuids of the providers whose disk the node shares
    :param before: datetime; what changed since is younger than what the tracker saw
    :returns: list of :class:`Disagreement`, by consumer
    """
    found = []
    for consumer in sorted(held.keys() | said.keys()):
        holding = held.get(consumer)
        if holding is not None and holding.changed_at >= before:
            continue
        wants = said.get(consumer, {})
        has = _here(holding, wants, provider, shared)
        if has != wants:
            found.append(Disagreement(
                consumer_uuid=consumer, held=has, said=wants, healed=False, reason=None,
                kind=ORPHANED if not wants else MISSING if provider not in has else DIFFERENT))
    return found


def _here(holding, wants, provider, shared):
    """What of a holding the tracker of the node can speak of: the classes that nodes have, and
    the disk of one that is here; that of one elsewhere is another tracker's."""
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
    """What a consumer has to hold for the two to agree: what the tracker can not speak of stays.

    :param holding: :class:`Held`; None for a consumer that holds nothing
    :param disagreement: :class:`Disagreement`
    :returns: dict of provider uuid to dict of class to amount; empty for nothing
    """
    wanted = {uuid: dict(amounts) for uuid, amounts in disagreement.said.items()}
    for uuid, amounts in (holding.allocations if holding else {}).items():
        here = disagreement.held.get(uuid, {})
        kept = {name: amount for name, amount in amounts.items() if name not in here}
        if kept:
            wanted[uuid] = {**kept, **wanted.get(uuid, {})}
    if disagreement.kind == ORPHANED and any(
            "VCPU" in amounts or "MEMORY_MB" in amounts for amounts in wanted.values()):
        # It lives on another node too, which may share the same disk.
        for uuid, amounts in disagreement.held.items():
            if set(amounts) == {"DISK_GB"}:
                wanted[uuid] = dict(amounts)
    return wanted
