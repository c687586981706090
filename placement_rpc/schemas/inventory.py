# SPDX-License-Identifier: Apache-2.0
"""Inventories (generic-resource-pools)."""

from placement_rpc.schemas import common

_VALUES = {
    "total": common.AMOUNT,
    "reserved": {"type": "integer", "minimum": 0, "maximum": common.MAX_INT},
    "min_unit": common.AMOUNT,
    "max_unit": common.AMOUNT,
    "step_size": common.AMOUNT,
    "allocation_ratio": {"type": "number", "maximum": 3.40282e+38},
}
_GENERATION = {"resource_provider_generation": common.GENERATION}
_GIVEN_GENERATION = {"resource_provider_generation": common.ANY_GENERATION}


def _inventory(required, **more):
    return {"type": "object", "properties": {**_VALUES, **more},
            "required": ["total", *required], "additionalProperties": False}


ADD = _inventory(["resource_class"], resource_class=common.CLASS_NAME, **_GIVEN_GENERATION)
UPDATE = _inventory(["resource_provider_generation"], resource_class={"type": "string"},
                    **_GIVEN_GENERATION)
REPLACE = {
    "type": "object",
    "properties": {
        **_GIVEN_GENERATION,
        "inventories": {
            # A name that no class can have is that of no class.
            "type": "object", "additionalProperties": _inventory([], **_GIVEN_GENERATION)}},
    "required": ["resource_provider_generation", "inventories"],
    "additionalProperties": False,
}

# Bodies of the draft have no generation; the ETag has it.
ADD_TO_POOL = _inventory(["resource_class"], resource_class=common.CLASS_NAME)
UPDATE_OF_POOL = _inventory([], resource_class={"type": "string"})

_ANSWERED = common.exactly(**_VALUES)
INVENTORY = common.exactly(**_VALUES, **_GENERATION)
INVENTORIES = common.exactly(**_GENERATION, inventories={
    "type": "object", "additionalProperties": _ANSWERED})
INVENTORY_OF_POOL = common.exactly(**_VALUES, resource_class={"type": "string"})
INVENTORIES_OF_POOL = common.exactly(inventories={
    "type": "object", "additionalProperties": _ANSWERED})

_USED = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}
USAGES = common.exactly(**_GENERATION, usages=_USED)
USAGES_OF_POOL = common.exactly(usages=_USED)
USAGES_OF_PROJECT = USAGES_OF_POOL
USAGES_QUERY = {
    "type": "object",
    "properties": {"project_id": common.NAME, "user_id": common.NAME},
    "required": ["project_id"],
    "additionalProperties": False,
}
# As OpenStack Placement's: what only begins with "all" is a type that nothing has.
USAGES_QUERY_1_38 = common.with_optional(USAGES_QUERY, consumer_type={
    **common.NAME, "pattern": r"^[A-Z0-9_]+$|^all|^unknown$"})
USAGES_OF_TYPES = common.exactly(usages={"type": "object", "additionalProperties": _USED})
