# SPDX-License-Identifier: Apache-2.0
"""The versioned payloads of events (DESIGN section 5).

A payload describes the change only; it has no tokens, and no addresses of bus or database. Times
are UTC in ISO 8601. ``position`` is the event's number in the stream, without gaps; the relay
assigns it before it publishes the event. ``epoch`` is the numbering that ``position`` belongs to:
it changes when the store has lost events that were published, see ``outbox.reconciled``.
It is None in events that a relay of an older release publishes. ``initiator`` is the caller of the
request that made the change, a mapping of ``user_id`` and ``project_id``; None for changes that
the service makes itself, and for callers without a name. ``reason`` is set if the caller gave one:
a correction of what an audit found, for example.
"""

import typing

from placement_rpc.objects import base, fields, inventory

_GENERATION = fields.WholeNumber(maximum=2 ** 63 - 1)
# A change of a provider that exists, which raises its generation.
_STEP = {
    "provider_uuid": fields.field(fields.Uuid()),
    "generation": fields.field(_GENERATION),
    "previous_generation": fields.field(_GENERATION),
}
# By its class, so that it is registered in a program that loads only the payloads: a listener.
_INVENTORY = inventory.Inventory.obj_name()

# What mappings contain, as JSON Schema.
_TEXT_OR_NULL = {"type": ["string", "null"]}
_UUIDS = {"format": "uuid"}
_BY_CLASS = {"additionalProperties": {"type": "integer", "minimum": 1}}
_BY_PROVIDER = {"propertyNames": _UUIDS, "additionalProperties": {"type": "object", **_BY_CLASS}}
_INITIATOR = {"properties": {"user_id": _TEXT_OR_NULL, "project_id": _TEXT_OR_NULL},
              "required": ["user_id", "project_id"]}
_MAPPINGS = {"additionalProperties": {
    "type": "array", "items": {"type": "string", **_UUIDS}}}
_ERROR = {"properties": {"code": {"type": "string"}, "message": {"type": "string"},
                         "kwargs": {"type": "object"}},
          "required": ["code", "message", "kwargs"]}
_WHETHER_STORED = {"additionalProperties": {"type": "boolean"}}


class EventPayload(base.PlacementObject):
    """Base of the payloads.

    A payload of contract 1.2 or before has ``epoch``, ``initiator`` and ``reason`` in ``added``.

    :cvar optional: the fields that are set only if there is something to say
    """

    optional: typing.ClassVar[frozenset[str]] = frozenset(("reason",))

    fields = {
        "event_id": fields.field(fields.Uuid()),
        "position": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1), nullable=True),
        "occurred_at": fields.field(fields.Text(32)),
        "request_id": fields.field(fields.Text(64), nullable=True),
        "epoch": fields.field(fields.Uuid(), nullable=True),
        "initiator": fields.field(fields.Json(_INITIATOR), nullable=True),
        "reason": fields.field(fields.Text(255), nullable=True),
    }


def _since_1_3(version, *names):
    """Return the fields that contract 1.3 added, with the version of the payload that has them."""
    return dict.fromkeys(("epoch", "initiator", "reason", *names), version)


@base.PlacementObjectRegistry.register
class ResourceProviderPayload(EventPayload):
    """``resource_provider.create``, ``.update`` and ``.delete``.

    ``previous_generation`` and ``previous_name`` are None for a new provider. The parent of a
    root is None, and its root is itself. When a provider moves to another tree, each provider
    below it has an event of its own, since its root changes.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added the parent and the root, now and before; epoch, initiator and reason
    VERSION = "1.1"

    fields = {
        "provider_uuid": fields.field(fields.Uuid()),
        "generation": fields.field(_GENERATION),
        "previous_generation": fields.field(_GENERATION, nullable=True),
        "name": fields.field(fields.Text(200)),
        "previous_name": fields.field(fields.Text(200), nullable=True),
        "parent_provider_uuid": fields.field(fields.Uuid(), nullable=True),
        "root_provider_uuid": fields.field(fields.Uuid()),
        "previous_parent_provider_uuid": fields.field(fields.Uuid(), nullable=True),
        "previous_root_provider_uuid": fields.field(fields.Uuid(), nullable=True),
    }

    added = _since_1_3(
        "1.1", "parent_provider_uuid", "root_provider_uuid", "previous_parent_provider_uuid",
        "previous_root_provider_uuid")


@base.PlacementObjectRegistry.register
class ProviderAggregatesPayload(EventPayload):
    """``resource_provider.aggregate.associate`` and ``.disassociate``.

    ``aggregates`` are those that the provider was added to or removed from.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added epoch, initiator and reason
    VERSION = "1.1"

    fields = {
        **_STEP,
        "aggregates": fields.field(fields.Several(fields.Uuid())),
    }

    added = _since_1_3("1.1")


@base.PlacementObjectRegistry.register
class ProviderTraitsPayload(EventPayload):
    """``resource_provider.traits.update``: the names of its traits before and after."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        **_STEP,
        "before": fields.field(fields.Several(fields.TraitName(), maximum=2000)),
        "after": fields.field(fields.Several(fields.TraitName(), maximum=2000)),
    }


@base.PlacementObjectRegistry.register
class TraitPayload(EventPayload):
    """``trait.create`` and ``.delete``."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"name": fields.field(fields.TraitName())}


@base.PlacementObjectRegistry.register
class InventoryChange(base.PlacementObject):
    """The inventory of one class before and after the change; None where it does not exist."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "resource_class": fields.field(fields.ClassName()),
        "before": fields.ObjectField(_INVENTORY, nullable=True),
        "after": fields.ObjectField(_INVENTORY, nullable=True),
    }


@base.PlacementObjectRegistry.register
class InventoryPayload(EventPayload):
    """``inventory.create``, ``.update`` and ``.delete``.

    A call that makes changes of several kinds publishes one event of each kind.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added epoch, initiator and reason
    VERSION = "1.1"

    fields = {
        **_STEP,
        "inventories": fields.ListOfObjectsField("InventoryChange"),
    }

    added = _since_1_3("1.1")


@base.PlacementObjectRegistry.register
class ComputeNodePayload(EventPayload):
    """``compute_node.inventory_migrated``: a node's capacity is stored in inventories from now on.

    ``compute_node_id`` is the id of its row in ``compute_nodes``.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added epoch, initiator and reason
    VERSION = "1.1"

    fields = {
        "provider_uuid": fields.field(fields.Uuid()),
        "generation": fields.field(_GENERATION),
        "compute_node_id": fields.field(_GENERATION),
        "host": fields.field(fields.Text(255), nullable=True),
        "hypervisor_hostname": fields.field(fields.Text(200)),
    }

    added = _since_1_3("1.1")


@base.PlacementObjectRegistry.register
class CapacityExceededPayload(EventPayload):
    """``inventory.capacity_exceeded``: more is allocated than the inventory's new capacity."""

    # Version 1.0: Initial version
    # Version 1.1: Added epoch, initiator and reason
    VERSION = "1.1"

    fields = {
        "provider_uuid": fields.field(fields.Uuid()),
        "generation": fields.field(_GENERATION),
        "resource_class": fields.field(fields.ClassName()),
        "capacity": fields.field(_GENERATION),
        "used": fields.field(_GENERATION),
    }

    added = _since_1_3("1.1")


@base.PlacementObjectRegistry.register
class ProviderAllocation(base.PlacementObject):
    """The allocations of a consumer from one provider, by class, before and after the change.

    If they are equal, the provider's generation has not changed.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        **_STEP,
        "before": fields.field(fields.Json(_BY_CLASS)),
        "after": fields.field(fields.Json(_BY_CLASS)),
    }


@base.PlacementObjectRegistry.register
class AllocationPayload(EventPayload):
    """``allocation.create``, ``.update``, ``.delete`` and, in snapshots, ``allocation.exists``.

    The generation of a consumer without allocations is 0. In a snapshot, the values before and
    after are equal. ``mappings`` are those of the claim: each group of the request for which the
    providers were chosen, and the uuids of its providers.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added consumer_generation and previous_consumer_generation
    # Version 1.2: Added consumer_type, previous_consumer_type, mappings, epoch, initiator, reason
    VERSION = "1.2"

    fields = {
        "consumer_uuid": fields.field(fields.Uuid()),
        "consumer_generation": fields.field(_GENERATION),
        "previous_consumer_generation": fields.field(_GENERATION),
        "project_id": fields.field(fields.Text(255)),
        "user_id": fields.field(fields.Text(255)),
        "previous_project_id": fields.field(fields.Text(255), nullable=True),
        "previous_user_id": fields.field(fields.Text(255), nullable=True),
        "providers": fields.ListOfObjectsField("ProviderAllocation"),
        "consumer_type": fields.field(fields.Text(255), nullable=True),
        "previous_consumer_type": fields.field(fields.Text(255), nullable=True),
        "mappings": fields.field(fields.Json(_MAPPINGS), nullable=True),
    }

    added = {"consumer_generation": "1.1", "previous_consumer_generation": "1.1",
             "consumer_type": "1.2", "previous_consumer_type": "1.2", "mappings": "1.2",
             **_since_1_3("1.2")}


@base.PlacementObjectRegistry.register
class ConsumerPayload(EventPayload):
    """``consumer.update``: a consumer that has allocations has another project, user or type.

    The ``allocation.update`` before it has the allocations.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "consumer_uuid": fields.field(fields.Uuid()),
        "consumer_generation": fields.field(_GENERATION),
        "previous_consumer_generation": fields.field(_GENERATION),
        "project_id": fields.field(fields.Text(255)),
        "user_id": fields.field(fields.Text(255)),
        "consumer_type": fields.field(fields.Text(255), nullable=True),
        "previous_project_id": fields.field(fields.Text(255)),
        "previous_user_id": fields.field(fields.Text(255)),
        "previous_consumer_type": fields.field(fields.Text(255), nullable=True),
    }


@base.PlacementObjectRegistry.register
class SnapshotPayload(EventPayload):
    """``allocation.snapshot.begin`` and ``.end``, around the ``allocation.exists`` of a snapshot.

    ``consumers`` is their number, so a listener can tell whether it has the whole snapshot.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added epoch, initiator and reason
    VERSION = "1.1"

    fields = {
        "snapshot_id": fields.field(fields.Uuid()),
        "consumers": fields.field(_GENERATION),
    }

    added = _since_1_3("1.1")


@base.PlacementObjectRegistry.register
class ClaimRefusedPayload(EventPayload):
    """``allocation.claim.refused``: the requested allocations and the reason of the refusal.

    ``error`` has ``code``, ``message`` and ``kwargs``.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added epoch, initiator and reason
    VERSION = "1.1"

    fields = {
        "consumer_uuid": fields.field(fields.Uuid()),
        "project_id": fields.field(fields.Text(255)),
        "user_id": fields.field(fields.Text(255)),
        "allocations": fields.field(fields.Json(_BY_PROVIDER)),
        "error": fields.field(fields.Json(_ERROR)),
    }

    added = _since_1_3("1.1")


@base.PlacementObjectRegistry.register
class ResourceClassPayload(EventPayload):
    """``resource_class.create``, ``.update`` and ``.delete``."""

    # Version 1.0: Initial version
    # Version 1.1: Added epoch, initiator and reason
    VERSION = "1.1"

    fields = {
        "name": fields.field(fields.ClassName()),
        "previous_name": fields.field(fields.ClassName(), nullable=True),
    }

    added = _since_1_3("1.1")


@base.PlacementObjectRegistry.register
class StoreImportPayload(EventPayload):
    """``store.import``: rows of another store were brought over, without events of their own.

    What a listener knows of the store is void: it reads everything again. ``passes`` is the number
    of complete passes of the import. With ``finished`` the import is over: a snapshot of all
    allocations follows, and what they use counts from then on.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "passes": fields.field(fields.WholeNumber(maximum=2 ** 31 - 1)),
        "finished": fields.BooleanField(),
    }


@base.PlacementObjectRegistry.register
class LostEvent(base.PlacementObject):
    """An event that was published, and that the store does not have."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "event_id": fields.field(fields.Uuid()),
        "event_type": fields.field(fields.Text(64)),
        "position": fields.field(_GENERATION),
        "epoch": fields.field(fields.Uuid(), nullable=True),
    }


@base.PlacementObjectRegistry.register
class ReconciledProvider(base.PlacementObject):
    """A provider that a lost event, or one that is published again, names, as it is now.

    ``generation``, ``name`` and ``root_provider_uuid`` are None if the store does not have it.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "provider_uuid": fields.field(fields.Uuid()),
        "generation": fields.field(_GENERATION, nullable=True),
        "name": fields.field(fields.Text(200), nullable=True),
        "parent_provider_uuid": fields.field(fields.Uuid(), nullable=True),
        "root_provider_uuid": fields.field(fields.Uuid(), nullable=True),
        "inventories": fields.ListOfObjectsField("Inventory"),
        "aggregates": fields.field(fields.Several(fields.Uuid())),
        "traits": fields.field(fields.Several(fields.TraitName(), maximum=2000)),
    }


@base.PlacementObjectRegistry.register
class ReconciledConsumer(base.PlacementObject):
    """A consumer that a lost event, or one that is published again, names, as it is now.

    ``allocations`` is a dict of provider uuid to dict of class name to amount. A consumer without
    any has the generation 0, and neither a project nor a user.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "consumer_uuid": fields.field(fields.Uuid()),
        "consumer_generation": fields.field(_GENERATION),
        "project_id": fields.field(fields.Text(255), nullable=True),
        "user_id": fields.field(fields.Text(255), nullable=True),
        "consumer_type": fields.field(fields.Text(255), nullable=True),
        "allocations": fields.field(fields.Json(_BY_PROVIDER)),
    }


@base.PlacementObjectRegistry.register
class OutboxReconciledPayload(EventPayload):
    """``outbox.reconciled``: events that were published are not in the store any more.

    The store was restored from a backup, or a standby without its last changes took the place of
    its server. What ``lost_events`` did has to be taken back: ``providers`` and ``consumers`` are
    all that they name, with everything that the store has of them now, and ``resource_classes``
    and ``traits`` say of each name in them whether the store has it. Positions continue after the
    last one that was published, in a new epoch. Events that the store still has, but not their
    positions, are published again with their ids. There are ``parts`` of these events if they name
    much; each can be applied for itself. ``agreed_position`` is the last position at which the
    stream and the store agree.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "previous_epoch": fields.field(fields.Uuid(), nullable=True),
        "agreed_position": fields.field(_GENERATION),
        "part": fields.field(fields.WholeNumber(minimum=1)),
        "parts": fields.field(fields.WholeNumber(minimum=1)),
        "lost_events": fields.ListOfObjectsField("LostEvent"),
        "providers": fields.ListOfObjectsField("ReconciledProvider"),
        "consumers": fields.ListOfObjectsField("ReconciledConsumer"),
        "resource_classes": fields.field(fields.Json(_WHETHER_STORED)),
        "traits": fields.field(fields.Json(_WHETHER_STORED)),
    }
