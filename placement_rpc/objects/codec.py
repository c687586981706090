# SPDX-License-Identifier: Apache-2.0
"""Objects to and from their wire format, as oslo.versionedobjects does, at a fifth of the cost.

The library converts every field by four nested calls, in both directions. Nearly all fields here
have JSON values, which are sent as they are and only coerced on receipt. These fields of a class
are determined once. ``tests/unit/test_objects.py`` keeps the result equal to the library's for
every class; only :func:`stored` leaves no field marked as changed, as constructors do.
"""

import functools
import typing

from oslo_versionedobjects import base, fields

#: The key of an object's data in its envelope.
DATA_KEY = "placement_object.data"
_NESTED = (dict, list)


@functools.cache
def _shape(cls: typing.Any) -> tuple[list, list]:
    """Return the fields of a class.

    :returns: tuple of a list of (name, attribute, coercion) of the fields with JSON values, and a
        list of (name, attribute, field) of the others
    """
    plain, others = [], []
    for name, field in cls.fields.items():
        kind = field._type
        is_plain = type(kind).to_primitive is fields.FieldType.to_primitive and (
            type(kind).from_primitive is fields.FieldType.from_primitive) and not field.read_only
        if is_plain:
            plain.append((name, f"_obj_{name}", kind.coerce))
        else:
            others.append((name, f"_obj_{name}", field))
    return plain, others


@functools.cache
def _keys(cls: typing.Any) -> list[str]:
    return [cls._obj_primitive_key(key) for key in (
        "name", "namespace", "version", "data", "changes")]


def to_primitive(instance: typing.Any) -> dict:
    """Return the wire format, as the library's ``obj_to_primitive`` at this release's version.

    The values in the dict are those of the object, not copies.
    """
    cls: typing.Any = type(instance)
    values = vars(instance)
    plain, others = _shape(cls)
    data = {name: values[attribute] for name, attribute, _ in plain if attribute in values}
    changed = instance._changed_fields
    for name, attribute, field in others:
        if attribute not in values:
            continue
        value = values[attribute]
        if isinstance(field, fields.ListOfObjectsField):
            data[name] = [each.obj_to_primitive() for each in value]
        else:
            data[name] = field.to_primitive(instance, name, value)
        if name not in changed and _has_changed(instance, name, value, data[name]):
            changed = {*changed, name}
    known = [name for name in changed if name in data]
    name, namespace, version, data_key, changes = _keys(cls)
    primitive = {name: cls.obj_name(), namespace: cls.OBJ_PROJECT_NAMESPACE,
                 version: cls.VERSION, data_key: data}
    if known:
        primitive[changes] = known
    return primitive


def _has_changed(instance, name, value, sent):
    """Return whether an object in a field has changes, by the rule of the library."""
    if not isinstance(instance, base.ObjectListBase):
        return isinstance(value, base.VersionedObject) and bool(value.obj_what_changed())
    # To ask each object takes ten times as long.
    return name == "objects" and any(
        each._changed_fields or _keys(type(each))[4] in primitive
        for each, primitive in zip(value, sent, strict=True))


def from_primitive(cls: typing.Any, context: typing.Any, primitive: dict) -> typing.Any:
    """Return an instance, as the library's ``_obj_from_primitive`` at this release's version.

    :param context: the context of the instance
    :raises ValueError: if a value is not valid; other exceptions of
        :data:`placement_rpc.objects.base.BROKEN` are possible too
    """
    instance = _made(cls, context)
    values = vars(instance)
    _, _, _, data_key, changes = _keys(cls)
    data = primitive[data_key]
    plain, others = _shape(cls)
    for name, attribute, coerce in plain:
        if name in data:
            value = data[name]
            values[attribute] = cls.fields[name].coerce(instance, name, None) if (
                value is None) else coerce(instance, name, value)
    for name, attribute, field in others:
        if name not in data:
            continue
        value = data[name]
        if isinstance(field, fields.ListOfObjectsField) and isinstance(value, list):
            wanted = cls.registry.obj_classes()[field.objname][0]
            value = _objects(instance, name, field, wanted, value)
            if all(type(each) is wanted for each in value):
                values[attribute] = fields.CoercedList(value)
                kind: typing.Any = field._type
                values[attribute].enable_coercing(kind._element_type, instance, name)
                continue
        # The library passes objects that were made here as they are, and refuses other classes.
        setattr(instance, name, field.from_primitive(instance, name, value))
    if "objects" in cls.fields and "objects" not in data:
        # As the library leaves it: it refuses what has another class.
        instance.objects = []
    instance._changed_fields = {name for name in primitive.get(changes, ()) if name in cls.fields}
    return instance


def _made(cls, context):
    """Return an instance without values; a list has an empty one of its objects, unchecked."""
    instance = cls.__new__(cls)
    values = vars(instance)
    values["_context"], values["_changed_fields"] = context, set()
    if "objects" in cls.fields:
        values["_obj_objects"] = []
    return instance


def _objects(instance, name, field, wanted, items):
    """Return the objects of a list in wire format, each by its own name and version.

    :param wanted: the class that they should have
    """
    element = field._type._element_type
    key, namespace, version = _keys(wanted)[:3]
    known = wanted.obj_name(), wanted.OBJ_PROJECT_NAMESPACE, wanted.VERSION
    return [
        # The library would look up the class of each, which is known if these three are the same.
        wanted._obj_from_primitive(instance._context, wanted.VERSION, each)
        if type(each) is dict and (
            each.get(key), each.get(namespace), each.get(version)) == known
        else element.from_primitive(instance, name, each) for each in items]


def stored(cls: typing.Any, **values: typing.Any) -> typing.Any:
    """Return ``cls(**values)`` without coercion and without changed fields.

    :param values: valid ones: from the store, from the index, or from other objects
    """
    instance = _made(cls, None)
    vars(instance).update({f"_obj_{name}": value for name, value in values.items()})
    return instance


def plain(value: typing.Any) -> typing.Any:
    """Return the data of objects without their envelopes.

    :param value: a versioned object, or lists and dicts of objects and of JSON values
    :returns: JSON values; an object becomes a dict of the fields that are set
    """
    if isinstance(value, base.VersionedObject):
        return {name: plain(getattr(value, name)) for name in value.fields
                if value.obj_attr_is_set(name)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    # Other objects, such as network addresses, become text.
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


def without_envelopes(value: typing.Any) -> typing.Any:
    """Return the data of objects in wire format, without their envelopes.

    :param value: JSON values
    """
    if isinstance(value, dict):
        if DATA_KEY in value:
            return without_envelopes(value[DATA_KEY])
        # Most are texts and numbers, which need no call.
        return {key: without_envelopes(item) if isinstance(item, _NESTED) else item
                for key, item in value.items()}
    if isinstance(value, list):
        return [without_envelopes(item) if isinstance(item, _NESTED) else item for item in value]
    return value
