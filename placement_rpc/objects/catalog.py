# SPDX-License-Identifier: Apache-2.0
"""All events that the service publishes (DESIGN section 5)."""

import enum
from typing import NamedTuple

from placement_rpc.objects import payloads


class Effect(enum.Enum):
    """What the change behind an event does to a candidate index."""

    #: Nothing.
    NONE = "none"
    #: The provider that the payload names has to be read again.
    PROVIDER = "provider"
    #: The resource classes have to be read again.
    CLASSES = "classes"
    #: The names of the traits have to be read again.
    TRAITS = "traits"
    #: Everything has to be read again.
    EVERYTHING = "everything"
    #: Used amounts changed, which the transaction adds to its last event of allocations.
    USED = "used"


class Event(NamedTuple):
    """One type of event: the class of its payload, and its effect on a candidate index."""

    payload: type[payloads.EventPayload]
    effect: Effect = Effect.NONE


_PROVIDER = Event(payloads.ResourceProviderPayload, Effect.PROVIDER)
_AGGREGATES = Event(payloads.ProviderAggregatesPayload, Effect.PROVIDER)
_INVENTORY = Event(payloads.InventoryPayload, Effect.PROVIDER)
_ALLOCATION = Event(payloads.AllocationPayload, Effect.USED)
_CLASS = Event(payloads.ResourceClassPayload, Effect.CLASSES)
_TRAIT = Event(payloads.TraitPayload, Effect.TRAITS)

#: dict of event type to :class:`Event`
EVENTS = {
    "resource_provider.create": _PROVIDER,
    "resource_provider.update": _PROVIDER,
    "resource_provider.delete": _PROVIDER,
    "resource_provider.aggregate.associate": _AGGREGATES,
    "resource_provider.aggregate.disassociate": _AGGREGATES,
    "resource_provider.traits.update": Event(payloads.ProviderTraitsPayload, Effect.PROVIDER),
    "inventory.create": _INVENTORY,
    "inventory.update": _INVENTORY,
    "inventory.delete": _INVENTORY,
    # Beside the event of the inventory.
    "inventory.capacity_exceeded": Event(payloads.CapacityExceededPayload, Effect.PROVIDER),
    "allocation.create": _ALLOCATION,
    "allocation.update": _ALLOCATION,
    "allocation.delete": _ALLOCATION,
    "allocation.exists": Event(payloads.AllocationPayload),
    "allocation.snapshot.begin": Event(payloads.SnapshotPayload),
    "allocation.snapshot.end": Event(payloads.SnapshotPayload),
    "allocation.claim.refused": Event(payloads.ClaimRefusedPayload),
    "consumer.update": Event(payloads.ConsumerPayload),
    "compute_node.inventory_migrated": Event(payloads.ComputeNodePayload),
    "resource_class.create": _CLASS,
    "resource_class.update": _CLASS,
    "resource_class.delete": _CLASS,
    "store.import": Event(payloads.StoreImportPayload, Effect.EVERYTHING),
    "trait.create": _TRAIT,
    "trait.delete": _TRAIT,
}
