# SPDX-License-Identifier: Apache-2.0
"""Open the payload of an event, and check what it contains before a listener relies on it.

A message with a known type may contain anything, and stays in the stream for as long as the stream
keeps its messages: an error in a listener would come back at each attempt to read the stream.
Only the kinds of values are checked, since a later release may allow longer texts or larger
numbers. Fields that a later minor version added may be missing, as may optional ones.
"""

import functools
from collections.abc import Callable
from typing import Any

from oslo_versionedobjects import fields

from placement_rpc.objects import base
from placement_rpc.objects.codec import DATA_KEY, without_envelopes

_Check = Callable[[Any], bool]
_MISSING = object()


def opened(cls: type[base.PlacementObject], value: Any) -> dict[str, Any]:
    """Return the data of an object in wire format, checked and without envelopes.

    The object and each object in its fields have one envelope or none. Envelopes are also removed
    from fields that the class does not have, which a later minor version added. Fields that may
    contain any JSON are returned unchanged.

    :param cls: class of the object
    :param value: JSON values; this function changes them
    :raises ValueError: if the object is not a mapping or has two envelopes, if a field is missing,
        or if a value is of another kind
    """
    data, present = _data(cls, value), 0
    for name, is_valid, open_, is_nullable, is_optional in _field_checks(cls):
        found = data.get(name, _MISSING)
        if found is _MISSING:
            if is_optional:
                continue
            raise ValueError(f"{cls.__name__} has no {name}")
        present += 1
        if found is None and is_nullable:
            continue
        if not is_valid(found):
            raise ValueError(f"{name} of {cls.__name__} is of another kind")
        if open_ is not None:
            data[name] = open_(found)
    # Few events have fields of a later version, and comparing all names takes longer.
    if present < len(data):
        for name in data.keys() - cls.fields.keys():
            data[name] = without_envelopes(data[name])
    return data


def _data(cls, value):
    """Return the fields of an object, from its envelope if it has one."""
    data = value[DATA_KEY] if isinstance(value, dict) and DATA_KEY in value else value
    if not isinstance(data, dict):
        raise ValueError(f"{cls.__name__} is not a mapping")
    if DATA_KEY in data:
        raise ValueError(f"{cls.__name__} has two envelopes")
    return data


@functools.cache
def _field_checks(cls):
    """Return how each field of a class is checked.

    :returns: list of tuples of the name, the check, what opens the objects in it or None, whether
        it may be null, and whether it may be missing
    """
    return [(name, *_check_and_opener(cls, name, field), field.nullable,
             name in cls.added or name in getattr(cls, "optional", ()))
            for name, field in cls.fields.items()]


def _check_and_opener(cls, name, field):
    """Return the check of a field, and what opens the objects in it or None."""
    if isinstance(field, (fields.ObjectField, fields.ListOfObjectsField)):
        open_ = functools.partial(
            opened, base.PlacementObjectRegistry.obj_classes()[field.objname][0])
        if isinstance(field, fields.ObjectField):
            return _KINDS["object"], open_
        return _is_list, lambda value: [open_(each) for each in value]
    if (cls.__name__, name) in _CONTENTS:
        return _CONTENTS[cls.__name__, name], None
    schema = field._type.get_schema()
    if schema["type"] == ["array"]:
        is_item = _KINDS[schema["items"]["type"][0]]
        return lambda value: _is_list(value) and all(map(is_item, value)), None
    return _KINDS[schema["type"][0]], None


def _is_list(value):
    return isinstance(value, list)


def is_text(value: Any) -> bool:
    """Return whether this is a text that can be written as UTF-8."""
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_number(value):
    return type(value) in (int, float)


def _is_integer(value):
    return type(value) is int


def _is_amounts(value):
    return isinstance(value, dict) and all(map(is_text, value)) and all(
        map(_is_integer, value.values()))


def _is_held(value):
    return isinstance(value, dict) and all(map(is_text, value)) and all(
        map(_is_amounts, value.values()))


def _is_error(value):
    return isinstance(value, dict) and is_text(value.get("message"))


_KINDS: dict[str, _Check] = {
    "integer": _is_integer, "number": _is_number, "string": is_text,
    "boolean": lambda value: type(value) is bool,
    "object": lambda value: isinstance(value, dict)}
# What listeners read from fields that may contain any JSON.
_CONTENTS: dict[tuple[str, str], _Check] = {
    ("ProviderAllocation", "before"): _is_amounts, ("ProviderAllocation", "after"): _is_amounts,
    ("ClaimRefusedPayload", "error"): _is_error,
    ("ReconciledConsumer", "allocations"): _is_held}
