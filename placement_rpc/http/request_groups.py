# SPDX-License-Identifier: Apache-2.0
"""Request groups in a query string: what a provider must have, or each of several providers.

A group consists of the parameters ``resources``, ``required``, ``member_of`` and ``in_tree`` with
the same suffix; the group without a suffix is the only one of a list of providers.
"""

import dataclasses
import re

from placement_rpc import exception
from placement_rpc.api import as_uuid
from placement_rpc.http.errors import BadRequest
from placement_rpc.schemas import common

# The first microversions with these forms.
_FORBIDDEN_TRAITS = (1, 22)
_REPEATED_MEMBER_OF = (1, 24)
_FORBIDDEN_AGGREGATES = (1, 32)
_NAMED_SUFFIXES = (1, 33)
_ANY_OF_TRAITS = (1, 39)

_KEY = re.compile(f"(resources|required|member_of|in_tree)({common.GROUP_SUFFIX})?")
_NUMBER = re.compile(common.GROUP_NUMBER)
_MAX_AMOUNT = 2 ** 63 - 1
_INVALID = "Invalid query string parameters: "
# How much of a value an error quotes.
_QUOTED = 200


@dataclasses.dataclass(frozen=True, slots=True)
class RequestGroup:
    """What a group asks for.

    :param resources: dict of class name to int
    :param required: list of lists of trait names: one of each list is required
    :param forbidden: list of trait names
    :param member_of: list of lists of aggregate uuids: a member of one of each list
    :param not_member_of: list of aggregate uuids
    :param in_tree: uuid of a provider; None for any tree
    """

    resources: dict = dataclasses.field(default_factory=dict)
    required: list = dataclasses.field(default_factory=list)
    forbidden: list = dataclasses.field(default_factory=list)
    member_of: list = dataclasses.field(default_factory=list)
    not_member_of: list = dataclasses.field(default_factory=list)
    in_tree: str | None = None


def groups(query, version):
    """Return the groups of a query: dict of suffix to :class:`RequestGroup`, in order.

    The suffix of the group without one is the empty text. Other parameters are ignored.

    :param query: :class:`placement_rpc.http.queries.Query`
    :param version: tuple of int, the microversion
    :raises BadRequest: if a value is malformed
    """
    found = {}
    for key in query:
        suffix = _suffix(key, version)
        if suffix is not None and suffix not in found:
            found[suffix] = group(query, version, suffix)
    return found


def _suffix(key, version):
    """Return the suffix of a parameter; None if it is no part of a group."""
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    suffix = match[2] or ""
    if suffix and version < _NAMED_SUFFIXES and not _NUMBER.fullmatch(suffix):
        return None
    return suffix


def group(query, version, suffix=""):
    """Return the :class:`RequestGroup` of a suffix.

    Of a repeated ``resources`` or ``in_tree``, and before microversion 1.39 of a repeated
    ``required``, the last value counts.

    :raises BadRequest: if a value is malformed
    """
    required, forbidden = traits(query.all(f"required{suffix}"), version)
    member_of, not_member_of = _aggregates(query.all(f"member_of{suffix}"), version, suffix)
    resources, in_tree = query.get(f"resources{suffix}"), query.get(f"in_tree{suffix}")
    return RequestGroup(
        {} if resources is None else amounts(resources), required, forbidden, member_of,
        not_member_of, None if in_tree is None else _tree(in_tree))


def amounts(text):
    """Parse amounts of resource classes; of a class that is named twice, the last amount counts.

    :param text: str, like ``VCPU:2,MEMORY_MB:1024``
    :returns: dict of class name to int
    :raises BadRequest: if the text has another form, or an amount is not between 1 and 2^63 - 1
    """
    found = {}
    for part in text.split(","):
        name, colon, amount = part.partition(":")
        if not colon or ":" in amount:
            raise BadRequest(
                reason="Badly formed resources parameter. Expected resources query string "
                       "parameter in form: ?resources=VCPU:2,MEMORY_MB:1024. "
                       f"Got: {part[:_QUOTED] if text.strip() else 'empty string'}.")
        found[name] = _amount(name, amount)
    return found


def _amount(name, text):
    try:
        # Also " 1", "+1" and "1_0", as OpenStack Placement reads them.
        amount = int(text)
    except ValueError:
        raise BadRequest(
            reason=f"Requested resource {name[:_QUOTED]} expected positive integer amount. "
                   f"Got: {text[:_QUOTED]}.") from None
    if amount < 1:
        raise BadRequest(
            reason=f"Requested resource {name[:_QUOTED]} requires amount >= 1. "
                   f"Got: {text[:_QUOTED]}.")
    if amount > _MAX_AMOUNT:
        raise BadRequest(
            reason=f"Requested resource {name[:_QUOTED]} requires amount <= {_MAX_AMOUNT}. "
                   f"Got: {text[:_QUOTED]}.")
    return amount


def traits(values, version):
    """Return the traits that are required, and those that are forbidden.

    :param values: list of str, those of a repeated ``required``
    :param version: tuple of int, the microversion
    :returns: tuple of a list of lists of names, of each of which one is required, and a list of
        names
    :raises BadRequest: if a value is malformed
    """
    required, forbidden = [], set()
    for value in values if version >= _ANY_OF_TRAITS else values[-1:]:
        if value.startswith("in:"):
            required.append(_any_of(value, version))
        else:
            names, excluded = _each(value, version)
            required += [[name] for name in names]
            forbidden |= excluded
    return required, sorted(forbidden)


def _any_of(value, version):
    """Return the names of one set, of which one is required."""
    example = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC"
    if version < _ANY_OF_TRAITS:
        raise BadRequest(reason=f"{_INVALID}The format '{example}' only supported since "
                                f"microversion 1.39. Got: {value[:_QUOTED]}")
    names = {name.strip() for name in value.removeprefix("in:").split(",")}
    if "" in names:
        raise _malformed_traits(example, f"Got an empty trait in: {value[:_QUOTED]}")
    if any(name.startswith("!") for name in names):
        raise BadRequest(reason=f"{_INVALID}The format '{example}' does not support forbidden "
                                f"traits. Got: {value[:_QUOTED]}")
    return sorted(names)


def _each(value, version):
    """Return the names that are required, and the set of those that are forbidden."""
    may_forbid = version >= _FORBIDDEN_TRAITS
    example = "HW_CPU_X86_VMX,!CUSTOM_MAGIC" if may_forbid else "HW_CPU_X86_VMX,CUSTOM_MAGIC"
    names = [name.strip() for name in value.split(",")]
    # Any number of "!" is one, as in OpenStack Placement.
    forbidden = {name.lstrip("!") for name in names if name.startswith("!")}
    if "" in names or "" in forbidden:
        raise _malformed_traits(example, f"Got an empty trait in: {value[:_QUOTED]}")
    if forbidden and not may_forbid:
        raise _malformed_traits(example, f"Got: {value[:_QUOTED]}")
    return [name for name in dict.fromkeys(names) if not name.startswith("!")], forbidden


def _malformed_traits(example, got):
    return BadRequest(
        reason=f"{_INVALID}Expected 'required' parameter value of the form: {example}. {got}")


def _aggregates(values, version, suffix):
    """Return the required sets and the forbidden uuids of ``member_of``."""
    if len(values) > 1 and version < _REPEATED_MEMBER_OF:
        raise BadRequest(reason=f"Multiple member_of{suffix} parameters are not supported")
    member_of, forbidden = [], set()
    for value in values:
        is_forbidden = value.startswith("!")
        text = value[is_forbidden:]
        is_list = text.startswith("in:")
        if "," in text and not is_list:
            raise BadRequest(
                reason="Multiple values for 'member_of' must be prefixed with the 'in:' or "
                       "'!in:' keyword using the valid microversion. "
                       f"Got: {value[:_QUOTED]}")
        uuids = {_aggregate(each) for each in (
            text.removeprefix("in:").split(",") if is_list else [text])}
        if not is_forbidden:
            member_of.append(sorted(uuids))
        elif version < _FORBIDDEN_AGGREGATES:
            raise BadRequest(reason=f"Forbidden member_of{suffix} parameters are not supported "
                                    "in the specified microversion")
        else:
            forbidden |= uuids
    return member_of, sorted(forbidden)


def _aggregate(text):
    try:
        return as_uuid("member_of", text)
    except exception.InvalidInput:
        raise BadRequest(
            reason=f"{_INVALID}Expected 'member_of' parameter to contain valid UUID(s). "
                   f"Got: {text[:_QUOTED]}") from None


def _tree(text):
    try:
        return as_uuid("in_tree", text.strip())
    except exception.InvalidInput:
        raise BadRequest(
            reason=f"{_INVALID}Expected 'in_tree' parameter to be a format of uuid. "
                   f"Got: {text[:_QUOTED]}") from None
