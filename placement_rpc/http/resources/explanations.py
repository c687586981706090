# SPDX-License-Identifier: Apache-2.0
"""Questions about the whole fleet: why a request has no room, and how many more have."""

from placement_rpc import exception
from placement_rpc.api import CandidateGroup, CandidatesRequest, ResourceRequest
from placement_rpc.http import errors, names, older_lists
from placement_rpc.http.call import Answer

# Parts of a request for one provider, and of one with groups.
_FLAT, _GROUPED = ("resources", "member_of"), (
    "groups", "group_policy", "same_subtree", "root_required", "root_forbidden")
_UNKNOWN = (exception.ResourceClassNotFound, exception.TraitNotFound, exception.ProviderNotFound)


def explained(call):
    """Show where a request fits and, where it does not, why (POST ?explain)."""
    call.refuse_condition()
    body = dict(call.body)
    limit, marker = body.pop("limit", None), body.pop("marker", None)
    # A survey of the whole fleet; the pages that follow would only repeat it.
    funnel = body.pop("funnel", marker is None)
    with errors.bad_request(*_UNKNOWN):
        wanted = _grouped(body) if "groups" in body else ResourceRequest(
            **_only(_FLAT, body, "groups"))
        found = older_lists.with_position(
            call, lambda: _explain(call, wanted, funnel, marker=marker, limit=limit))
    return Answer(position=found.position, body={
        call.spelling.collection: [
            {"uuid": each.provider_uuid, "name": each.name, "generation": each.generation,
             "fits": each.fits, "reasons": each.reasons} for each in found.objects],
        "funnel": found.value("funnel")})


def _explain(call, wanted, funnel, **page):
    if funnel:
        try:
            return call.api.explain(call.context, wanted, funnel=True, **page)
        except exception.ServiceTooOld:
            # A service of release 2026.2 has no funnel.
            pass
    return call.api.explain(call.context, wanted, **page)


def headroom(call):
    """Show how many more such requests fit (POST ?headroom)."""
    call.refuse_condition()
    body = dict(call.body)
    by = body.pop("by", None)
    if "groups" not in body:
        body = {"groups": [_only(_FLAT, body, "groups")]}
    with errors.bad_request(*_UNKNOWN):
        found = call.api.get_headroom(call.context, _grouped(body), by=by)
    return Answer(position=found.position, body={
        "count": found.count, "at_most": found.at_most, "exact": found.is_exact,
        "limits": found.limits, "by": found.value("by"), "parts": found.parts})


def _only(keys, body, other):
    """Return a body that has nothing but some keys.

    :param other: str, what the body could have in place of the first key
    :raises BadRequest: if it lacks the first key, or has others
    """
    more = sorted(body.keys() - set(keys))
    if more or keys[0] not in body:
        raise errors.BadRequest(reason=(
            f"{more[0]} cannot be given with {keys[0]}" if more and keys[0] in body
            else f"Give either {keys[0]} or {other}"))
    return body


def _grouped(body):
    """Return the request with groups of a body.

    :raises BadRequest: if it is given in another form too, or contradicts itself
    :raises ResourceClassNotFound: if no class can have one of the names
    :raises TraitNotFound: if no trait can
    """
    body = _only(_GROUPED, body, "resources")
    groups = body["groups"]
    names.check_classes(name for group in groups for name in group.get("resources", ()))
    names.check_traits([
        *body.get("root_required", ()), *body.get("root_forbidden", ()),
        *(name for group in groups for some in (
            *group.get("required", ()), group.get("forbidden", ())) for name in some)])
    wanted = CandidatesRequest(**{
        **body, "groups": [CandidateGroup(**group) for group in groups]})
    wanted.check()
    return wanted
