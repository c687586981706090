# SPDX-License-Identifier: Apache-2.0
"""All events that the service publishes, and their payloads (DESIGN section 5)."""

from placement_rpc.objects import payloads

EVENTS = {
    "resource_provider.create": payloads.ResourceProviderPayload,
    "resource_provider.update": payloads.ResourceProviderPayload,
    "resource_provider.delete": payloads.ResourceProviderPayload,
    "resource_provider.aggregate.associate": payloads.ProviderAggregatesPayload,
    "resource_provider.aggregate.disassociate": payloads.ProviderAggregatesPayload,
    "inventory.create": payloads.InventoryPayload,
    "inventory.update": payloads.InventoryPayload,
    "inventory.delete": payloads.InventoryPayload,
    "inventory.capacity_exceeded": payloads.CapacityExceededPayload,
    "allocation.create": payloads.AllocationPayload,
    "allocation.update": payloads.AllocationPayload,
    "allocation.delete": payloads.AllocationPayload,
    "allocation.exists": payloads.AllocationPayload,
    "allocation.snapshot.begin": payloads.SnapshotPayload,
    "allocation.snapshot.end": payloads.SnapshotPayload,
    "allocation.claim.refused": payloads.ClaimRefusedPayload,
    "compute_node.inventory_migrated": payloads.ComputeNodePayload,
    "resource_class.create": payloads.ResourceClassPayload,
    "resource_class.update": payloads.ResourceClassPayload,
    "resource_class.delete": payloads.ResourceClassPayload,
}
