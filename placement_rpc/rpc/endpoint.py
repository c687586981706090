# SPDX-License-Identifier: Apache-2.0
"""What the methods of an endpoint have in common: exposure, and checking what they are given."""

import dataclasses
import functools

from placement_rpc import exception
from placement_rpc.objects import fields

# The most entries of one answer; PlacementAPI asks for the next page by itself.
MAX_PAGE = 1000


def exposed(method):
    """Make a method callable from outside, with the store and the caller's deadline in place."""
    @functools.wraps(method)
    def call(self, context, **arguments):
        if "request_id" not in arguments:
            # A change looks for its outcome first: see objects.outcome.
            context.check_deadline()
        if context.rule is not None:
            self.policy.check_call(context, method.__name__)
        context.database = self.database
        return method(self, context, **arguments)

    call.exposed = True
    return call


@dataclasses.dataclass(frozen=True, slots=True)
class BatchRule:
    """Calls that are settled together.

    :param methods: tuple of str
    :param commit: :class:`placement_rpc.accounting.group_commit.GroupCommit` that settles them
    """

    methods: tuple
    commit: object


def as_uuid(name, value):
    """:returns: str, the uuid in its one spelling; :raises InvalidInput:"""
    return fields.Uuid().coerce(None, name, value)


def as_name(value):
    """:returns: str, what may be a provider's name; :raises InvalidInput:"""
    return fields.Name().coerce(None, "name", value)


def as_generation(value):
    """:returns: int; None where none was given; :raises InvalidInput:"""
    if value is None:
        return None
    return fields.WholeNumber(maximum=2 ** 63 - 1).coerce(None, "generation", value)


def as_limit(value):
    """:returns: int, how many entries an answer has at the most; :raises InvalidInput:"""
    if value is None:
        return MAX_PAGE
    return min(MAX_PAGE, fields.WholeNumber(minimum=1).coerce(None, "limit", value))


def as_truth(name, value):
    """:returns: bool; None where none was given; :raises InvalidInput:"""
    if value is not None and type(value) is not bool:
        raise exception.InvalidInput(what=name, reason="it is neither true nor false")
    return value


def instance_of(cls, name, value):
    """:returns: the value, when it is an object of the class; :raises InvalidInput: otherwise"""
    if not isinstance(value, cls):
        raise exception.InvalidInput(
            what=name, reason=f"a {cls.__name__} was expected, not a {type(value).__name__}")
    return value


def require_fields(value, *names):
    """:returns: the object, when these fields are set; :raises InvalidInput: otherwise"""
    for name in names:
        if not value.obj_attr_is_set(name):
            raise exception.InvalidInput(
                what=type(value).__name__, reason=f"{name} is missing")
    return value
