# SPDX-License-Identifier: Apache-2.0
"""Requests with groups as queries of the search, and what bounds the search."""

import dataclasses
from typing import Self

from oslo_config import cfg

from placement_rpc.candidates.query import Group, GroupsQuery
from placement_rpc.conf import placement
from placement_rpc.objects.candidates import CandidateGroup, CandidatesRequest
from placement_rpc.objects.request import ResourceRequest

# The first minor microversion whose candidates may have several providers of one tree.
_NESTED = 29
# The group of a request without groups. A group with a suffix is served by one provider.
_FLAT = "1"


@dataclasses.dataclass(frozen=True, slots=True)
class Bounds:
    """What bounds a search for candidates with groups, by the options ``[placement]``.

    :param maximum: of candidates; None for none
    :param strategy: in which order trees contribute, one of the option's
    :param is_sample: whether a limit takes a random sample of all candidates
    """

    maximum: int | None = None
    strategy: str = placement.BREADTH_FIRST
    is_sample: bool = False

    @classmethod
    def of(cls, conf: cfg.ConfigOpts) -> Self:
        """Return the bounds that are configured."""
        options = conf.placement
        return cls(placement.max_candidates(conf),
                   options.allocation_candidates_generation_strategy,
                   options.randomize_allocation_candidates)


def groups_query_of(request: CandidatesRequest, limit: int | None,
                    minor: int = _NESTED) -> GroupsQuery:
    """Return the query of a request.

    :param limit: the maximum number of candidates, in place of the request's; None for none
    :param minor: the minor microversion of the answer
    """
    return GroupsQuery(
        [_group(each) for each in request.groups], request.value("group_policy"),
        request.value("same_subtree", []), request.value("root_required", []),
        request.value("root_forbidden", []), limit, minor >= _NESTED)


def flat_query_of(request: ResourceRequest) -> GroupsQuery:
    """Return the query of a request that one provider has to meet."""
    return GroupsQuery([Group(
        _FLAT, request.resources, member_of=request.value("member_of") or (),
        not_member_of=request.value("not_member_of") or ())])


def _group(group: CandidateGroup) -> Group:
    return Group(
        group.name, group.value("resources", {}), group.value("required", []),
        group.value("forbidden", []), group.value("member_of", []),
        group.value("not_member_of", []), group.value("in_tree"))
