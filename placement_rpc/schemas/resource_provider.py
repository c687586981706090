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

_TRAITS = {"type": "array", "maxItems": 500, "items": {"type": "string", "maxLength": 255}}
_SUFFIX = {"type": "string", "pattern": common.SUFFIX}
_GROUP = {
    "type": "object",
    "properties": {
        "suffix": _SUFFIX, "resources": common.RESOURCES,
        "required": {"type": "array", "maxItems": 100, "items": {**_TRAITS, "minItems": 1}},
        "forbidden": _TRAITS,
        "member_of": _MEMBER_OF, "not_member_of": {
            "type": "array", "maxItems": 500, "items": common.UUID},
        "in_tree": common.UUID},
    "additionalProperties": False,
}
# Either resources and member_of, or groups and what follows, see http/resources/explanations.py.
_GROUPED = {
    "type": "object",
    "properties": {
        "resources": common.RESOURCES, "member_of": _MEMBER_OF,
        "groups": {"type": "array", "minItems": 1, "maxItems": 100, "items": _GROUP},
        "group_policy": {"enum": ["none", "isolate"]},
        "same_subtree": {"type": "array", "maxItems": 100, "items": {
            "type": "array", "minItems": 1, "maxItems": 100, "items": _SUFFIX}},
        "root_required": _TRAITS, "root_forbidden": _TRAITS},
    "additionalProperties": False,
}
EXPLAIN = common.with_optional(
    _GROUPED, limit=common.LIMIT, marker=common.UUID, funnel={"type": "boolean"})
HEADROOM = common.with_optional(
    _GROUPED, by={"enum": ["aggregate", "trait", "class-limit"]})

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

_NAME_OR_NULL, _INTEGER_OR_NULL = {"type": ["string", "null"]}, {"type": ["integer", "null"]}
_RULES = ("member_of", "inventory", "capacity", "min_unit", "max_unit", "step_size")
_REASON = common.with_optional(common.exactly(
    rule={"enum": [*_RULES, "root_required", "root_forbidden", "in_tree", "not_member_of",
                   "required", "forbidden", "group_policy", "same_subtree"]},
    resource_class=_NAME_OR_NULL, requested=_INTEGER_OR_NULL, allowed=_INTEGER_OR_NULL,
    by=_INTEGER_OR_NULL, detail={"type": "string"}), group=_NAME_OR_NULL, provider_uuid=_PARENT)
_COUNT = {"type": "integer", "minimum": 0}
_STEP = common.exactly(
    rule={"type": "string"}, group=_NAME_OR_NULL, resource_class=_NAME_OR_NULL,
    detail={"type": "string"}, providers=_COUNT, trees=_COUNT)
EXPLAINED = common.exactly(
    resource_providers={"type": "array", "items": common.exactly(
        uuid=common.UUID, name={"type": "string"}, generation=common.GENERATION,
        fits={"type": "boolean"}, reasons={"type": "array", "items": _REASON})},
    funnel={"type": ["array", "null"], "items": _STEP})

_GROUPS = {"type": "array", "items": _SUFFIX}
_PART = common.with_optional(
    common.exactly(name={"type": "string"}, count=_COUNT, at_most=_COUNT),
    limits={"type": "object", "additionalProperties": _COUNT}, groups=_GROUPS, trees=_COUNT,
    left=_COUNT)
HEADROOM_FOUND = common.exactly(
    count=_COUNT, at_most=_COUNT, exact={"type": "boolean"}, by=_NAME_OR_NULL,
    limits={"type": "array", "items": common.exactly(
        resource_class={"type": "string"}, groups=_GROUPS, trees=_COUNT)},
    parts={"type": "array", "items": _PART})
