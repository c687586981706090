# SPDX-License-Identifier: Apache-2.0
"""Check what the payload of an event contains, before a listener relies on it.

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

_Check = Callable[[Any], bool]


def check(cls: type[base.PlacementObject], data: Any) -> None:
    """Check the data of an object without its envelope.

    :param cls: class of the object
    :raises ValueError: if a field is missing, or its value is of another kind
    """
    if not isinstance(data, dict):
        raise ValueError(f"{cls.__name__} is not a mapping")
    for name, is_valid, is_nullable, is_optional in _checks(cls):
        if name not in data:
            if not is_optional:
                raise ValueError(f"{cls.__name__} has no {name}")
            continue
        value = data[name]
        if value is None and is_nullable:
            continue
        if not is_valid(value):
            raise ValueError(f"{name} of {cls.__name__} is of another kind")


@functools.cache
def _checks(cls):
    """Return the name, check, nullability and optionality of each field, a list of tuples."""
    return [(name, _check_of(cls, name, field), field.nullable,
             name in cls.added or name in getattr(cls, "optional", ()))
            for name, field in cls.fields.items()]


def _check_of(cls, name, field):
    if (cls.__name__, name) in _CONTENTS:
        return _CONTENTS[cls.__name__, name]
    if isinstance(field, fields.ListOfObjectsField):
        item = _class(field.objname)
        return lambda value: isinstance(value, list) and all(_is_object(item, each)
                                                             for each in value)
    if isinstance(field, fields.ObjectField):
        item = _class(field.objname)
        return lambda value: _is_object(item, value)
    schema = field._type.get_schema()
    if schema["type"] == ["array"]:
        is_item = _KINDS[schema["items"]["type"][0]]
        return lambda value: isinstance(value, list) and all(map(is_item, value))
    return _KINDS[schema["type"][0]]


def _class(name):
    return base.PlacementObjectRegistry.obj_classes()[name][0]


def _is_object(cls, value):
    try:
        check(cls, value)
    except ValueError:
        return False
    return True


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
