# SPDX-License-Identifier: Apache-2.0
"""Aggregates of a provider (generic-resource-pools)."""

from placement_rpc.schemas import common

REPLACE = {"type": "array", "items": common.UUID, "maxItems": 500, "uniqueItems": True}

AGGREGATES = common.exactly(aggregates={"type": "array", "items": common.UUID})
