# SPDX-License-Identifier: Apache-2.0
"""Rules about usages."""

from placement_rpc.policies.base import ADMIN_SERVICE_OR_READER, rule

SHOW = "placement:resource_providers:usages"
OF_PROJECT = "placement:usages"

RULES = [
    rule(SHOW, "Show how much of a resource provider is used.",
         "GET /resource_providers/{uuid}/usages", "GET /resource_pools/{uuid}/usages"),
    rule(OF_PROJECT, "Show how much a project uses.", "GET /usages",
         check=ADMIN_SERVICE_OR_READER),
]
