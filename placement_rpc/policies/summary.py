# SPDX-License-Identifier: Apache-2.0
"""Rules about pages of all providers, and of consumers."""

from placement_rpc.policies.base import rule

PROVIDERS = "placement:provider_summaries:list"
CONSUMERS = "placement:consumers:list"

RULES = [
    rule(PROVIDERS, "List all resource providers with their inventories, usages, traits and "
                    "aggregates.", "GET /provider_summaries"),
    rule(CONSUMERS, "List consumers with their allocations: all of them, or those of a project "
                    "or of a resource provider. The project that is asked for is project_id.",
         "GET /consumers"),
]
