# SPDX-License-Identifier: Apache-2.0
"""Allocation candidates, and the query parameters that ask for them."""

from placement_rpc.schemas import common

# The values of groups are parsed by placement_rpc.http.request_groups.
_TEXT = {"type": "string"}
_LIMIT = {"type": "string", "pattern": "^[1-9][0-9]*$"}
_POLICY = {"type": "string", "enum": ["none", "isolate"]}

LIST_1_10 = {
    "type": "object",
    "properties": {"resources": _TEXT},
    "required": ["resources"],
    "additionalProperties": False,
}
LIST_1_16 = common.with_optional(LIST_1_10, limit=_LIMIT)
LIST_1_17 = common.with_optional(LIST_1_16, required=_TEXT)
LIST_1_21 = common.with_optional(LIST_1_17, member_of=_TEXT)


def _with_groups(suffix, *names, **properties):
    """Return the schema of a query with groups.

    :param suffix: str, the pattern of a group's suffix
    :param names: of the parameters that each group has
    :param properties: the schemas of the other parameters
    """
    return {
        "type": "object",
        "properties": {"limit": _LIMIT, "group_policy": _POLICY, **properties},
        "patternProperties": {f"^{name}({suffix})?$": _TEXT for name in names},
        "additionalProperties": False,
    }


_OF_GROUPS = ("resources", "required", "member_of")
LIST_1_25 = _with_groups(common.GROUP_NUMBER, *_OF_GROUPS)
LIST_1_31 = _with_groups(common.GROUP_NUMBER, *_OF_GROUPS, "in_tree")
LIST_1_33 = _with_groups(common.GROUP_SUFFIX, *_OF_GROUPS, "in_tree")
LIST_1_35 = common.with_optional(LIST_1_33, root_required=_TEXT)
LIST_1_36 = common.with_optional(LIST_1_35, same_subtree=_TEXT)

#: Of these parameters the first value counts, and the schemas above see the last.
FIRST = {"type": "object", "properties": {"limit": _LIMIT, "group_policy": _POLICY}}

_AMOUNTS = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}}
_ALLOCATIONS_1_10 = {"type": "array", "items": common.exactly(
    resource_provider=common.exactly(uuid=common.UUID), resources=_AMOUNTS)}
_ALLOCATIONS_1_12 = {
    "type": "object", "additionalProperties": common.exactly(resources=_AMOUNTS)}
_REQUEST_1_10 = common.exactly(allocations=_ALLOCATIONS_1_10)
_REQUEST_1_12 = common.exactly(allocations=_ALLOCATIONS_1_12)
_REQUEST_1_34 = common.exactly(allocations=_ALLOCATIONS_1_12, mappings={
    "type": "object", "patternProperties": {common.SUFFIX: {
        "type": "array", "minItems": 1, "items": common.UUID}},
    "additionalProperties": False})

_RESOURCES = {"type": "object", "additionalProperties": common.exactly(
    capacity={"type": "integer"}, used={"type": "integer", "minimum": 0})}
_TRAITS = {"type": "array", "items": {"type": "string"}}
_SUMMARY_1_10 = common.exactly(resources=_RESOURCES)
_SUMMARY_1_17 = common.exactly(resources=_RESOURCES, traits=_TRAITS)
_SUMMARY_1_29 = common.exactly(
    resources=_RESOURCES, traits=_TRAITS, root_provider_uuid=common.UUID,
    parent_provider_uuid={"anyOf": [common.UUID, {"type": "null"}]})


def _candidates(request, summary):
    return common.exactly(
        allocation_requests={"type": "array", "items": request},
        provider_summaries={"type": "object", "additionalProperties": summary})


CANDIDATES_1_10 = _candidates(_REQUEST_1_10, _SUMMARY_1_10)
CANDIDATES_1_12 = _candidates(_REQUEST_1_12, _SUMMARY_1_10)
CANDIDATES_1_17 = _candidates(_REQUEST_1_12, _SUMMARY_1_17)
CANDIDATES_1_29 = _candidates(_REQUEST_1_12, _SUMMARY_1_29)
CANDIDATES_1_34 = _candidates(_REQUEST_1_34, _SUMMARY_1_29)
