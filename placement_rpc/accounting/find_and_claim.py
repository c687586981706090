# SPDX-License-Identifier: Apache-2.0
"""Finding and claiming in one call: the service chooses the provider."""

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
from placement_rpc.candidates.search import CandidateSearch
from placement_rpc.context import RequestContext
from placement_rpc.db.queries import aggregates, allocations, providers
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.request import ResourceRequest

# Candidates that a call tries; each failed because another claim took it after the search.
_MAX_TRIES = 1000
# Candidates that a call passes over because another transaction has them locked.
_MAX_BLOCKED = 5


def claim_by_request(context: RequestContext, candidates: CandidateSearch,
                     group_commit: GroupCommit, request: Request, wanted: ResourceRequest,
                     claim: Claim) -> Outcome:
    """Claim the requested amounts from one of the providers that have room for them.

    The store decides each try: a candidate that was taken after the search is skipped.

    :param wanted: its limit is ignored; its order is not
    :param claim: without allocations
    :returns: an accepted outcome
    :raises NoCandidates: if no provider has room
    :raises StoreBusy: if other claims took every candidate that was tried
    :raises ServiceUnavailable: if the candidate index is not built in time
    """
    # A repeated request is answered before the search: by now there may be no room.
    done = stored_outcome(context.database, request)
    if done is not None:
        return Outcome(result=done, replayed=True)
    context.check_deadline()
    try:
        return _claim_first(context, candidates, group_commit, request, wanted, claim)
    except (exception.NotFound, exception.Conflict, exception.InvalidInput) as error:
        return Outcome(replayed=True, result=store_refusal(
            context.database, request, error, refused(claim, {}, error)))


def _claim_first(context, candidates, group_commit, request, wanted, claim):
    """Claim from the first provider that accepts."""
    blocked = 0
    with contextlib.closing(_providers(context, candidates, wanted, claim)) as uuids:
        for uuid in itertools.islice(uuids, _MAX_TRIES):
            outcome, = group_commit.settle([CandidateClaim(
                request, claim, context.deadline, {uuid: wanted.resources})])
            if outcome.error is None:
                return outcome
            if outcome.blocked and blocked < _MAX_BLOCKED:
                blocked += 1
                continue
            if outcome.replayed or not isinstance(
                    outcome.error, (exception.ClaimRefused, exception.ProviderNotFound)):
                raise outcome.error
        if blocked or next(uuids, None) is not None:
            raise exception.StoreBusy(method=request.method, attempts=_MAX_TRIES)
    raise exception.NoCandidates(resources=", ".join(
        f"{name}:{amount}" for name, amount in sorted(wanted.resources.items())))


def _providers(context, candidates, wanted, claim) -> Iterator[str]:
    """Yield uuids of providers to claim from, those that the consumer holds already last."""
    yield from candidates.offers(wanted, context.deadline)
    yield from _held_by(context, claim.consumer_uuid, wanted)


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
