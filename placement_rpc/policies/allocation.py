# SPDX-License-Identifier: Apache-2.0
"""Rules about allocations."""

from placement_rpc.policies.base import rule

OF_PROVIDER = "placement:resource_providers:allocations:list"
_PREFIX = "placement:allocations:"
LIST, UPDATE, DELETE = f"{_PREFIX}list", f"{_PREFIX}update", f"{_PREFIX}delete"
MANAGE = f"{_PREFIX}manage"

RULES = [
    rule(OF_PROVIDER, "List the allocations of a resource provider.",
         "GET /resource_providers/{uuid}/allocations"),
    rule(MANAGE, "Replace the allocations of several consumers.", "POST /allocations"),
    rule(LIST, "List the allocations of a consumer.", "GET /allocations/{consumer_uuid}"),
    rule(UPDATE, "Replace the allocations of a consumer.", "PUT /allocations/{consumer_uuid}"),
    rule(DELETE, "Delete the allocations of a consumer.", "DELETE /allocations/{consumer_uuid}"),
]
