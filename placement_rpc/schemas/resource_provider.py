# SPDX-License-Identifier: Apache-2.0
"""Resource providers (generic-resource-pools; resource-providers-get-by-request)."""

from placement_rpc.schemas import common

_NAME = {"type": "string", "minLength": 1, "maxLength": 200}
_MEMBER_OF = {"type": "array", "maxItems": 16, "items": {
    "type": "array", "minItems": 1, "maxItems": 500, "items": common.UUID}}

CREATE = {
    "type": "object",
    "properties": {"name": _NAME, "uuid": common.UUID},
    "required": ["name"],
    "additionalProperties": False,
}

RENAME = {
    "type": "object",
    "properties": {"name": _NAME},
    "required": ["name"],
    "additionalProperties": False,
}

REQUEST = {
    "type": "object",
    "properties": {
        "resources": common.RESOURCES, "member_of": _MEMBER_OF, "limit": common.LIMIT},
    "required": ["resources"],
    "additionalProperties": False,
}

EXPLAIN = {
    "type": "object",
    "properties": {**REQUEST["properties"], "marker": common.UUID},
    "required": ["resources"],
    "additionalProperties": False,
}

_MEMBER_OF_TEXT = {
    "type": "string", "maxLength": 20000,
    "pattern": r"^(in:)?[0-9a-fA-F-]{32,36}(,[0-9a-fA-F-]{32,36})*$"}

LIST_1_0 = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "uuid": common.UUID},
    "additionalProperties": False,
}
LIST_1_3 = {**LIST_1_0, "properties": {**LIST_1_0["properties"], "member_of": _MEMBER_OF_TEXT}}
LIST_1_4 = {**LIST_1_3, "properties": {
    **LIST_1_3["properties"], "resources": {"type": "string"}}}

PROVIDER = common.exactly(
    uuid=common.UUID, name={"type": "string"}, generation=common.GENERATION,
    links=common.LINKS)
POOL = common.exactly(uuid=common.UUID, name={"type": "string"}, links=common.LINKS)
PROVIDERS = common.exactly(resource_providers={"type": "array", "items": PROVIDER})
POOLS = common.exactly(resource_pools={"type": "array", "items": POOL})

_REASON = common.exactly(
    rule={"enum": ["member_of", "inventory", "capacity", "min_unit", "max_unit", "step_size"]},
    resource_class={"type": ["string", "null"]}, requested={"type": ["integer", "null"]},
    allowed={"type": ["integer", "null"]}, by={"type": ["integer", "null"]},
    detail={"type": "string"})
EXPLAINED = common.exactly(resource_providers={"type": "array", "items": common.exactly(
    uuid=common.UUID, name={"type": "string"}, generation=common.GENERATION,
    fits={"type": "boolean"}, reasons={"type": "array", "items": _REASON})})
