# SPDX-License-Identifier: Apache-2.0
"""The server's end of the calls about allocations: claims, usages, and who has room."""

from placement_rpc import exception
from placement_rpc.accounting import (
    batch,
    find_and_claim,
    reads,
)
from placement_rpc.accounting.claims import (
    ClaimChange,
    ClaimSetChange,
    MoveChange,
    ReleaseChange,
    forms_of_claim,
    request_of_claim,
)
from placement_rpc.accounting.idempotency import Request, check_id
from placement_rpc.context import RequestContext
from placement_rpc.endpoints.base import ManagerBase
from placement_rpc.objects import fields, request
from placement_rpc.objects.allocation import AllocationList
from placement_rpc.objects.base import instance_of
from placement_rpc.objects.candidates import AllocationCandidates, CandidatesRequest
from placement_rpc.objects.claim import (
    CONSUMER_TAGS,
    Claim,
    ClaimList,
    ClaimResult,
    ClaimResultList,
)
from placement_rpc.objects.resource_provider import ResourceProviderList
from placement_rpc.objects.usage import ProjectUsages, UsageList
from placement_rpc.rpc.endpoint import (
    as_bool,
    as_generation,
    as_uuid,
    exposed,
    optional,
    require_fields,
)

# The microversions of the HTTP API that have candidates, and their minor numbers.
_FIRST_MINOR, _LAST_MINOR = 10, 39
_MINORS = {f"1.{minor}": minor for minor in range(_FIRST_MINOR, _LAST_MINOR + 1)}


class AllocationEndpoint(ManagerBase):

    @exposed
    def claim_allocations(self, context: RequestContext, claim: Claim,
                          request_id: str) -> ClaimChange:
        instance_of(Claim, "claim", claim).check(self.conf.claims.max_resources)
        self._check_type(claim)
        return ClaimChange(request_of_claim(request_id, claim), claim, context.deadline)

    @exposed
    def claim_batch(self, context: RequestContext, claims: ClaimList,
                    request_id: str) -> ClaimResultList:
        wanted = require_fields(instance_of(ClaimList, "claims", claims), "objects").objects
        self._check_claims(wanted, "batch")
        forms = [forms_of_claim(claim) for claim in wanted]
        asked = Request.of(request_id, "claim_batch", {"claims": [form for form, _ in forms]},
                           {"claims": [whole for _, whole in forms]})
        changes = [
            ClaimChange(asked.part(number, {"claim": form}, {"claim": whole}), claim,
                        context.deadline)
            for number, (claim, (form, whole)) in enumerate(zip(wanted, forms, strict=True))]
        try:
            # Only the first entry has the id of the call, and each is settled by its own id alone.
            if changes:
                check_id(self.database, changes[0].request)
        except exception.RequestIdReused as error:
            outcomes = batch.not_settled(error, changes)
        else:
            outcomes = self.group_commit.settle(changes)
        return ClaimResultList(objects=_batch_results(outcomes))

    @exposed
    def set_allocations(self, context: RequestContext, claims: ClaimList,
                        request_id: str) -> ClaimSetChange:
        wanted = self.claims_of_set(claims)
        forms = [forms_of_claim(claim) for claim in wanted]
        asked = Request.of(request_id, "set_allocations", {"claims": [form for form, _ in forms]},
                           {"claims": [whole for _, whole in forms]})
        return ClaimSetChange(asked, wanted, context.deadline)

    def claims_of_set(self, claims: ClaimList) -> list[Claim]:
        """Return the claims of a set, in the order of the uuids of their consumers.

        :raises InvalidInput: if one is not complete, or two are of one consumer
        :raises BatchTooLarge: if there are more claims or amounts than are taken in one call
        :raises UpgradeInProgress: if one names a type, and a live service does not know types
        """
        wanted = require_fields(instance_of(ClaimList, "claims", claims), "objects").objects
        self._check_claims(wanted, "set of claims", may_be_empty=True)
        found = {claim.consumer_uuid: claim for claim in wanted}
        if not found:
            raise exception.InvalidInput(what="claims", reason="there are none")
        if len(found) < len(wanted):
            raise exception.InvalidInput(what="claims", reason="two are of one consumer")
        return [claim for _, claim in sorted(found.items())]

    def _check_claims(self, claims, what, may_be_empty=False):
        """Check the number of claims, and each of them."""
        limit = self.conf.claims.max_batch
        if len(claims) > limit:
            raise exception.BatchTooLarge(what=what, limit=limit, size=len(claims))
        for number, claim in enumerate(claims):
            try:
                claim.check(self.conf.claims.max_resources, may_be_empty)
            except exception.InvalidInput as error:
                raise exception.InvalidInput(
                    what=f"claims[{number}]", reason=error.text) from None
            self._check_type(claim)

    def _check_type(self, claim):
        """Check that all services know the type of a consumer, if the claim names one.

        :raises UpgradeInProgress: if one of them would not answer it, or would lose it
        """
        if claim.value("consumer_type"):
            self.check_everywhere("the type of a consumer", "1.3")

    @exposed
    def release_allocations(self, context: RequestContext, consumer_uuid: str, request_id: str,
                            consumer_generation: int | None = None,
                            consumer_tags: list[str] | None = None) -> ReleaseChange:
        uuid = as_uuid("consumer_uuid", consumer_uuid)
        generation = as_generation(consumer_generation)
        consumer_tags = optional(CONSUMER_TAGS, "consumer_tags", consumer_tags)
        asked = Request.of(request_id, "release_allocations", {"uuid": uuid, "at": None},
                           {"at": generation})
        return ReleaseChange(asked, uuid, generation, context.deadline, consumer_tags)

    @exposed
    def move_allocations(self, context: RequestContext, source_uuid: str, target_uuid: str,
                         request_id: str, consumer_generation: int | None = None) -> ClaimResult:
        source, target = as_uuid("source_uuid", source_uuid), as_uuid("target_uuid", target_uuid)
        generation = as_generation(consumer_generation)
        asked = Request.of(request_id, "move_allocations", {
            "source": source, "target": target, "at": None}, {"at": generation})
        return self.settle_claim(MoveChange(asked, source, target, generation, context.deadline))

    @exposed
    def claim_by_request(self, context: RequestContext,
                         wanted: request.ResourceRequest | CandidatesRequest,
                         claim: Claim, request_id: str) -> ClaimResult:
        instance_of(Claim, "claim", claim).check_owner()
        chosen = ["allocations"]
        if isinstance(wanted, CandidatesRequest):
            require_fields(wanted, "groups").check_claimable(self.conf.claims.max_resources)
            chosen.append("mappings")
        else:
            require_fields(instance_of(request.ResourceRequest, "wanted", wanted), "resources")
        for name in chosen:
            if claim.value(name):
                raise exception.InvalidInput(
                    what=name, reason="claim_by_request chooses the provider itself")
        self._check_type(claim)
        form, whole = forms_of_claim(claim)
        asked = Request.of(request_id, "claim_by_request", {"wanted": wanted, "claim": form},
                           {"claim": whole})
        outcome = find_and_claim.claim_by_request(
            context, self.candidates, self.group_commit, asked, wanted, claim)
        return type(outcome.result).of_settled(outcome)

    @exposed
    def get_allocations(self, context: RequestContext, consumer_uuid: str) -> AllocationList:
        return reads.consumer_allocations(
            self.database, as_uuid("consumer_uuid", consumer_uuid))

    @exposed
    def get_provider_allocations(self, context: RequestContext,
                                 provider_uuid: str) -> AllocationList:
        return reads.provider_allocations(
            self.database, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def get_usages(self, context: RequestContext, provider_uuid: str) -> UsageList:
        return reads.usages(self.database, as_uuid("provider_uuid", provider_uuid))

    @exposed
    def get_project_usages(self, context: RequestContext, project_id: str,
                           user_id: str | None = None,
                           consumer_type: str | None = None) -> ProjectUsages:
        text = fields.Text(255)
        return self.project_usages.of_project(
            text.coerce(None, "project_id", project_id),
            optional(text, "user_id", user_id), optional(text, "consumer_type", consumer_type))

    @exposed
    def get_by_request(self, context: RequestContext,
                       wanted: request.ResourceRequest) -> ResourceProviderList:
        require_fields(instance_of(request.ResourceRequest, "wanted", wanted), "resources")
        most = self.conf.candidates.max_found
        limit = min(wanted.value("limit") or most, most)
        # One more than is returned, to see whether there are more.
        found, position = self.candidates.find(wanted, context.deadline, limit + 1)
        return ResourceProviderList.of_candidates(found[:limit], len(found) > limit, position)

    @exposed
    def get_allocation_candidates(self, context: RequestContext, wanted: CandidatesRequest,
                                  microversion: str = "1.39",
                                  deflate: bool = False) -> AllocationCandidates:
        require_fields(instance_of(CandidatesRequest, "wanted", wanted), "groups").check()
        minor, deflated = _minor_of(microversion), bool(as_bool("deflate", deflate))
        found = self.candidates.candidates(wanted, minor, context.deadline)
        if found.is_cut:
            self.cut_answers.count(
                self.conf.placement.max_allocation_candidates, wanted.text)
        return AllocationCandidates.of(
            found.parts, deflated, position=found.position, is_cut=found.is_cut, count=found.count)


def _minor_of(microversion):
    """Return the minor number of a microversion that has candidates."""
    if not isinstance(microversion, str) or microversion not in _MINORS:
        raise exception.InvalidInput(
            what="microversion", reason=f"it is not between 1.{_FIRST_MINOR} and 1.{_LAST_MINOR}")
    return _MINORS[microversion]


def _batch_results(outcomes):
    """Return the results of the claims of a batch.

    :raises PlacementException: if the outcome of one of them is unknown: the client repeats the
        whole call under the same id
    """
    errors = [each.error for each in outcomes if each.error is not None]
    unknown = next((error for error in errors if not _is_refusal(error)), None)
    if unknown is None:
        return [_batch_result(each) for each in outcomes]
    if isinstance(unknown, (exception.StoreBusy, exception.StoreHeld)) and not all(
            type(each.error) is type(unknown) for each in outcomes):
        # These say that nothing was changed, and others of the claims are settled.
        raise exception.unknown_outcome(unknown) from unknown
    raise unknown


def _is_refusal(error):
    return isinstance(error, exception.PlacementException) and not error.retryable


def _batch_result(outcome):
    error = outcome.error
    if error is None:
        return ClaimResult.of_settled(outcome)
    return ClaimResult(replayed=outcome.replayed, error={
        "code": error.code, "kwargs": error.kwargs})
