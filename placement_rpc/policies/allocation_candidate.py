# SPDX-License-Identifier: Apache-2.0
"""Rule about allocation candidates."""

from placement_rpc.policies.base import rule

LIST = "placement:allocation_candidates:list"

RULES = [rule(LIST, "List the allocations that a request could get.",
              "GET /allocation_candidates")]
