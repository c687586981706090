# SPDX-License-Identifier: Apache-2.0
"""Fleets for the tests of the page."""

from placement_rpc.objects.claim import Claim
from tests import base

AGGREGATES = ("c9a3f7d8-3c11-4d7c-8f5e-6b7a8c9d0e01", "c9a3f7d8-3c11-4d7c-8f5e-6b7a8c9d0e02")
_HOST = {"VCPU": {"total": 32, "allocation_ratio": 4.0},
         "MEMORY_MB": {"total": 131072, "reserved": 2048}}
_CARD = {"VGPU": {"total": 8}}


def provider(api, name, parent=None, **inventories):
    """Create a provider with inventories, each a dict of values; return its uuid."""
    uuid = api.create_provider(None, name, parent_provider_uuid=parent).uuid
    api.set_inventory(None, uuid, [
        base.inventory(resource_class, values) for resource_class, values in inventories.items()])
    return uuid


def claim(api, uuid, consumer=None, project="blue", **amounts):
    """Claim amounts of a provider; return the consumer's uuid."""
    consumer = consumer or base.new_uuid()
    api.claim_allocations(None, Claim(
        consumer_uuid=consumer, project_id=project, user_id="ada", consumer_type="INSTANCE",
        allocations={uuid: amounts}))
    return consumer


def small(api, hosts=6):
    """Create some hosts, of which each second one has a graphics card; return their uuids."""
    found = []
    for number in range(hosts):
        uuid = provider(api, f"host{number}", **_HOST)
        api.set_aggregates(None, uuid, [AGGREGATES[number % 2]])
        found.append(uuid)
        if number % 2:
            card = provider(api, f"host{number}-card", uuid, **_CARD)
            api.set_provider_traits(None, card, ["HW_GPU_API_VULKAN"])
    return found
