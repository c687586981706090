# SPDX-License-Identifier: Apache-2.0
"""Finding and claiming in one call: the service chooses the provider, or the providers."""

import contextlib
import functools
import itertools
from collections.abc import Iterator

from placement_rpc import exception
from placement_rpc.accounting.batch import Outcome
from placement_rpc.accounting.claims import CandidateClaim
from placement_rpc.accounting.events import refused
from placement_rpc.accounting.group_commit import GroupCommit
from placement_rpc.accounting.idempotency import Request, store_refusal, stored_outcome
from placement_rpc.candidates import capacity
from placement_rpc.candidates.offers import Offer
from placement_rpc.candidates.reservations import Amounts
from placement_rpc.candidates.search import CandidateSearch
from placement_rpc.context import RequestContext
from placement_rpc.db.queries import aggregates, allocations, claims, providers
from placement_rpc.objects.candidates import CandidatesRequest
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.request import ResourceRequest

# Candidates that a call tries; each failed because another claim took it after the search.
_MAX_TRIES = 1000
# Candidates that a call passes over because another transaction has them locked.
_MAX_BLOCKED = 5


def claim_by_request(context: RequestContext, candidates: CandidateSearch,
                     group_commit: GroupCommit, request: Request,
                     wanted: ResourceRequest | CandidatesRequest, claim: Claim) -> Outcome:
    """Claim the requested amounts from a provider, or from a tree, that has room for them.

    The store decides each try: a candidate that was taken after the search is skipped.

    :param wanted: its limit is ignored; its order is not
    :param claim: without allocations
    :returns: an accepted outcome
    :raises NoCandidates: if no provider has room
    :raises StoreBusy: if other claims took every candidate that was tried, or keep some locked
    :raises ServiceUnavailable: if the candidate index is not built in time
    """
    # A repeated request is answered before the search: by now there may be no room.
    done = stored_outcome(context.database, request)
    if done is not None:
        return Outcome(result=done, replayed=True)
    context.check_deadline()
    try:
        return _claim_first(context, candidates, group_commit, request, wanted, claim)
    except exception.REFUSALS as error:
        return Outcome(replayed=True, result=store_refusal(
            context.database, request, error, refused(claim, {}, error)))


def _claim_first(context, candidates, group_commit, request, wanted, claim):
    """Claim from the first provider that accepts."""
    blocked = tried = 0
    with contextlib.closing(_offers(context, candidates, wanted, claim)) as offers:
        for offer in itertools.islice(offers, _MAX_TRIES):
            tried += 1
            outcome, = group_commit.settle([CandidateClaim(
                request, claim, context.deadline, offer)])
            if outcome.error is None:
                return outcome
            if outcome.blocked and blocked < _MAX_BLOCKED:
                blocked += 1
                continue
            if outcome.replayed or not isinstance(
                    outcome.error, (exception.ClaimRefused, exception.ProviderNotFound)):
                raise outcome.error
        if blocked or next(offers, None) is not None:
            raise exception.StoreBusy(method=request.method, attempts=tried)
    raise exception.NoCandidates(resources=wanted.text)


def _offers(context, candidates, wanted, claim) -> Iterator[Offer]:
    """Yield what to claim; last what has room only for what the consumer holds already."""
    yield from candidates.offers(wanted, context.deadline)
    if isinstance(wanted, CandidatesRequest):
        yield from candidates.offers(wanted, context.deadline, functools.partial(
            _amounts_held_by, context, claim.consumer_uuid))
        return
    for uuid in _held_by(context, claim.consumer_uuid, wanted):
        yield Offer({uuid: wanted.resources}, {})


def _amounts_held_by(context, consumer_uuid) -> Amounts:
    """Return what a consumer holds."""
    found: dict[int, dict[int, int]] = {}
    with context.database.reader() as tx:
        consumers = claims.consumer_ids(tx, [consumer_uuid])
        for row in claims.held(tx, list(consumers.values())):
            found.setdefault(row.resource_provider_id, {})[row.resource_class_id] = row.used
    return found


def _held_by(context, consumer_uuid, wanted) -> list[str]:
    """Return providers of which the consumer holds something: what it releases may be enough."""
    member_of = wanted.value("member_of") or ()
    not_member_of = wanted.value("not_member_of") or ()
    with context.database.reader() as tx:
        uuids = sorted({row.provider_uuid for row in allocations.of_consumer(tx, consumer_uuid)})
        if not member_of and not not_member_of:
            return uuids
        return [uuid for uuid in uuids if capacity.is_member(
            functools.partial(capacity.in_any, _aggregates_of(tx, uuid)), member_of,
            not_member_of)]


def _aggregates_of(tx, uuid):
    provider = providers.get(tx, uuid)
    return aggregates.of_provider(tx, provider.id) if provider else {}
