# SPDX-License-Identifier: Apache-2.0
"""Comparison of answers to ``GET /allocation_candidates`` that a limit cut off.

Which candidates a limit keeps is a free choice of the service. Then the number of candidates has
to be the same, and what is said of providers that both name; and some candidates that only one
service chose are looked for in the other, by the same query for their trees alone.
"""

import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

from placement_rpc.moving.access_log import Request
from placement_rpc.moving.answers import Answer, Difference, canonical, difference_of

PATH = "/allocation_candidates"
_REQUESTS, _SUMMARIES = "allocation_requests", "provider_summaries"
# How many candidates of each service are looked for in the other.
_SAMPLE = 2
_RESOURCES, _IN_TREE, _LIMIT = "resources", "in_tree", "limit"
_OK = 200

#: A callable of a request that returns the :class:`Answer` of one of the services
Ask = Callable[[Request], Answer]


def limit_of(request: Request) -> int | None:
    """Return the limit of a request for candidates; None if it has none, or is another one."""
    if request.path != PATH:
        return None
    values = urllib.parse.parse_qs(request.query).get(_LIMIT, [""])
    return int(values[0]) if values[0].isdecimal() else None


def are_cut(bodies: tuple[Any, Any], limit: int) -> bool:
    """Return whether both answers have candidates, one of them as many as the limit allows."""
    return all(isinstance(body, dict) and isinstance(body.get(_REQUESTS), list)
               for body in bodies) and any(len(body[_REQUESTS]) >= limit for body in bodies)


def compare(request: Request, bodies: tuple[Any, Any], ask: tuple[Ask, Ask]) -> Difference | None:
    """Return the first difference of two answers that are cut off; None if there is none.

    :param request: that both answer
    :param bodies: JSON values of the old and of the new service's answer
    :param ask: for each of them, a callable that asks it
    """
    old, new = bodies
    lengths = [len(body[_REQUESTS]) for body in bodies]
    if lengths[0] != lengths[1]:
        return Difference(f"body.{_REQUESTS}", *(f"{length} candidates" for length in lengths))
    here, there = (body.get(_SUMMARIES) or {} for body in bodies)
    for uuid in sorted({*here} & {*there}):
        found = difference_of(here[uuid], there[uuid], f"body.{_SUMMARIES}.{uuid}")
        if found:
            return found
    for number, (mine, its) in enumerate(((old, new), (new, old))):
        for candidate, narrowed in _of_one(request, mine, its):
            if not _has(ask[1 - number](narrowed), candidate):
                texts = [str(candidate), "it is not a candidate"]
                return Difference(
                    f"body.{_REQUESTS} of {narrowed.target}", *texts[::1 - 2 * number])
    return None


def _of_one(request: Request, mine: Any, its: Any) -> Iterator[tuple[Any, Request]]:
    """Yield candidates that only ``mine`` has, each with the query for its trees alone."""
    known, number = {canonical(each) for each in its[_REQUESTS]}, 0
    for candidate in mine[_REQUESTS]:
        if number < _SAMPLE and canonical(candidate) not in known:
            narrowed = _narrowed(request, candidate, mine.get(_SUMMARIES) or {})
            if narrowed is not None:
                number += 1
                yield candidate, narrowed


def _narrowed(request: Request, candidate: Any, summaries: dict[str, Any]) -> Request | None:
    """Return the query for one candidate: each of its groups in the tree that serves it.

    :returns: None if a group is served by several trees, as with shared storage, or if the
        microversion does not say which provider serves which group
    """
    mappings = candidate.get("mappings") if isinstance(candidate, dict) else None
    if not mappings:
        return None
    pairs = [(name, value) for name, value in urllib.parse.parse_qsl(
        request.query, keep_blank_values=True) if name != _LIMIT]
    names = {name for name, _ in pairs}
    for suffix, providers in mappings.items():
        roots = {summaries.get(uuid, {}).get("root_provider_uuid", uuid) for uuid in providers}
        if len(roots) != 1:
            return None
        if f"{_RESOURCES}{suffix}" in names and f"{_IN_TREE}{suffix}" not in names:
            pairs.append((f"{_IN_TREE}{suffix}", providers[0]))
    return Request(f"{PATH}?{urllib.parse.urlencode(pairs)}", request.microversion)


def _has(answer: Answer, candidate: Any) -> bool:
    if answer.status != _OK:
        return False
    body = answer.body()
    wanted = canonical(candidate)
    return isinstance(body, dict) and any(
        canonical(each) == wanted for each in body.get(_REQUESTS) or ())
