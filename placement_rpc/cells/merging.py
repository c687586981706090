# SPDX-License-Identifier: Apache-2.0
"""One answer made of the answers of several cells.

The answers have no ``position``, since each cell has positions of its own.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from placement_rpc.objects import codec
from placement_rpc.objects.candidates import AllocationCandidates
from placement_rpc.objects.headroom import Headroom
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.objects.resource_provider import ResourceProviderList
from placement_rpc.objects.usage import ProjectUsages

_T = TypeVar("_T")
_END = object()


def _in_turn(lists: Iterable[Sequence[_T]]) -> Iterator[_T]:
    """Yield the first item of each list, then the second of each."""
    for row in itertools.zip_longest(*lists, fillvalue=_END):
        yield from (each for each in row if each is not _END)  # type: ignore[misc]


def providers(found: Sequence[ResourceProviderList],
              wanted: ResourceRequest) -> ResourceProviderList:
    """Return the providers of all cells that fit a request, up to its limit.

    Each cell's are in the order of the request. With the order ``pack`` those of one cell come
    after those of another, and otherwise the cells take turns.
    """
    limit = wanted.value("limit")
    lists = [each.objects for each in found]
    merged = list(itertools.chain.from_iterable(lists) if wanted.value("order") == "pack"
                  else _in_turn(lists))
    more = any(each.value("more") for each in found) or len(merged[:limit]) < len(merged)
    return codec.stored(ResourceProviderList, objects=merged[:limit], more=more, position=None)


def candidates(found: Sequence[AllocationCandidates], limit: int | None) -> AllocationCandidates:
    """Return the allocations that a request could get in any cell; the cells take turns.

    :param limit: the most candidates; None for all that the cells answered
    """
    requests = list(_in_turn([each.allocation_requests for each in found]))
    kept = requests[:limit]
    summaries = {uuid: summary for each in found
                 for uuid, summary in each.provider_summaries.items()}
    if len(kept) < len(requests):
        summaries = _of_used_trees(kept, summaries)
    text = json.dumps({"allocation_requests": kept, "provider_summaries": summaries})
    return codec.stored(
        AllocationCandidates, body=[text], encoding=None, count=len(kept),
        is_cut=any(each.is_cut for each in found) or len(kept) < len(requests))


def _of_used_trees(requests, summaries):
    """Return the summaries of the providers whose trees candidates use.

    Before microversion 1.29 a summary does not name its root, and stays.
    """
    roots = {summaries[uuid].get("root_provider_uuid") for uuid in providers_of(requests)}
    return {uuid: summary for uuid, summary in summaries.items()
            if summary.get("root_provider_uuid") in {*roots, None}}


def providers_of(requests: Iterable[dict[str, Any]]) -> set[str]:
    """Return the uuids of the providers of candidates, at any microversion."""
    found: set[str] = set()
    for each in requests:
        allocations = each["allocations"]
        found.update(allocations if isinstance(allocations, dict) else (
            one["resource_provider"]["uuid"] for one in allocations))
    return found


def listed(found: list[Any], limit: int | None, more: bool) -> ResourceProviderList:
    """Return a list of providers, those of one cell after those of another.

    :param limit: the most providers; None for all
    """
    return codec.stored(ResourceProviderList, objects=found[:limit], more=more, position=None)


def headroom(found: Sequence[Headroom]) -> Headroom:
    """Return how many more requests fit in all cells."""
    parts = _sum(itertools.chain.from_iterable(each.parts for each in found))
    parts.sort(key=lambda part: (-part.get("count", 0), str(part)))
    return codec.stored(
        Headroom, count=sum(each.count for each in found),
        at_most=sum(each.at_most for each in found), by=found[0].by, position=None,
        limits=_sum(itertools.chain.from_iterable(each.limits for each in found)), parts=parts)


def _sum(rows):
    """Add the numbers of rows whose other values are equal; mappings are added by key."""
    sums: dict[str, dict[str, Any]] = {}
    for row in rows:
        key = json.dumps({name: value for name, value in row.items()
                          if not isinstance(value, (int, dict))}, sort_keys=True)
        if key not in sums:
            sums[key] = dict(row)
            continue
        for name, value in row.items():
            if isinstance(value, dict):
                sums[key][name] = _added(sums[key][name], value)
            elif isinstance(value, int):
                sums[key][name] += value
    return list(sums.values())


def usages(found: Sequence[ProjectUsages]) -> ProjectUsages:
    """Return what a project uses in all cells."""
    by_type: dict[str, dict[str, Any]] = {}
    for each in found:
        for name, part in each.by_type.items():
            whole = by_type.setdefault(name, {"usages": {}, "consumers": 0})
            whole["usages"] = _added(whole["usages"], part["usages"])
            whole["consumers"] += part["consumers"]
    total: dict[str, int] = {}
    for each in found:
        total = _added(total, each.usages)
    first = found[0]
    return codec.stored(
        ProjectUsages, project_id=first.project_id, user_id=first.value("user_id"),
        consumer_type=first.value("consumer_type"), usages=total, by_type=by_type)


def _added(one, other):
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}


def page(cls: Any, found: Sequence[Any], limit: int | None) -> Any:
    """Return a page of all cells, in the order of uuids.

    The objects of one consumer in several cells are on the same page, even if it then exceeds the
    limit, because the next page begins after their uuid.

    :param cls: the class of the pages
    :param limit: the most objects of different uuids
    """
    # Beyond the last one of a page that has others after it, that cell may have more.
    horizon = min((each.objects[-1].uuid for each in found if each.more), default=None)
    merged = sorted(itertools.chain.from_iterable(each.objects for each in found),
                    key=lambda each: each.uuid)
    complete = [each for each in merged if horizon is None or each.uuid <= horizon]
    uuids = sorted({each.uuid for each in complete})[:limit]
    last = uuids[-1] if uuids else None
    kept = [each for each in complete if each.uuid <= last]
    return codec.stored(cls, objects=kept,
                        more=horizon is not None or len(kept) < len(merged))


def names(cls: Any, found: Sequence[Any], limit: int | None) -> Any:
    """Return a list of what has names, each once, in alphabetical order.

    :param found: lists of all cells, each complete up to the limit
    """
    merged = {each.name: each for one in found for each in one}
    return codec.stored(cls, objects=[merged[name] for name in sorted(merged)][:limit])
