# SPDX-License-Identifier: Apache-2.0
"""Pages of all providers, and of consumers."""

from placement_rpc.schemas import common

_LIMIT = {"type": "string", "pattern": r"^[1-9][0-9]{0,8}$"}
_UUID_OR_NULL = {"anyOf": [common.UUID, {"type": "null"}]}
_COUNT = {"type": "integer", "minimum": 0}

LIST_PROVIDERS = {
    "type": "object",
    "properties": {"marker": common.UUID, "limit": _LIMIT},
    "additionalProperties": False,
}
LIST_CONSUMERS = common.with_optional(
    LIST_PROVIDERS, project_id=common.NAME, user_id=common.NAME, resource_provider=common.UUID)

_INVENTORY = common.exactly(
    total=common.AMOUNT, reserved=_COUNT, min_unit=common.AMOUNT, max_unit=common.AMOUNT,
    step_size=common.AMOUNT, allocation_ratio={"type": "number"}, capacity=_COUNT, used=_COUNT)
PROVIDERS = common.exactly(
    provider_summaries={"type": "array", "items": common.exactly(
        uuid=common.UUID, name={"type": "string"}, generation=common.GENERATION,
        parent_provider_uuid=_UUID_OR_NULL, root_provider_uuid=common.UUID,
        updated_at={"type": "string"},
        inventories={"type": "object", "additionalProperties": _INVENTORY},
        traits={"type": "array", "items": {"type": "string"}},
        aggregates={"type": "array", "items": common.UUID})},
    next=_UUID_OR_NULL)
CONSUMERS = common.exactly(
    consumers={"type": "array", "items": common.exactly(
        uuid=common.UUID, generation=common.GENERATION, project_id={"type": "string"},
        user_id={"type": "string"}, consumer_type={"type": ["string", "null"]},
        created_at={"type": "string"}, updated_at={"type": "string"},
        allocations={"type": "object", "additionalProperties": common.RESOURCES})},
    next=_UUID_OR_NULL)
