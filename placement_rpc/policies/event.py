# SPDX-License-Identifier: Apache-2.0
"""Rules about events."""

from placement_rpc.policies.base import rule

LIST = "placement:events:list"

RULES = [rule(LIST, "Read events, and wait for new ones.", "GET /events")]
