# SPDX-License-Identifier: Apache-2.0
"""Finding and claiming in one call: the service chooses the provider."""

import random

from placement_rpc import exception
from placement_rpc.db.queries import aggregates, allocations, providers
from placement_rpc.objects.allocation_events import refused
from placement_rpc.objects.claim import CandidateSettlement
from placement_rpc.objects.outcome import recall, refuse
from placement_rpc.objects.resource_provider import ResourceProviderList
from placement_rpc.objects.settlement import Settled

# Candidates asked for at a time, and how often anew when all of them were taken meanwhile.
_CANDIDATES = 50
_ROUNDS = 20


def claim_by_request(context, group_commit, request, wanted, claim):
    """Claim what is asked for from one of the providers that have room for it.

    The candidates are tried in random order, so that schedulers which ask at the same time do
    not all take the same one. The store settles each try: a candidate that was taken meanwhile
    is passed over. A limit in the request is of no use here and is not heeded.

    :param group_commit: :class:`placement_rpc.objects.group_commit.GroupCommit`
    :param request: :class:`placement_rpc.objects.outcome.Request`
    :param wanted: :class:`placement_rpc.objects.request.ResourceRequest`
    :param claim: :class:`placement_rpc.objects.claim.Claim` without allocations
    :returns: :class:`placement_rpc.objects.settlement.Settled`, accepted
    :raises NoCandidates: when no provider has room
    :raises StoreBusy: when there was room each time, and each time it was taken by others
    """
    # A request that comes again is answered before the search: by now there may be no room.
    done = recall(context.database, request)
    if done is not None:
        return Settled(result=done, replayed=True)
    context.check_deadline()
    wanted.limit = _CANDIDATES
    own = _held_by(context, claim.consumer_uuid, wanted.value("member_of") or ())
    try:
        for _ in range(_ROUNDS):
            found = [each.uuid for each in ResourceProviderList.with_room(context, wanted).objects]
            random.shuffle(found)
            settled = _try(context, group_commit, request, wanted, claim, [*found, *own])
            if settled is not None:
                return settled
            if not found:
                raise exception.NoCandidates(resources=", ".join(
                    f"{name}:{amount}" for name, amount in sorted(wanted.resources.items())))
            own = []
    except (exception.NotFound, exception.Conflict, exception.InvalidInput) as error:
        return Settled(replayed=True, result=refuse(
            context.database, request, error, refused(claim, {}, error)))
    raise exception.StoreBusy(method=request.method, attempts=_ROUNDS)


def _try(context, group_commit, request, wanted, claim, uuids):
    """:returns: what the first provider that grants the claim settled; None when none does"""
    for uuid in uuids:
        settled, = group_commit.settle([CandidateSettlement(
            request, claim, context.deadline, {uuid: wanted.resources})])
        if settled.error is None:
            return settled
        if settled.replayed or not isinstance(
                settled.error, (exception.ClaimRefused, exception.ProviderNotFound)):
            raise settled.error
    return None


def _held_by(context, consumer_uuid, member_of):
    """Providers of which the consumer holds something: what it gives back may be room enough.

    :param member_of: list of lists of aggregate uuids, as in the request
    :returns: list of uuids
    """
    with context.database.reader() as tx:
        uuids = sorted({row.provider_uuid for row in allocations.of_consumer(tx, consumer_uuid)})
        if not member_of:
            return uuids
        return [uuid for uuid in uuids if _is_member(tx, uuid, member_of)]


def _is_member(tx, uuid, member_of):
    provider = providers.get(tx, uuid)
    inside = aggregates.of_provider(tx, provider.id) if provider else {}
    return all(any(each in inside for each in uuids) for uuids in member_of)
