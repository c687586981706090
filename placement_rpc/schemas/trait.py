# SPDX-License-Identifier: Apache-2.0
"""Traits (microversion 1.6)."""

from placement_rpc.schemas import common

_NAMES = {"type": "array", "items": {"type": "string"}}

LIST = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 100_000},
        "associated": {"type": "string"}},
    "additionalProperties": False,
}
TRAITS = common.exactly(traits=_NAMES)

SET = common.exactly(resource_provider_generation=common.ANY_GENERATION, traits={
    "type": "array", "maxItems": 2000, "items": {
        "type": "string", "minLength": 1, "maxLength": 255}})
OF_PROVIDER = common.exactly(resource_provider_generation=common.GENERATION, traits=_NAMES)
