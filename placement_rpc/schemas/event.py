# SPDX-License-Identifier: Apache-2.0
"""Events."""

from placement_rpc.schemas import common

LIST = {
    "type": "object",
    "properties": {
        "after": {"type": "string", "pattern": r"^([0-9]{1,18}|now)$"},
        "limit": {"type": "string", "pattern": r"^[1-9][0-9]{0,8}$"},
        "wait": {"type": "string", "pattern": r"^([0-9]|[1-5][0-9]|60)$"}},
    "additionalProperties": False,
}

EVENT = common.exactly(
    position={"type": "integer", "minimum": 1}, event_type={"type": "string"},
    event_id={"type": "string"}, occurred_at={"type": "string"}, payload={"type": "object"})
VERSIONS = common.exactly(versions={"type": "array", "items": common.exactly(
    id={"type": "string"}, status={"type": "string"}, min_version={"type": "string"},
    max_version={"type": "string"}, links=common.LINKS)})
