# SPDX-License-Identifier: Apache-2.0
"""Rules about resource providers and pools."""

from placement_rpc.policies.base import rule

_PREFIX = "placement:resource_providers:"
LIST, CREATE, SHOW = f"{_PREFIX}list", f"{_PREFIX}create", f"{_PREFIX}show"
UPDATE, DELETE, EXPLAIN = f"{_PREFIX}update", f"{_PREFIX}delete", f"{_PREFIX}explain"
HEADROOM = f"{_PREFIX}headroom"

RULES = [
    rule(LIST, "List resource providers, and find those with room for a request.",
         "GET /resource_providers", "POST /resource_providers?request", "GET /resource_pools"),
    rule(CREATE, "Create a resource provider.",
         "POST /resource_providers", "POST /resource_pools"),
    rule(SHOW, "Show a resource provider.",
         "GET /resource_providers/{uuid}", "GET /resource_pools/{uuid}"),
    rule(UPDATE, "Rename a resource provider.",
         "PUT /resource_providers/{uuid}", "PUT /resource_pools/{uuid}"),
    rule(DELETE, "Delete a resource provider.",
         "DELETE /resource_providers/{uuid}", "DELETE /resource_pools/{uuid}"),
    rule(EXPLAIN, "Explain why resource providers have no room for a request.",
         "POST /resource_providers?explain"),
    rule(HEADROOM, "Show how many more requests of a kind have room.",
         "POST /resource_providers?headroom"),
]
