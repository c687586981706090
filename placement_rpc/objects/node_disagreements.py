# SPDX-License-Identifier: Apache-2.0
"""What a resource tracker and the store say of who uses a node, compared.

Nothing here reads or writes.
"""

import dataclasses

from placement_rpc.objects import base, fields

ORPHANED, MISSING, DIFFERENT = "orphaned", "missing", "different"


@base.PlacementObjectRegistry.register
class Disagreement(base.PlacementObject):
    """A consumer of which the tracker and the store say different things.

    ``kind`` is ``orphaned`` (the store has allocations of it on the node, and the tracker does
    not know it), ``missing`` (the other way round) or ``different``. ``held`` and ``said`` map
    provider uuid to a mapping of class to amount: what the store has of the node and of the disk
    that it shares, and what the tracker says. ``healed`` tells whether the store now has what
    the tracker said; ``reason`` why not, where it was to.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "consumer_uuid": fields.field(fields.Uuid()),
        "kind": fields.field(fields.Text(16)),
        "held": fields.field(fields.Json()),
        "said": fields.field(fields.Json()),
        "healed": fields.BooleanField(),
        "reason": fields.field(fields.Text(1000), nullable=True),
    }


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


def said_of(resources, provider, shared_disk, has_disk):
    """What a tracker says that a consumer uses, by the providers that have it.

    The disk of a node that shares one is the other provider's (generic-resource-pools).

    :param resources: dict of class to amount
    :param provider: str, uuid of the node's provider
    :param shared_disk: str, uuid of the provider whose disk it shares; None for none
    :param has_disk: bool, whether the node has a disk of its own
    :returns: dict of provider uuid to dict of class to amount
    """
    own, said = dict(resources), {}
    if not has_disk:
        disk = own.pop("DISK_GB", 0)
        if disk and shared_disk:
            said[shared_disk] = {"DISK_GB": disk}
    if own:
        said[provider] = own
    return said


def compare(held, said, provider, shared_disk, before):
    """The consumers of which the two say different things.

    One that changed in the store after the tracker looked is none: the tracker can not know.

    :param held: dict of consumer uuid to :class:`Held`
    :param said: dict of consumer uuid to what :func:`said_of` returned
    :param before: datetime; what changed since is younger than what the tracker saw
    :returns: list of :class:`Disagreement`, by consumer
    """
    found = []
    for consumer in sorted(held.keys() | said.keys()):
        holding = held.get(consumer)
        if holding is not None and holding.changed_at >= before:
            continue
        has = _here(holding, said.get(consumer), provider, shared_disk)
        wants = said.get(consumer, {})
        if has != wants:
            found.append(Disagreement(
                consumer_uuid=consumer, held=has, said=wants, healed=False, reason=None,
                kind=ORPHANED if not wants else MISSING if provider not in has else DIFFERENT))
    return found


def _here(holding, wants, provider, shared_disk):
    """What of a holding the tracker of the node can speak of."""
    if holding is None:
        return {}
    has = {uuid: amounts for uuid, amounts in holding.allocations.items() if uuid == provider}
    disk = holding.allocations.get(shared_disk) if shared_disk else None
    # The disk of a consumer that is here; that of one elsewhere is another tracker's.
    if disk and (has or (wants and shared_disk in wants)):
        has[shared_disk] = disk
    return has


def healed(holding, disagreement, provider, shared_disk):
    """What a consumer has to hold for the two to agree.

    :param holding: :class:`Held`; None for a consumer that holds nothing
    :returns: dict of provider uuid to dict of class to amount; empty for nothing
    """
    elsewhere = {uuid: amounts for uuid, amounts in (
        holding.allocations.items() if holding else ()) if uuid not in (provider, shared_disk)}
    kept = {}
    if shared_disk and holding and shared_disk in holding.allocations and (
            shared_disk not in disagreement.held):
        kept[shared_disk] = holding.allocations[shared_disk]
    if disagreement.kind == ORPHANED and elsewhere and shared_disk in disagreement.held:
        # It lives on another node too, which may share the same disk.
        kept[shared_disk] = disagreement.held[shared_disk]
    return {**elsewhere, **kept, **disagreement.said}
