# SPDX-License-Identifier: Apache-2.0
"""Parts that several schemas share."""

#: The largest amount
MAX_INT = 2 ** 31 - 1
MAX_GENERATION = 2 ** 63 - 1

UUID = {"type": "string", "format": "uuid"}
GENERATION = {"type": "integer", "minimum": 0, "maximum": MAX_GENERATION}
#: The generation that a request names: one that no provider can have is not the current one.
ANY_GENERATION = {"type": "integer"}
AMOUNT = {"type": "integer", "minimum": 1, "maximum": MAX_INT}
CLASS_NAME = {"type": "string", "pattern": r"^[A-Z0-9_]+$", "maxLength": 255}
CUSTOM_CLASS_NAME = {"type": "string", "pattern": r"^CUSTOM_[A-Z0-9_]+$", "maxLength": 255}
#: Patterns of the suffix of a group of a request: from microversion 1.33 on, and before.
GROUP_SUFFIX, GROUP_NUMBER = "[a-zA-Z0-9_-]{1,64}", "[1-9][0-9]{0,63}"
#: The suffix of any group; that of the group without one is empty.
SUFFIX = f"^({GROUP_SUFFIX})?$"
#: A project, a user, or the type of a consumer
NAME = {"type": "string", "minLength": 1, "maxLength": 255}
LIMIT = {"type": "integer", "minimum": 1, "maximum": MAX_INT}

RESOURCES = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {r"^[A-Z0-9_]{1,255}$": AMOUNT},
    "additionalProperties": False,
}

LINKS = {"type": "array", "items": {
    "type": "object",
    "properties": {"rel": {"type": "string"}, "href": {"type": "string"}},
    "required": ["rel", "href"], "additionalProperties": False}}


def exactly(**properties):
    """Return the schema of an object that has all of these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(properties),
            "additionalProperties": False}


def with_optional(schema, **properties):
    """Return a schema with more properties, or others in their place, and no more required."""
    return {**schema, "properties": {**schema["properties"], **properties}}


ERRORS = exactly(errors={"type": "array", "minItems": 1, "items": {
    "type": "object",
    "properties": {
        "status": {"type": "integer"}, "title": {"type": "string"},
        "detail": {"type": "string"}, "code": {"type": "string"},
        "exact_code": {"type": "string"},
        "request_id": {"type": "string"}, "min_version": {"type": "string"},
        "max_version": {"type": "string"}, "oldest_position": {"type": "integer"}},
    "required": ["status", "title", "detail", "code", "request_id"],
    "additionalProperties": False}})
