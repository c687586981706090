# SPDX-License-Identifier: Apache-2.0
"""Allocations (generic-resource-pools)."""

from placement_rpc.schemas import common

CLAIM_1_0 = {
    "type": "object",
    "properties": {
        "allocations": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "resource_provider": {
                        "type": "object",
                        "properties": {"uuid": common.UUID},
                        "required": ["uuid"],
                        "additionalProperties": False},
                    "resources": common.RESOURCES},
                "required": ["resource_provider", "resources"],
                "additionalProperties": False}}},
    "required": ["allocations"],
    "additionalProperties": False,
}
_OWNER = {"type": "string", "minLength": 1, "maxLength": 255}
CLAIM_1_8 = {
    **CLAIM_1_0,
    "properties": {**CLAIM_1_0["properties"], "project_id": _OWNER, "user_id": _OWNER},
    "required": ["allocations", "project_id", "user_id"],
}

_HELD = {"type": "object", "additionalProperties": common.AMOUNT}
OF_CONSUMER = common.exactly(allocations={
    "type": "object", "additionalProperties": common.exactly(
        generation=common.GENERATION, resources=_HELD)})
OF_PROVIDER = common.exactly(
    resource_provider_generation=common.GENERATION,
    allocations={"type": "object", "additionalProperties": common.exactly(resources=_HELD)})
