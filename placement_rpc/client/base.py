# SPDX-License-Identifier: Apache-2.0
"""What the client's methods share."""

import enum
from typing import Any, TypeVar

from placement_rpc import exception
from placement_rpc.objects.base import instance_of

_T = TypeVar("_T")


class Keep(enum.Enum):
    """The type of :data:`KEEP`."""

    KEEP = enum.auto()


#: The default of an argument for which None is a value: the service keeps what it has.
KEEP = Keep.KEEP


def list_of(cls: type[_T], name: str, values: Any) -> list[_T]:
    """Return the values as a list of objects of the class.

    :raises InvalidInput: for anything else
    """
    return [instance_of(cls, f"{name}[{number}]", value)
            for number, value in enumerate(any_list(name, values))]


def any_list(name: str, values: Any) -> list[Any]:
    """Return the values of a list, a tuple or a set as a list.

    :raises InvalidInput: for anything else
    """
    if not isinstance(values, (list, tuple, set, frozenset)):
        raise exception.InvalidInput(what=name, reason="it is not a list")
    return list(values)
