# SPDX-License-Identifier: Apache-2.0
"""Resource classes (custom-resource-classes)."""

from placement_rpc.schemas import common

NAMED = {
    "type": "object",
    "properties": {"name": common.CUSTOM_CLASS_NAME},
    "required": ["name"],
    "additionalProperties": False,
}

RESOURCE_CLASS = common.exactly(name={"type": "string"}, links=common.LINKS)
RESOURCE_CLASSES = common.exactly(
    resource_classes={"type": "array", "items": RESOURCE_CLASS})
