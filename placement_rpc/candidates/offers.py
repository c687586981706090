# SPDX-License-Identifier: Apache-2.0
"""Candidates for claims: one after the other is offered, and reserved while it is tried."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from placement_rpc.candidates import matching
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.query import query_of
from placement_rpc.candidates.reservations import Amounts
from placement_rpc.objects.request import ResourceRequest


@dataclasses.dataclass(frozen=True, slots=True)
class Offer:
    """What a claim can try to get.

    :param allocations: provider uuid to a mapping of class name to amount
    :param reserved: the same amounts by provider id and class id
    :param mappings: suffix of each group to the uuids of its providers; None for a request without
        groups
    """

    allocations: Mapping[str, Mapping[str, int]]
    reserved: Amounts
    mappings: Mapping[str, list[str]] | None = None


def flat_offer(index: CandidateIndex, request: ResourceRequest, class_ids: Mapping[str, int],
               random: np.random.Generator, reserved: Amounts) -> Offer | None:
    """Return the first provider that fits a request; None if there is none.

    :param class_ids: the requested classes
    :param reserved: what other claims are about to take
    """
    query = query_of(request, dict(class_ids))
    query.limit = 1
    # Not every reservation becomes a claim: a provider that is fully reserved may have room.
    found = matching.find(index, query, random, reserved) or matching.find(index, query, random)
    if not found:
        return None
    return Offer({found[0].uuid: request.resources}, {found[0].id: query.amounts})
