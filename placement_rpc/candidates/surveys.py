# SPDX-License-Identifier: Apache-2.0
"""Surveys of the whole fleet: how many more requests fit, and which rules fail where.

Each function waits for the index of the process until the deadline of the call, in seconds since
the epoch. What it needs is copied from the index, and the rest is done without its lock.
"""

from placement_rpc.candidates import funnel, headroom, taking, tree_explanation, tree_views
from placement_rpc.candidates.group_queries import flat_query_of, groups_query_of
from placement_rpc.candidates.live_index import LiveIndex
from placement_rpc.candidates.search import id_of
from placement_rpc.objects.candidates import CandidatesRequest
from placement_rpc.objects.explanation import ExplanationList
from placement_rpc.objects.headroom import Headroom
from placement_rpc.objects.request import ResourceRequest

# Processor time for trees whose groups compete for providers; those left are answered in bounds.
_COUNTING_SECONDS = 2.0


def headroom_of(live: LiveIndex, request: ResourceRequest | CandidatesRequest,
                by: str | None = None, deadline: float | None = None) -> Headroom:
    """Return how many more such requests fit.

    :param by: one of :data:`placement_rpc.objects.headroom.BY`, or None
    :raises ResourceClassNotFound: if a class does not exist
    :raises TraitNotFound: if a trait does not exist
    :raises RequestTooComplex: if the request concerns too many inventories
    :raises ServiceUnavailable: if the index is not built in time
    :raises StoreUnavailable: if the store cannot be read
    """
    query = _query_of(request)
    with live.current(deadline) as index:
        taken, position = taking.take(index, query, by), index.position
    found = headroom.headroom(taken, by, _COUNTING_SECONDS)
    found.position = position
    if isinstance(request, ResourceRequest):
        for each in (*found.limits, *found.parts):
            if "groups" in each:
                each["groups"] = [""]
    return found


def explained_trees(live: LiveIndex, request: CandidatesRequest, marker: str | None = None,
                    limit: int | None = None, deadline: float | None = None,
                    ) -> ExplanationList:
    """Explain for each tree, in the order of the ids of the roots, what a request fails there.

    :param marker: uuid of the root after which to begin
    :param limit: the maximum number of trees; None for all
    :raises ResourceClassNotFound: if a class does not exist
    :raises TraitNotFound: if a trait does not exist
    :raises ProviderNotFound: if there is no provider of the marker's uuid
    :raises ServiceUnavailable: if the index is not built in time
    :raises StoreUnavailable: if the store cannot be read
    """
    query = groups_query_of(request, None)
    with live.current(deadline) as index:
        views = tree_views.views_of(
            index, query, id_of(index, marker) if marker else 0, limit)
        position = index.position
    found = tree_explanation.explain(query, views)
    found.position = position
    return found


def funnel_of(live: LiveIndex, request: ResourceRequest | CandidatesRequest,
              deadline: float | None = None) -> list[dict]:
    """Return how many providers and trees of the fleet each rule of a request leaves.

    :returns: list of dicts, see :class:`placement_rpc.objects.explanation.ExplanationList`
    :raises ResourceClassNotFound: if a class does not exist
    :raises TraitNotFound: if a trait does not exist
    :raises RequestTooComplex: if the request concerns too many inventories
    :raises ServiceUnavailable: if the index is not built in time
    :raises StoreUnavailable: if the store cannot be read
    """
    query = _query_of(request)
    with live.current(deadline) as index:
        found = funnel.funnel(index, query)
    steps = found.finished(_COUNTING_SECONDS)
    if isinstance(request, ResourceRequest):
        for step in steps:
            step["group"] = None
    return steps


def _query_of(request):
    if isinstance(request, ResourceRequest):
        return flat_query_of(request)
    return groups_query_of(request, None)
