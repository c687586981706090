# SPDX-License-Identifier: Apache-2.0
"""Queries for candidates as query strings, and answers as the model has them."""

import collections
import typing
import urllib.parse

from tests import candidates_model as model


def query_string(query):
    """Return the query string of a :class:`tests.candidates_model.Query`."""
    return urllib.parse.urlencode(parameters(query))


def parameters(query):
    """Return the parameters of the query string, a list of pairs of name and value."""
    pairs = [pair for group in query.groups for pair in _group(group, query.minor)]
    pairs += [("same_subtree", ",".join(suffixes)) for suffixes in query.same_subtree]
    roots = [*query.root_required, *(f"!{name}" for name in query.root_forbidden)]
    if roots:
        pairs.append(("root_required", ",".join(roots)))
    return pairs + [(name, value) for name, value in (
        ("group_policy", query.group_policy), ("limit", query.limit)) if value is not None]


def _group(group, minor):
    if group.amounts:
        yield f"resources{group.suffix}", ",".join(
            f"{name}:{amount}" for name, amount in group.amounts.items())
    single = [each[0] for each in group.required if len(each) == 1]
    single += [f"!{name}" for name in group.forbidden]
    # Before 1.39 the parameter could not be repeated.
    for value in single if minor >= 39 else [",".join(single)] if single else ():
        yield f"required{group.suffix}", value
    for names in (each for each in group.required if len(each) > 1):
        yield f"required{group.suffix}", f"in:{','.join(names)}"
    for uuids in group.member_of:
        yield f"member_of{group.suffix}", uuids[0] if len(uuids) == 1 else f"in:{','.join(uuids)}"
    for uuid in group.not_member_of:
        yield f"member_of{group.suffix}", f"!{uuid}"
    if group.in_tree:
        yield f"in_tree{group.suffix}", group.in_tree


class Answer(typing.NamedTuple):
    """The answer to a query.

    ``requests`` counts :class:`tests.candidates_model.Candidate`; below microversion 1.34 these
    have no mappings, so that one may stand there several times.
    """

    requests: collections.Counter
    summaries: dict


def read(document, minor):
    """Return the :class:`Answer` of a JSON document, which has the form of a microversion."""
    assert set(document) == {"allocation_requests", "provider_summaries"}, set(document)
    summaries = {uuid: dict(each) for uuid, each in document["provider_summaries"].items()}
    for each in summaries.values():
        if "traits" in each:
            each["traits"] = sorted(each["traits"])
    return Answer(collections.Counter(
        _candidate(each, minor) for each in document["allocation_requests"]), summaries)


def _candidate(document, minor):
    assert set(document) == {"allocations", *(["mappings"] if minor >= 34 else [])}, set(document)
    allocations = document["allocations"]
    if minor < 12:
        uuids = [each["resource_provider"]["uuid"] for each in allocations]
        assert len(uuids) == len(set(uuids)), uuids
        allocations = {each["resource_provider"]["uuid"]: each for each in allocations}
    mappings = document.get("mappings", {})
    for uuids in mappings.values():
        assert len(uuids) == len(set(uuids)), uuids
    return model.Candidate(
        frozenset((uuid, name, amount) for uuid, each in allocations.items()
                  for name, amount in each["resources"].items()),
        frozenset((suffix, frozenset(uuids)) for suffix, uuids in mappings.items()))


def shown(candidates, minor):
    """Return candidates as answers of a microversion show them: a Counter."""
    return collections.Counter(each if minor >= 34 else each._replace(mappings=frozenset())
                               for each in candidates)


def differences(world, query, found, answer, optional=(), may_show_more=False):
    """Return what is wrong with an answer, as a list of texts.

    :param found: all candidates by the model
    :param answer: :class:`Answer`
    :param optional: candidates among these that the answer may lack
    :param may_show_more: whether there may be summaries that only candidates beyond the limit need
    """
    everything = shown(found, query.minor)
    required = shown(found - set(optional), query.minor)
    wrong = []
    if extra := answer.requests - everything:
        wrong.append(f"not candidates: {dict(extra)}")
    limit, count = query.limit or len(found), answer.requests.total()
    if query.limit is None and (missing := required - answer.requests):
        wrong.append(f"missing: {dict(missing)}")
    if not min(limit, required.total()) <= count <= min(limit, len(found)):
        wrong.append(f"{count} of {required.total()} to {len(found)} with limit {query.limit}")
    given = {each.resources for each in answer.requests}
    needed = model.summaries(world, query, [each for each in found if each.resources in given])
    allowed = model.summaries(world, query, found) if may_show_more else needed
    wrong += [f"summary of {uuid}: {answer.summaries.get(uuid)} instead of {allowed.get(uuid)}"
              for uuid in sorted({*needed, *answer.summaries})
              if answer.summaries.get(uuid) != allowed.get(uuid)]
    return wrong
