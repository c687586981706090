# SPDX-License-Identifier: Apache-2.0
"""Claims, sets of claims, releases and moves as requests of a batch."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from placement_rpc import exception
from placement_rpc.accounting import events
from placement_rpc.accounting.batch import PendingRequest
from placement_rpc.accounting.fingerprint import CanonicalForm
from placement_rpc.accounting.idempotency import Request
from placement_rpc.accounting.ledger import DesiredAllocations, Ledger
from placement_rpc.accounting.locked_state import ConsumerEntry, LockedState, Scope
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.candidates.offers import Offer
from placement_rpc.db import api as db
from placement_rpc.db.queries import consumers as consumer_queries
from placement_rpc.objects.candidates import CandidateClaimResult
from placement_rpc.objects.claim import Claim, ClaimResult, ClaimResultList
from placement_rpc.objects.payloads import EventPayload


class AllocationChange(PendingRequest):
    """A request to change the allocations of consumers; subclasses define the change."""

    #: Uuids of the consumers whose allocations may change.
    consumers: tuple[str, ...] = ()
    #: The requested amounts: provider uuid to class name to amount.
    allocations: Mapping[str, Mapping[str, int]] = {}
    #: Whether the request raises the generation of a provider once, or for each consumer.
    one_step = True

    def desired_allocations(self, ledger: Ledger) -> list[DesiredAllocations]:
        """Return the allocations that the consumers are to have.

        :raises PlacementException: if the request cannot be met
        """
        raise NotImplementedError

    @property
    def result_consumer(self) -> str:
        """Uuid of the consumer that the result is about."""
        return self.consumers[0]

    @property
    def weight(self) -> int:
        return _size(self.allocations) or 1

    def add_to_scope(self, scope: Scope) -> None:
        scope.consumers.update(self.consumers)
        _add_allocations(scope, self.allocations)

    def apply(self, state: LockedState, outbox: Outbox) -> ClaimResult:
        ledger = Ledger(state)
        generations: dict[str, int] = {}
        for result in applied(state, outbox, self.desired_allocations(ledger), self.one_step):
            generations |= result.generations
        return ClaimResult(
            consumer_uuid=self.result_consumer, generations=generations, replayed=False,
            consumer_generation=state.consumers[self.result_consumer].generation)


def applied(state: LockedState, outbox: Outbox, desired: Sequence[DesiredAllocations],
            one_step: bool = True) -> list[ClaimResult]:
    """Replace the allocations of consumers, all of them or none, and record the events.

    :param one_step: as for :meth:`placement_rpc.accounting.ledger.Ledger.apply`
    :returns: a result for each consumer
    :raises PlacementException: as :meth:`placement_rpc.accounting.ledger.Ledger.apply`
    """
    results = []
    for change in Ledger(state).apply(desired, one_step):
        events.record(outbox, change, state.providers, state.class_names)
        results.append(ClaimResult(
            consumer_uuid=change.consumer, consumer_generation=change.generation, replayed=False,
            generations={state.providers[provider_id].uuid: generation
                         for provider_id, (_, generation) in change.generations.items()}))
    return results


def desired_by(claim: Claim, state: LockedState | Ledger,
               allocations: Mapping[str, Mapping[str, int]]) -> DesiredAllocations:
    """Return the allocations that a claim asks for.

    A consumer that has allocations keeps its owner if the claim says so.

    :param allocations: those of the claim, or of the provider that was found for it
    """
    owner: Claim | ConsumerEntry = claim
    if claim.value("keep_owner") and state.consumers[claim.consumer_uuid].held:
        owner = state.consumers[claim.consumer_uuid]
    return DesiredAllocations(
        claim.consumer_uuid, allocations, owner.project_id, owner.user_id,
        claim.value("consumer_generation"), claim.value("consumer_tags"),
        claim.value("consumer_type"), claim.value("mappings"),
        raise_generation=bool(claim.value("raise_generation")))


def forms_of_claim(claim: Claim) -> tuple[CanonicalForm, CanonicalForm]:
    """Return what a claim asks for, and the same with its preconditions.

    :returns: tuple of two forms. The first has neither preconditions nor the owner that a claim
        with ``keep_owner`` names for a new consumer. The second is the form of release 2026.2,
        which has ``consumer_generation`` and always an owner.
    """
    whole = CanonicalForm(claim).without("consumer_tags", "keep_owner", "raise_generation")
    asked = whole.without("consumer_generation")
    if claim.value("keep_owner"):
        asked = asked.without("project_id", "user_id")
    return asked, whole


def request_of_claim(request_id: str, claim: Claim) -> Request:
    """Return the request of a ``claim_allocations``.

    :raises InvalidInput: if the id is not valid
    """
    asked, whole = forms_of_claim(claim)
    return Request.of(request_id, "claim_allocations", {"claim": asked}, {"claim": whole})


class ClaimChange(AllocationChange):
    """A claim.

    :param claim: a claim whose fields were checked
    :param allocations: as of :class:`AllocationChange`; None for those of the claim
    """

    def __init__(self, request: Request, claim: Claim, deadline: float | None = None,
                 allocations: Mapping[str, Mapping[str, int]] | None = None):
        super().__init__(request, deadline)
        self.claim = claim
        self._given = claim, request
        self.consumers = (claim.consumer_uuid,)
        self.allocations = allocations or claim.allocations

    def desired_allocations(self, ledger: Ledger) -> list[DesiredAllocations]:
        # An attempt whose transaction was lost may have found another owner.
        self.claim, self.request = self._given
        consumer = ledger.consumers[self.claim.consumer_uuid]
        if self.claim.value("keep_owner") and consumer.held:
            self._set_owner(consumer)
        return [desired_by(self.claim, ledger, self.allocations)]

    def _set_owner(self, consumer):
        """Name the owner that the consumer has, in the claim and in the request's fingerprint.

        Release 2026.2 read the owner before the claim, and named it. The request's row thereby has
        the fingerprint with which a process of that release repeats it.

        :param consumer: object with project_id and user_id
        """
        self.claim = _with_owner(self.claim, consumer)
        if self.request.method == "claim_allocations":
            self.request = request_of_claim(self.request.request_id, self.claim)

    def check_stored(self, tx: db.Connection, row: Any) -> None:
        if self.claim.value("keep_owner") and not self.request.is_request_of(row):
            consumer = consumer_queries.owner(tx, self.claim.consumer_uuid)
            if consumer is not None:
                self._set_owner(consumer)
        super().check_stored(tx, row)

    def refused(self, error: exception.PlacementException) -> list[tuple[str, EventPayload]]:
        return [events.refused(self.claim, self.allocations, error)]


def _with_owner(claim, consumer):
    """Return the claim in the name of a consumer's project and user."""
    named = claim.obj_clone()
    named.project_id, named.user_id = consumer.project_id, consumer.user_id
    return named


class CandidateClaim(ClaimChange):
    """A claim on one candidate of several: after a refusal the next candidate is tried.

    :param offer: the candidate
    """

    final = False

    def __init__(self, request: Request, claim: Claim, deadline: float | None, offer: Offer):
        if offer.mappings is not None:
            claim = claim.obj_clone()
            claim.mappings = offer.mappings
        super().__init__(request, claim, deadline, offer.allocations)
        self._offer = offer

    def apply(self, state: LockedState, outbox: Outbox) -> ClaimResult:
        result = super().apply(state, outbox)
        if self._offer.mappings is None:
            return result
        return CandidateClaimResult.of_claim(
            result, self._offer.allocations, self._offer.mappings)


class ClaimSet:
    """Claims of different consumers that are accepted together or not at all (DESIGN rule 3).

    A claim without allocations releases what its consumer holds. A request that changes more than
    allocations in the same transaction has a set of its own, and applies it to the same state.

    :param claims: claims whose fields were checked
    :param as_new: as of :class:`placement_rpc.accounting.ledger.DesiredAllocations`
    """

    def __init__(self, claims: Sequence[Claim], as_new: bool = False):
        self.claims = claims
        self._as_new = as_new

    @property
    def weight(self) -> int:
        """As of :class:`placement_rpc.accounting.batch.PendingRequest`."""
        return sum(_size(claim.allocations) for claim in self.claims) or 1

    def add_to_scope(self, scope: Scope) -> None:
        """As of :class:`placement_rpc.accounting.batch.PendingRequest`."""
        for claim in self.claims:
            scope.consumers.add(claim.consumer_uuid)
            _add_allocations(scope, claim.allocations)

    def desired(self, state: LockedState) -> list[DesiredAllocations]:
        """Return the allocations that the consumers are to have, in the order of the claims."""
        return [dataclasses.replace(
            desired_by(claim, state, claim.allocations), as_new=self._as_new)
            for claim in self.claims]

    def apply(self, state: LockedState, outbox: Outbox) -> ClaimResultList:
        """Replace the allocations of all the consumers, and record the events.

        :returns: a result for each claim, in their order
        :raises PlacementException: if one of them is refused; the state is as it was
        """
        return ClaimResultList(objects=applied(state, outbox, self.desired(state)))

    def refused(self, error: exception.PlacementException) -> list[tuple[str, EventPayload]]:
        """Return the events of a refusal: one for each claim that asked for something."""
        return [events.refused(claim, claim.allocations, error)
                for claim in self.claims if claim.allocations]


class ClaimSetChange(PendingRequest):
    """A set of claims as a request of its own."""

    def __init__(self, request: Request, claims: Sequence[Claim], deadline: float | None = None):
        super().__init__(request, deadline)
        self.claims = ClaimSet(claims)

    @property
    def weight(self) -> int:
        return self.claims.weight

    def add_to_scope(self, scope: Scope) -> None:
        self.claims.add_to_scope(scope)

    def apply(self, state: LockedState, outbox: Outbox) -> ClaimResultList:
        return self.claims.apply(state, outbox)

    def refused(self, error: exception.PlacementException) -> list[tuple[str, EventPayload]]:
        return self.claims.refused(error)


def _size(allocations):
    return sum(len(resources) for resources in allocations.values())


def _add_allocations(scope, allocations):
    scope.providers.update(allocations)
    for resources in allocations.values():
        scope.classes.update(resources)


class ReleaseChange(AllocationChange):
    """A release of everything that a consumer holds.

    :param generation: the generation that the consumer must be at; None for any
    :param tags: entity tags, of which the consumer must have one; None for any
    """

    def __init__(self, request: Request, consumer_uuid: str, generation: int | None = None,
                 deadline: float | None = None, tags: Sequence[str] | None = None):
        super().__init__(request, deadline)
        self.consumers = (consumer_uuid,)
        self.generation = generation
        self.tags = tags

    def desired_allocations(self, ledger: Ledger) -> list[DesiredAllocations]:
        uuid, = self.consumers
        ledger.check_tags(ledger.consumers[uuid], self.tags)
        if not ledger.consumers[uuid].held:
            raise exception.ConsumerNotFound(consumer=uuid)
        return [DesiredAllocations(uuid, {}, generation=self.generation)]


class MoveChange(AllocationChange):
    """A move of everything that one consumer holds to another one that holds nothing.

    The target gets the project, the user and the type of the source. The generations of the
    providers are raised twice, as always: a service of release 2026.2 answers so.

    :param source: uuid of the consumer that holds the allocations
    :param target: uuid of the consumer that is to hold them
    :param generation: the generation that the source must be at; None for any
    """

    one_step = False

    def __init__(self, request: Request, source: str, target: str, generation: int | None = None,
                 deadline: float | None = None):
        super().__init__(request, deadline)
        self.consumers = (source, target)
        self.generation = generation

    @property
    def result_consumer(self) -> str:
        return self.consumers[1]

    def desired_allocations(self, ledger: Ledger) -> list[DesiredAllocations]:
        source, target = (ledger.consumers[uuid] for uuid in self.consumers)
        if source is target:
            raise exception.ConsumerConflict(
                consumer=source.uuid, reason="it cannot be moved to itself")
        if not source.held:
            raise exception.ConsumerNotFound(consumer=source.uuid)
        if target.held:
            raise exception.ConsumerConflict(
                consumer=target.uuid, reason="it holds allocations already")
        return [
            DesiredAllocations(source.uuid, {}, generation=self.generation),
            DesiredAllocations(
                target.uuid, ledger.allocations_of(source), source.project_id, source.user_id,
                consumer_type=source.consumer_type, skip_unit_checks=True)]
