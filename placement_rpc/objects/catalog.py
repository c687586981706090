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
    """One type of event."""

    #: When it is published, in one sentence for the documents.
    summary: str
    #: The class of its payload.
    payload: type[payloads.EventPayload]
    #: What it does to a candidate index.
    effect: Effect = Effect.NONE


_PROVIDER = (payloads.ResourceProviderPayload, Effect.PROVIDER)
_AGGREGATES = (payloads.ProviderAggregatesPayload, Effect.PROVIDER)
_INVENTORY = (payloads.InventoryPayload, Effect.PROVIDER)
_ALLOCATION = (payloads.AllocationPayload, Effect.USED)
_CLASS = (payloads.ResourceClassPayload, Effect.CLASSES)
_TRAIT = (payloads.TraitPayload, Effect.TRAITS)

#: dict of event type to :class:`Event`
EVENTS = {
    "resource_provider.create": Event("A provider was created.", *_PROVIDER),
    "resource_provider.update": Event(
        "The name, the parent or the root of a provider changed.", *_PROVIDER),
    "resource_provider.delete": Event("A provider was deleted.", *_PROVIDER),
    "resource_provider.aggregate.associate": Event(
        "A provider was added to aggregates.", *_AGGREGATES),
    "resource_provider.aggregate.disassociate": Event(
        "A provider was removed from aggregates.", *_AGGREGATES),
    "resource_provider.traits.update": Event(
        "The traits of a provider changed.", payloads.ProviderTraitsPayload, Effect.PROVIDER),
    "inventory.create": Event("A provider has inventories of more classes.", *_INVENTORY),
    "inventory.update": Event("Inventories of a provider changed.", *_INVENTORY),
    "inventory.delete": Event("Inventories of a provider were deleted.", *_INVENTORY),
    # In addition to the event of the inventory.
    "inventory.capacity_exceeded": Event(
        "An inventory has less capacity than is allocated from it.",
        payloads.CapacityExceededPayload, Effect.PROVIDER),
    "allocation.create": Event("A consumer without allocations has some now.", *_ALLOCATION),
    "allocation.update": Event(
        "The allocations of a consumer, its project, its user or its type changed.",
        *_ALLOCATION),
    "allocation.delete": Event("A consumer has no allocations any more.", *_ALLOCATION),
    "allocation.exists": Event(
        "The allocations of one consumer, in a snapshot.", payloads.AllocationPayload),
    "allocation.snapshot.begin": Event("A snapshot begins.", payloads.SnapshotPayload),
    "allocation.snapshot.end": Event("A snapshot is complete.", payloads.SnapshotPayload),
    "allocation.claim.refused": Event(
        "A claim was refused, and nothing changed.", payloads.ClaimRefusedPayload),
    "consumer.update": Event(
        "A consumer that has allocations has another project, user or type.",
        payloads.ConsumerPayload),
    "compute_node.inventory_migrated": Event(
        "The capacity of a compute node is stored in inventories from now on.",
        payloads.ComputeNodePayload),
    "outbox.reconciled": Event(
        "The store has lost events that were published.", payloads.OutboxReconciledPayload,
        Effect.EVERYTHING),
    "resource_class.create": Event("A resource class was created.", *_CLASS),
    "resource_class.update": Event("A resource class has another name.", *_CLASS),
    "resource_class.delete": Event("A resource class was deleted.", *_CLASS),
    "store.import": Event(
        "Rows of another store were imported, without events of their own.",
        payloads.StoreImportPayload, Effect.EVERYTHING),
    "trait.create": Event("A trait was created.", *_TRAIT),
    "trait.delete": Event("A trait was deleted.", *_TRAIT),
}
