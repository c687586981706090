# SPDX-License-Identifier: Apache-2.0
"""Rules about the aggregates of resource providers."""

from placement_rpc.policies.base import rule

LIST = "placement:resource_providers:aggregates:list"
UPDATE = "placement:resource_providers:aggregates:update"

RULES = [
    rule(LIST, "List the aggregates of a resource provider.",
         "GET /resource_providers/{uuid}/aggregates", "GET /resource_pools/{uuid}/aggregates"),
    rule(UPDATE, "Put a resource provider into aggregates.",
         "PUT /resource_providers/{uuid}/aggregates", "PUT /resource_pools/{uuid}/aggregates"),
]
