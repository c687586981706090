# SPDX-License-Identifier: Apache-2.0
"""Finding and claiming in one call: the service chooses the provider."""

import contextlib
import itertools

from placement_rpc import exception
from placement_rpc.accounting.batch import Outcome
from placement_rpc.accounting.claims import CandidateClaim
from placement_rpc.accounting.events import refused
from placement_rpc.accounting.idempotency import store_refusal, stored_outcome
from placement_rpc.db.queries import aggregates, allocations, providers

# Each was taken by somebody else between the look and the claim.
_MOST_TRIES = 1000


def claim_by_request(context, candidates, group_commit, request, wanted, claim):
    """Claim what is asked for from one of the providers that have room for it.

    The store settles each try: a candidate that was taken meanwhile is passed over. A limit in
    the request is of no use here and is not heeded; its order is.

    :param candidates: of :mod:`placement_rpc.candidates.search`
    :param group_commit: :class:`placement_rpc.accounting.group_commit.GroupCommit`
    :param request: :class:`placement_rpc.accounting.idempotency.Request`
    :param wanted: :class:`placement_rpc.objects.request.ResourceRequest`
    :param claim: :class:`placement_rpc.objects.claim.Claim` without allocations
    :returns: :class:`placement_rpc.accounting.batch.Outcome`, accepted
    :raises NoCandidates: when no provider has room
    :raises StoreBusy: when there was room each time, and each time it was taken by others
    """
    # A request that comes again is answered before the search: by now there may be no room.
    done = stored_outcome(context.database, request)
    if done is not None:
        return Outcome(result=done, replayed=True)
    context.check_deadline()
    try:
        with contextlib.closing(_places(context, candidates, wanted, claim)) as places:
            for uuid in itertools.islice(places, _MOST_TRIES):
                settled, = group_commit.settle([CandidateClaim(
                    request, claim, context.deadline, {uuid: wanted.resources})])
                if settled.error is None:
                    return settled
                if settled.replayed or not isinstance(
                        settled.error, (exception.ClaimRefused, exception.ProviderNotFound)):
                    raise settled.error
            if next(places, None) is not None:
                raise exception.StoreBusy(method=request.method, attempts=_MOST_TRIES)
        raise exception.NoCandidates(resources=", ".join(
            f"{name}:{amount}" for name, amount in sorted(wanted.resources.items())))
    except (exception.NotFound, exception.Conflict, exception.InvalidInput) as error:
        return Outcome(replayed=True, result=store_refusal(
            context.database, request, error, refused(claim, {}, error)))


def _places(context, candidates, wanted, claim):
    """Providers to claim from; at last those that have room with what the consumer gives back.

    :returns: generator of uuids
    """
    yield from candidates.offers(wanted)
    yield from _held_by(context, claim.consumer_uuid, wanted)


def _held_by(context, consumer_uuid, wanted):
    """Providers of which the consumer holds something: what it gives back may be room enough.

    :returns: list of uuids
    """
    member_of, barred = wanted.value("member_of") or (), wanted.value("not_member_of") or ()
    with context.database.reader() as tx:
        uuids = sorted({row.provider_uuid for row in allocations.of_consumer(tx, consumer_uuid)})
        if not member_of and not barred:
            return uuids
        return [uuid for uuid in uuids if _may_be(tx, uuid, member_of, barred)]


def _may_be(tx, uuid, member_of, barred):
    provider = providers.get(tx, uuid)
    inside = aggregates.of_provider(tx, provider.id) if provider else {}
    return all(any(each in inside for each in uuids) for uuids in member_of) and not any(
        each in inside for each in barred)
