# SPDX-License-Identifier: Apache-2.0
"""Rules about usages."""

from placement_rpc.policies.base import rule

SHOW = "placement:resource_providers:usages"

RULES = [
    rule(SHOW, "Show how much of a resource provider is used.",
         "GET /resource_providers/{uuid}/usages", "GET /resource_pools/{uuid}/usages"),
]
