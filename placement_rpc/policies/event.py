# SPDX-License-Identifier: Apache-2.0
"""Rules about events."""

from placement_rpc.policies import allocation, resource_provider
from placement_rpc.policies.base import rule

LIST = "placement:events:list"

RULES = [rule(LIST, "Read events, and wait for new ones.", "GET /events")]

METHODS = {
    "list_events": [LIST],
    # Lists say at which position they are true.
    "get_event_positions": [LIST, resource_provider.LIST, resource_provider.EXPLAIN,
                            allocation.LIST, allocation.OF_PROVIDER],
}
