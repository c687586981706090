# SPDX-License-Identifier: Apache-2.0
"""The client's calls about allocations: claims, usages, and who has room."""

from collections.abc import Sequence
from typing import Any

from oslo_context.context import RequestContext

from placement_rpc import exception
from placement_rpc.client.base import list_of
from placement_rpc.objects.allocation import AllocationList
from placement_rpc.objects.base import instance_of
from placement_rpc.objects.candidates import AllocationCandidates, CandidatesRequest
from placement_rpc.objects.claim import CONSUMER_TAGS, Claim, ClaimList, ClaimResult
from placement_rpc.objects.fields import Uuid, WholeNumber
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.objects.resource_provider import ResourceProviderList
from placement_rpc.objects.usage import ProjectUsages, UsageList
from placement_rpc.rpc.client import Client, own_context

_GENERATION = WholeNumber(maximum=2 ** 63 - 1)


class AllocationCalls(Client):

    def claim_allocations(self, context: RequestContext | None, claim: Claim,
                          request_id: str | None = None, timeout: float | None = None,
                          cast: bool = False) -> ClaimResult | str:
        """Replace the allocations of a consumer by those of the claim.

        A cast returns as soon as the broker has confirmed that the request is in a durable queue,
        from which it is settled even if every process of the service is killed meanwhile. Casts
        are settled in the order in which they were sent. ``allocation.create``,
        ``allocation.update`` or ``allocation.claim.refused`` reports the outcome with the
        request's id, and so does :meth:`get_request_result`. A cast under the id of another
        request goes to the dead letters: the outcome of that id is the other one's. ``timeout``
        covers the sending only, and the errors below are raised by calls.

        :param claim: its project and user default to the context's
        :returns: the result; of a cast, the request's id
        :raises CapacityExceeded: if a provider has too little left
        :raises ConstraintsViolated: if an amount breaks min_unit, max_unit or step_size
        :raises ConsumerConflict: if the consumer is at another generation
        :raises PreconditionFailed: if the consumer has none of the claim's tags
        :raises ProviderNotFound: if there is no such provider
        :raises ResourceClassNotFound: if there is no such class
        :raises RequestIdReused: if another request had the id
        """
        context = own_context(context)
        claim = with_owner(context, claim)
        if not cast:
            return self._change(context, "claim_allocations", request_id, timeout, claim=claim)
        # Checked here, since nothing could be reported to the caller later.
        claim.check(max_resources=float("inf"))
        return self._cast(context, "claim_allocations", request_id, timeout, claim=claim)

    def claim_batch(self, context: RequestContext | None, claims: Sequence[Claim],
                    request_id: str | None = None, timeout: float | None = None,
                    ) -> list[ClaimResult | exception.PlacementException]:
        """Make many claims in one call, each accepted or refused on its own.

        :returns: list in the same order: a result for each accepted claim, and the error for each
            refused one; the error RequestIdReused for all if another request had the id before
        :raises BatchTooLarge: if there are more than the service takes in one call
        """
        context = own_context(context)
        answer = self._change(
            context, "claim_batch", request_id, timeout,
            claims=ClaimList(objects=[
                with_owner(context, claim) for claim in list_of(Claim, "claims", claims)]))
        return [each.exception() or each for each in answer.objects]

    def set_allocations(self, context: RequestContext | None, claims: Sequence[Claim],
                        request_id: str | None = None, timeout: float | None = None,
                        ) -> list[ClaimResult]:
        """Replace the allocations of many consumers in one transaction: of all or of none.

        What one of them releases another can have. A claim whose ``allocations`` are empty
        releases everything that its consumer holds. The generation of a provider rises by one.

        :param claims: of different consumers; their project and user default to the context's
        :returns: list in the same order
        :raises InvalidInput: if two claims are of one consumer
        :raises BatchTooLarge: if there are more than the service takes in one call

        It also raises what :meth:`claim_allocations` raises.
        """
        context = own_context(context)
        given = [with_owner(context, claim) for claim in list_of(Claim, "claims", claims)]
        answer = self._change(
            context, "set_allocations", request_id, timeout, claims=ClaimList(objects=given))
        results = {each.consumer_uuid: each for each in answer.objects}
        return [results[claim.consumer_uuid] for claim in given]

    def claim_by_request(self, context: RequestContext | None,
                         wanted: ResourceRequest | CandidatesRequest,
                         claim: Claim, request_id: str | None = None,
                         timeout: float | None = None) -> ClaimResult:
        """Find a provider, or a tree of providers, with room and claim from it, in one call.

        :param wanted: a request for one provider, or one with groups; its limit is ignored
        :param claim: without allocations
        :returns: the result, whose ``generations`` name the providers; of a request with groups a
            :class:`placement_rpc.objects.candidates.CandidateClaimResult`, with the
            ``allocations`` that were made and their ``mappings``
        :raises NoCandidates: if no provider has room
        :raises ResourceClassNotFound: if there is no such class
        :raises TraitNotFound: if there is no such trait
        :raises ServiceTooOld: if a request has groups, and a service is older than contract 1.3
        :raises ConsumerConflict: if the consumer is at another generation
        """
        context = own_context(context)
        return self._change(context, "claim_by_request", request_id, timeout, wanted=wanted,
                            claim=with_owner(context, claim))

    def release_allocations(self, context: RequestContext | None, consumer_uuid: str,
                            consumer_generation: int | None = None,
                            request_id: str | None = None, timeout: float | None = None,
                            cast: bool = False,
                            consumer_tags: Sequence[str] | None = None) -> ClaimResult | str:
        """Release everything that a consumer holds.

        :param cast: as of :meth:`claim_allocations`
        :param consumer_tags: entity tags, of which the consumer must have one, or ``*`` for any
            consumer that has allocations; None to accept any
        :returns: the result; of a cast, the request's id
        :raises ConsumerNotFound: if the consumer holds nothing
        :raises ConsumerConflict: if the consumer is at another generation
        :raises PreconditionFailed: if the consumer has none of the tags
        """
        more: dict[str, Any] = {} if consumer_tags is None else {
            "consumer_tags": CONSUMER_TAGS.coerce(None, "consumer_tags", consumer_tags)}
        if not cast:
            return self._change(context, "release_allocations", request_id, timeout,
                                consumer_uuid=consumer_uuid,
                                consumer_generation=consumer_generation, **more)
        # Checked here, since nothing could be reported to the caller later.
        return self._cast(
            context, "release_allocations", request_id, timeout,
            consumer_uuid=Uuid().coerce(None, "consumer_uuid", consumer_uuid),
            consumer_generation=None if consumer_generation is None else _GENERATION.coerce(
                None, "consumer_generation", consumer_generation), **more)

    def move_allocations(self, context: RequestContext | None, source_uuid: str,
                         target_uuid: str, consumer_generation: int | None = None,
                         request_id: str | None = None,
                         timeout: float | None = None) -> ClaimResult:
        """Move everything that one consumer holds to another that holds nothing.

        :param consumer_generation: the source's, as the caller read it; None to accept any
        :returns: the result of the target
        :raises ConsumerNotFound: if the source holds nothing
        :raises ConsumerConflict: if the target holds something, or the source is at another
            generation
        """
        return self._change(context, "move_allocations", request_id, timeout,
                            source_uuid=source_uuid, target_uuid=target_uuid,
                            consumer_generation=consumer_generation)

    def get_allocations(self, context: RequestContext | None, consumer_uuid: str,
                        timeout: float | None = None) -> AllocationList:
        """Return the allocations of a consumer; an unknown one has none."""
        return self._call(context, "get_allocations", timeout, consumer_uuid=consumer_uuid)

    def get_provider_allocations(self, context: RequestContext | None, provider_uuid: str,
                                 timeout: float | None = None) -> AllocationList:
        """Return the allocations of all consumers from a provider.

        :raises ProviderNotFound: if there is no such provider
        """
        return self._call(context, "get_provider_allocations", timeout,
                          provider_uuid=provider_uuid)

    def get_usages(self, context: RequestContext | None, provider_uuid: str,
                   timeout: float | None = None) -> UsageList:
        """Return how much of each inventory of a provider is used.

        :raises ProviderNotFound: if there is no such provider
        """
        return self._call(context, "get_usages", timeout, provider_uuid=provider_uuid)

    def get_project_usages(self, context: RequestContext | None, project_id: str,
                           user_id: str | None = None, timeout: float | None = None,
                           consumer_type: str | None = None) -> ProjectUsages:
        """Return how much of each class a project uses; an unknown project uses nothing.

        :param user_id: only what this user uses; None for all users
        :param consumer_type: only what consumers of this type use, or for ``unknown`` those
            without one; None for all types
        """
        return self._call(context, "get_project_usages", timeout, project_id=project_id,
                          user_id=user_id, consumer_type=consumer_type)

    def get_by_request(self, context: RequestContext | None, wanted: ResourceRequest,
                       timeout: float | None = None) -> ResourceProviderList:
        """Return the providers that have room for a request.

        A service returns ``[candidates] max_found`` providers at most, even if the limit of the
        request is higher. ``more`` of the list is whether other providers fit, too; it is not set
        by a service before contract 1.3, which returns all.

        :raises ResourceClassNotFound: if there is no such class
        """
        return self._call(context, "get_by_request", timeout, wanted=wanted)

    def get_allocation_candidates(self, context: RequestContext | None,
                                  wanted: CandidatesRequest, microversion: str = "1.39",
                                  timeout: float | None = None) -> AllocationCandidates:
        """Return the allocations that a request with groups could get.

        The answer is JSON as ``GET /allocation_candidates`` answers it at a microversion; it is
        decoded when its ``allocation_requests`` or ``provider_summaries`` are read. A service
        returns ``[placement] max_allocation_candidates`` at most.

        :param microversion: of the HTTP API, between 1.10 and 1.39; below 1.29 no candidate has
            two providers of one tree
        :raises ResourceClassNotFound: if there is no such class
        :raises TraitNotFound: if there is no such trait
        """
        return self._call(context, "get_allocation_candidates", timeout, wanted=wanted,
                          microversion=microversion, deflate=self._is_remote)


def with_owner(context, claim: Claim) -> Claim:
    """Return the claim with a project and a user: its own, or the context's."""
    instance_of(Claim, "claim", claim)
    for name in ("project_id", "user_id"):
        if not claim.obj_attr_is_set(name) and getattr(context, name):
            claim = claim.obj_clone()
            setattr(claim, name, getattr(context, name))
    return claim
