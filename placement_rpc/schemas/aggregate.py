# SPDX-License-Identifier: Apache-2.0
"""Aggregates of a provider (generic-resource-pools)."""

from placement_rpc.schemas import common

REPLACE = {"type": "array", "items": common.UUID, "maxItems": 500, "uniqueItems": True}
REPLACE_1_19 = common.exactly(
    aggregates=REPLACE, resource_provider_generation=common.ANY_GENERATION)

_AGGREGATES = {"type": "array", "items": common.UUID}
AGGREGATES = common.exactly(aggregates=_AGGREGATES)
AGGREGATES_1_19 = common.exactly(
    aggregates=_AGGREGATES, resource_provider_generation=common.GENERATION)
