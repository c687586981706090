# SPDX-License-Identifier: Apache-2.0
"""Finding and claiming in one call: the service chooses the provider."""

import random

from placement_rpc import exception
from placement_rpc.objects.claim import CandidateSettlement
from placement_rpc.objects.outcome import recall, remember_refusal
from placement_rpc.objects.resource_provider import ResourceProviderList
from placement_rpc.objects.settlement import Settled

# Candidates asked for at a time, and how often anew when all of them were taken meanwhile.
_CANDIDATES = 50
_ROUNDS = 3


def claim_by_request(context, group_commit, request, wanted, claim):
    """Claim what is asked for from one of the providers that have room for it.

    The candidates are tried in random order, so that schedulers which ask at the same time do
    not all take the same one. The store settles each try: a candidate that was taken meanwhile
    is passed over.

    :param group_commit: :class:`placement_rpc.objects.group_commit.GroupCommit`
    :param request: :class:`placement_rpc.objects.outcome.Request`
    :param wanted: :class:`placement_rpc.objects.request.ResourceRequest`
    :param claim: :class:`placement_rpc.objects.claim.Claim` without allocations
    :returns: :class:`placement_rpc.objects.settlement.Settled`, accepted
    :raises NoCandidates: when no provider has room
    """
    # A request that comes again is answered before the search: by now there may be no room.
    done = recall(context.database, request)
    if done is not None:
        return Settled(result=done, replayed=True)
    wanted.limit = min(wanted.value("limit") or _CANDIDATES, _CANDIDATES)
    for _ in range(_ROUNDS):
        candidates = list(ResourceProviderList.with_room(context, wanted).objects)
        random.shuffle(candidates)
        for candidate in candidates:
            settlement = CandidateSettlement(
                request, claim, context.deadline, {candidate.uuid: wanted.resources})
            settled, = group_commit.settle([settlement])
            if settled.error is None:
                return settled
            if settled.replayed or not isinstance(
                    settled.error, (exception.ClaimRefused, exception.NotFound)):
                raise settled.error
        if not candidates:
            break
    error = exception.NoCandidates(resources=", ".join(
        f"{name}:{amount}" for name, amount in sorted(wanted.resources.items())))
    remember_refusal(context.database, request, error)
    raise error
