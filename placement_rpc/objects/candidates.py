# SPDX-License-Identifier: Apache-2.0
"""A request for allocations over trees of providers, and the allocations that it could get."""

import base64
import functools
import json
import typing
import zlib
from collections.abc import Iterable, Iterator

from oslo_versionedobjects import fields as library_fields

from placement_rpc import exception
from placement_rpc.objects import base, claim, fields, request

_AMOUNT = 2 ** 63 - 1
#: The most groups of a request: each of them is a condition on every tree.
MAX_GROUPS = 100
POLICIES = ("none", "isolate")
# How the parts of a body may be encoded.
_DEFLATED = "deflate"
# The fastest level: the text repeats itself so much that the others make it hardly shorter.
_LEVEL = 1
# Bytes of text that are decompressed at a time.
_CHUNK = 256 * 1024


class _GroupAmounts(fields.Amounts):
    """As the base class, but it may be empty, for a group without resources."""

    def coerce(self, obj, attr, value):
        return {} if value == {} else super().coerce(obj, attr, value)


class _Parts(library_fields.FieldType):
    """A list of texts, which are neither copied nor checked."""

    def coerce(self, obj, attr, value):
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise exception.InvalidInput(what=attr, reason="it is not a list of texts")
        return value

    def get_schema(self):
        return {"type": ["array"], "items": {"type": ["string"]}}


@base.PlacementObjectRegistry.register
class CandidateGroup(base.PlacementObject):
    """What one provider must have, or for the group without a suffix the providers of a tree.

    ``resources`` maps resource class to amount; a group may have none. The providers have one
    trait of each list in ``required`` and none of ``forbidden``; they are in an aggregate of each
    list in ``member_of`` and in none of ``not_member_of``; and they are in the tree of the
    provider ``in_tree``. What a group with a suffix asks for, one provider has to have; the group
    without one may get each resource class from another provider of the tree, or from a provider
    that shares it.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "suffix": fields.field(fields.Suffix(), default=""),
        "resources": fields.field(_GroupAmounts(maximum=_AMOUNT), default={}),
        "required": fields.field(
            fields.Several(request.TRAITS, maximum=1000), default=[]),
        "forbidden": fields.field(request.TRAITS, default=[]),
        "member_of": fields.field(
            fields.Several(request.SOME_AGGREGATES, maximum=100), default=[]),
        "not_member_of": fields.field(request.AGGREGATES, default=[]),
        "in_tree": fields.field(fields.Uuid(), nullable=True, default=None),
    }

    @property
    def name(self) -> str:
        """The suffix; empty if none is set."""
        return self.value("suffix") or ""


@base.PlacementObjectRegistry.register
class CandidatesRequest(base.PlacementObject):
    """Groups of amounts that a tree of providers, with those that share with it, has to have free.

    With the ``group_policy`` ``isolate`` a provider serves one group with a suffix at most; with
    ``none``, or without a policy, it may serve several. ``same_subtree`` are lists of suffixes:
    of the providers of each list's groups, one is an ancestor of all others, or the same. The root
    of the tree has all traits of ``root_required`` and none of ``root_forbidden``. ``limit`` is
    the maximum number of candidates; None leaves it to the service.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "groups": fields.ListOfObjectsField("CandidateGroup"),
        "group_policy": fields.field(fields.Choice(POLICIES), nullable=True, default=None),
        "same_subtree": fields.field(
            fields.Several(fields.Several(
                fields.Suffix(), maximum=MAX_GROUPS, minimum=1), maximum=100), default=[]),
        "root_required": fields.field(request.TRAITS, default=[]),
        "root_forbidden": fields.field(request.TRAITS, default=[]),
        "limit": fields.field(fields.WholeNumber(minimum=1), nullable=True, default=None),
    }

    def check(self) -> None:
        """Check that the request can be met at all, and that it can be searched for.

        :raises InvalidInput: if it asks for nothing, for too many groups, for a group twice, or
            for what contradicts itself
        """
        groups = self.value("groups") or []
        suffixes = {group.name for group in groups}
        if not any(group.value("resources") for group in groups):
            raise _invalid("no group has resources")
        if len(groups) > MAX_GROUPS:
            raise _invalid(f"it has {len(groups)} groups, and {MAX_GROUPS} are allowed")
        if len(suffixes) < len(groups):
            raise _invalid("two groups have the same suffix")
        together = {suffix for each in self.value("same_subtree", []) for suffix in each}
        if "" in together or not together <= suffixes:
            raise _invalid("same_subtree names a group that is not there: "
                           f"{min(together - (suffixes - {''}))!r}")
        for group in groups:
            _check_group(group, together)
        both = set(self.value("root_required", [])) & set(self.value("root_forbidden", []))
        if both:
            raise _invalid(f"the root is to have {min(both)}, and not to have it")

    def check_claimable(self, max_resources: int) -> None:
        """Check the request as :meth:`check`, and that a claim can have what it asks for.

        :param max_resources: the maximum number of amounts of a claim
        :raises InvalidInput: if a class is asked for in greater amounts than can be allocated
        :raises BatchTooLarge: if it has more amounts
        """
        self.check()
        amounts = [each for group in self.groups for each in group.value("resources", {}).items()]
        if len(amounts) > max_resources:
            raise exception.BatchTooLarge(
                what="claim", limit=max_resources, size=len(amounts))
        for name in {name for name, _ in amounts}:
            if sum(amount for each, amount in amounts if each == name) > fields.MAX_INT:
                raise _invalid(f"it has more than {fields.MAX_INT} of {name}")

    @property
    def text(self) -> str:
        """What is asked for, for errors and logs."""
        return "; ".join(
            (f"group {group.name}: " if group.name else "") + ", ".join(
                f"{name}:{amount}" for name, amount in sorted(group.resources.items()))
            for group in self.groups if group.value("resources"))


def _check_group(group, together):
    forbidden = set(group.value("forbidden", []))
    for names in group.value("required", []):
        if not names:
            raise _invalid(f"a list of alternatives in required of group {group.name!r} is empty")
        if forbidden.issuperset(names):
            raise _invalid(f"group {group.name!r} needs one of {', '.join(names)[:200]}, and "
                           "all of them are forbidden")
    if not group.value("resources") and group.name not in together:
        raise _invalid(f"group {group.name!r} has no resources, and same_subtree does not "
                       "name it")


def _invalid(reason):
    return exception.InvalidInput(what="request for candidates", reason=reason)


@base.PlacementObjectRegistry.register
class AllocationCandidates(base.PlacementObject):
    """The allocations that a request could get, as rendered JSON.

    The JSON has the shape of ``GET /allocation_candidates`` at the microversion that was asked
    for. ``body`` are its parts; with the ``encoding`` ``deflate`` they are parts of a zlib
    stream, each in base64. ``count`` is the number of candidates, and ``is_cut`` whether there
    are, or may be, more than the maximum. ``position`` is the position of an event up to which
    every change is included.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "body": fields.field(_Parts()),
        "encoding": fields.field(fields.Choice((_DEFLATED,)), nullable=True, default=None),
        "position": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
        "is_cut": fields.BooleanField(),
        "count": fields.field(fields.WholeNumber()),
    }

    @classmethod
    def of(cls, parts: Iterable[str], deflated: bool, **values: typing.Any) -> typing.Self:
        """Return an answer of rendered parts.

        :param deflated: whether to deflate them, for an answer that leaves the process
        :param values: the other fields
        """
        return cls(body=list(_deflate(parts) if deflated else parts),
                   encoding=_DEFLATED if deflated else None, **values)

    def chunks(self) -> Iterator[bytes]:
        """Yield the rendered JSON part by part, in UTF-8.

        :raises InvalidInput: if it is not encoded as it says
        """
        if self.value("encoding") is None:
            for part in self.body:
                yield part.encode()
            return
        inflate = zlib.decompressobj()
        try:
            for part in self.body:
                left = base64.b64decode(part, validate=True)
                while left:
                    yield inflate.decompress(left, _CHUNK)
                    left = inflate.unconsumed_tail
            yield inflate.flush()
        except (zlib.error, ValueError) as error:
            raise exception.InvalidInput(what="AllocationCandidates", reason=str(error)) from None
        if not inflate.eof:
            raise exception.InvalidInput(what="AllocationCandidates", reason="it ends too early")

    @property
    def allocation_requests(self) -> list[dict]:
        """The candidates: list of dicts of ``allocations`` and ``mappings``."""
        return self._decoded["allocation_requests"]

    @property
    def provider_summaries(self) -> dict[str, dict]:
        """What the providers of the candidates' trees have: dict of uuid to dict."""
        return self._decoded["provider_summaries"]

    @functools.cached_property
    def _decoded(self) -> dict[str, typing.Any]:
        return json.loads(b"".join(self.chunks()))


@base.PlacementObjectRegistry.register
class CandidateClaimResult(claim.ClaimResult):
    """The outcome of a claim for which the service chose a candidate of a request with groups.

    ``allocations`` maps provider uuid to a mapping of resource class to amount; ``mappings`` maps
    the suffix of each group to the uuids of its providers. The other fields are those of every
    claim.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "allocations": fields.field(fields.Mapping(fields.Amounts())),
        "mappings": fields.field(fields.Mappings()),
    }

    added: typing.ClassVar[dict[str, str]] = {}

    @classmethod
    def of_claim(cls, accepted: claim.ClaimResult, allocations: typing.Any,
                 mappings: typing.Any) -> typing.Self:
        """Return the result of a claim with what was chosen for it."""
        found = cls.of(accepted, accepted.replayed)
        found.allocations, found.mappings = allocations, mappings
        return found

    @classmethod
    def of(cls, accepted: claim.ClaimResult, replayed: bool) -> typing.Self:
        found = super().of(accepted, replayed)
        for name in ("allocations", "mappings"):
            if name in accepted.fields:
                setattr(found, name, getattr(accepted, name))
        return found


def _deflate(parts: Iterable[str]) -> Iterator[str]:
    """Yield parts of a zlib stream in base64; other threads run while a part is compressed."""
    deflate = zlib.compressobj(_LEVEL)
    for part in parts:
        if data := deflate.compress(part.encode()):
            yield base64.b64encode(data).decode()
    yield base64.b64encode(deflate.flush()).decode()
