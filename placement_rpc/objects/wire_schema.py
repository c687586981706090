# SPDX-License-Identifier: Apache-2.0
"""JSON schemas (draft 7) of objects in their wire format, for documents about messages.

:meth:`placement_rpc.objects.base.Travelling.to_json_schema` describes the data of an object. A
message has each object in an envelope with its name and version, and leaves out the fields that
the version does not have.
"""

import inspect
import re
import typing
from collections.abc import Iterable

from oslo_versionedobjects import fields

from placement_rpc.objects import base

_ROLE = re.compile(r":\w+:`\.?([^`]+)`")


def described(thing: typing.Any) -> str:
    """Return the docstring of a class or a function as Markdown."""
    text = inspect.cleandoc(thing.__doc__ or "")
    return _ROLE.sub(r"`\1`", text).replace("``", "`")


def reference(name: str) -> dict[str, str]:
    """Return the reference to the schema of an object in a document."""
    return {"$ref": f"#/components/schemas/{name}"}


def schemas(classes: Iterable[type[base.PlacementObject]]) -> dict[str, dict]:
    """Return the schemas of objects, and of all objects that they contain.

    :returns: dict of object name to schema, in the order of the names
    """
    found: dict[str, dict] = {}
    waiting = list(classes)
    while waiting:
        cls = waiting.pop()
        if cls.obj_name() not in found:
            found[cls.obj_name()] = _schema(cls)
            waiting += [each for field in cls.fields.values() if (each := _nested(cls, field))]
    return dict(sorted(found.items()))


def of_field(field: fields.Field) -> dict:
    """Return the schema of a field that contains no object."""
    return _draft_7(field.get_schema())


def _schema(cls):
    key = cls._obj_primitive_key
    major = cls.VERSION.partition(".")[0]
    return {
        "title": cls.obj_name(), "description": described(cls), "type": "object",
        "x-version": cls.VERSION,
        "required": [key("name"), key("namespace"), key("version"), key("data")],
        "properties": {
            key("name"): {"const": cls.obj_name()},
            key("namespace"): {"const": cls.OBJ_PROJECT_NAMESPACE},
            key("version"): {
                "type": "string", "pattern": rf"^{major}\.[0-9]+$",
                "description": f"{cls.VERSION} in this release. A later minor version has more "
                               "fields, and an earlier one lacks those with a later x-since."},
            key("data"): _data(cls),
            key("changes"): {
                "type": "array", "items": {"type": "string"},
                "description": "Names of fields; ignored on receipt"}}}


def _data(cls):
    optional = {*cls.added, *getattr(cls, "optional", ())}
    return {
        "type": "object", "required": [name for name in cls.fields if name not in optional],
        "properties": {name: _field(cls, name, field) for name, field in cls.fields.items()}}


def _field(cls, name, field):
    nested = _nested(cls, field)
    if nested is None:
        schema = of_field(field)
    else:
        schema = reference(nested.obj_name())
        if isinstance(field, fields.ListOfObjectsField):
            schema = {"type": "array", "items": schema}
        elif field.nullable:
            schema = {"oneOf": [schema, {"type": "null"}]}
    if name in cls.added:
        schema["x-since"] = cls.added[name]
    return schema


def _nested(cls, field):
    found = cls.registry.obj_classes().get(getattr(field, "objname", None))
    return found[0] if found else None


def _draft_7(schema):
    """Return a schema of oslo.versionedobjects without what draft 7 does not have."""
    if isinstance(schema, list):
        return [_draft_7(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _draft_7(value) for key, value in schema.items() if key != "readonly"}
    if isinstance(found.get("type"), list) and len(found["type"]) == 1:
        found["type"], = found["type"]
    return found
