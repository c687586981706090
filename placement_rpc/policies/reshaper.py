# SPDX-License-Identifier: Apache-2.0
"""Rule about changes of inventories and allocations in one step."""

from placement_rpc.policies.base import SERVICE, rule

RESHAPE = "placement:reshaper:reshape"

RULES = [rule(RESHAPE, "Change inventories and the allocations of them in one step.",
              "POST /reshaper", check=SERVICE)]
