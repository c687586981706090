# SPDX-License-Identifier: Apache-2.0
"""Allocations (generic-resource-pools), and their shapes at later microversions."""

from placement_rpc.schemas import common

_RESOURCES = {
    "type": "object",
    "minProperties": 1,
    # An amount above all that an inventory can give is refused as any other that it cannot give.
    "patternProperties": {r"^[A-Z0-9_]+$": {"type": "integer", "minimum": 1}},
    "additionalProperties": False,
}
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
                    "resources": _RESOURCES},
                "required": ["resource_provider", "resources"],
                "additionalProperties": False}}},
    "required": ["allocations"],
    "additionalProperties": False,
}


def _with(schema, **properties):
    """Return the schema of an object that has more properties."""
    return {**common.with_optional(schema, **properties),
            "required": [*schema["required"], *properties]}


CLAIM_1_8 = _with(CLAIM_1_0, project_id=common.NAME, user_id=common.NAME)

# The key of a uuid: it is read as one, in any spelling of this length.
UUID_KEY = r"^[0-9a-fA-F-]{36}$"
_BY_PROVIDER = {
    "type": "object",
    "patternProperties": {UUID_KEY: {
        "type": "object",
        "properties": {"generation": {"type": "integer"}, "resources": _RESOURCES},
        "required": ["resources"],
        "additionalProperties": False}},
    "additionalProperties": False,
}
_CLAIM_1_13 = common.with_optional(CLAIM_1_8, allocations=_BY_PROVIDER)
CLAIM_1_12 = common.with_optional(CLAIM_1_8, allocations={**_BY_PROVIDER, "minProperties": 1})
CLAIM_1_28 = _with(_CLAIM_1_13, consumer_generation={"type": ["integer", "null"]})
CLAIM_1_34 = common.with_optional(CLAIM_1_28, mappings={
    "type": "object",
    "minProperties": 1,
    # Not anchored, as in OpenStack Placement: a key with one such character has to have uuids.
    "patternProperties": {common.GROUP_SUFFIX: {
        "type": "array", "minItems": 1, "items": common.UUID}}})
CLAIM_1_38 = _with(CLAIM_1_34, consumer_type={
    "type": "string", "pattern": r"^[A-Z0-9_]+$", "minLength": 1, "maxLength": 255})


def of_consumers(claim, minimum=1):
    """Return the schema of an object with claims by the uuids of their consumers."""
    return {"type": "object", "minProperties": minimum, "patternProperties": {UUID_KEY: claim},
            "additionalProperties": False}


CLAIMS_1_13, CLAIMS_1_28, CLAIMS_1_34, CLAIMS_1_38 = map(
    of_consumers, (_CLAIM_1_13, CLAIM_1_28, CLAIM_1_34, CLAIM_1_38))

_HELD = {"type": "object", "additionalProperties": common.AMOUNT}
OF_CONSUMER = common.exactly(allocations={
    "type": "object", "additionalProperties": common.exactly(
        generation=common.GENERATION, resources=_HELD)})
# A consumer without allocations has no owner.
OF_CONSUMER_1_12 = common.with_optional(
    OF_CONSUMER, project_id={"type": "string"}, user_id={"type": "string"})
OF_CONSUMER_1_28 = common.with_optional(OF_CONSUMER_1_12, consumer_generation=common.GENERATION)
OF_CONSUMER_1_38 = common.with_optional(OF_CONSUMER_1_28, consumer_type={"type": "string"})


def _of_provider(**properties):
    return common.exactly(
        resource_provider_generation=common.GENERATION,
        allocations={"type": "object", "additionalProperties": common.exactly(
            resources=_HELD, **properties)})


OF_PROVIDER = _of_provider()
OF_PROVIDER_1_28 = _of_provider(consumer_generation=common.GENERATION)
