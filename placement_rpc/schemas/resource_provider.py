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

UPDATE = {
    "type": "object",
    "properties": {"name": _NAME},
    "required": ["name"],
    "additionalProperties": False,
}

_PARENT = {"anyOf": [common.UUID, {"type": "null"}]}
CREATE_1_14 = common.with_optional(CREATE, parent_provider_uuid=_PARENT)
UPDATE_1_14 = common.with_optional(UPDATE, parent_provider_uuid=_PARENT)

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

LIST_1_0 = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "uuid": common.UUID},
    "additionalProperties": False,
}
# The values are parsed by placement_rpc.http.request_groups.
_TEXT = {"type": "string"}
LIST_1_3 = common.with_optional(LIST_1_0, member_of=_TEXT)
LIST_1_4 = common.with_optional(LIST_1_3, resources=_TEXT)
LIST_1_14 = common.with_optional(LIST_1_4, in_tree=common.UUID)
LIST_1_18 = common.with_optional(LIST_1_14, required=_TEXT)

_FIELDS = {"uuid": common.UUID, "name": {"type": "string"}, "generation": common.GENERATION,
           "links": common.LINKS}
PROVIDER = common.exactly(**_FIELDS)
PROVIDER_1_14 = common.exactly(
    **_FIELDS, parent_provider_uuid=_PARENT, root_provider_uuid=common.UUID)
POOL = common.exactly(uuid=common.UUID, name={"type": "string"}, links=common.LINKS)
PROVIDERS = common.exactly(resource_providers={"type": "array", "items": PROVIDER})
PROVIDERS_1_14 = common.exactly(resource_providers={"type": "array", "items": PROVIDER_1_14})
POOLS = common.exactly(resource_pools={"type": "array", "items": POOL})

_REASON = common.exactly(
    rule={"enum": ["member_of", "inventory", "capacity", "min_unit", "max_unit", "step_size"]},
    resource_class={"type": ["string", "null"]}, requested={"type": ["integer", "null"]},
    allowed={"type": ["integer", "null"]}, by={"type": ["integer", "null"]},
    detail={"type": "string"})
EXPLAINED = common.exactly(resource_providers={"type": "array", "items": common.exactly(
    uuid=common.UUID, name={"type": "string"}, generation=common.GENERATION,
    fits={"type": "boolean"}, reasons={"type": "array", "items": _REASON})})
