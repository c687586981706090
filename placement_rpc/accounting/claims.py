# SPDX-License-Identifier: Apache-2.0
"""Claims, releases and moves as requests of a batch."""

from collections.abc import Mapping, Sequence
from typing import Any

from placement_rpc import exception
from placement_rpc.accounting import events
from placement_rpc.accounting.batch import PendingRequest
from placement_rpc.accounting.fingerprint import CanonicalForm
from placement_rpc.accounting.idempotency import Request
from placement_rpc.accounting.ledger import DesiredAllocations, Ledger
from placement_rpc.accounting.locked_state import LockedState, Scope
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.db import api as db
from placement_rpc.db.queries import consumers as consumer_queries
from placement_rpc.objects.claim import Claim, ClaimResult
from placement_rpc.objects.payloads import EventPayload


class AllocationChange(PendingRequest):
    """A request to change the allocations of consumers; subclasses define the change."""

    #: Uuids of the consumers whose allocations may change.
    consumers: tuple[str, ...] = ()
    #: The requested amounts: provider uuid to class name to amount.
    allocations: Mapping[str, Mapping[str, int]] = {}

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
        return sum(len(resources) for resources in self.allocations.values()) or 1

    def add_to_scope(self, scope: Scope) -> None:
        scope.consumers.update(self.consumers)
        scope.providers.update(self.allocations)
        for resources in self.allocations.values():
            scope.classes.update(resources)

    def apply(self, state: LockedState, outbox: Outbox) -> ClaimResult:
        ledger = Ledger(state)
        generations = {}
        for change in ledger.apply(self.desired_allocations(ledger)):
            events.record(outbox, change, state.providers, state.class_names)
            for provider_id, (_, generation) in change.generations.items():
                generations[state.providers[provider_id].uuid] = generation
        return ClaimResult(
            consumer_uuid=self.result_consumer, generations=generations, replayed=False,
            consumer_generation=state.consumers[self.result_consumer].generation)


def forms_of_claim(claim: Claim) -> tuple[CanonicalForm, CanonicalForm]:
    """Return what a claim asks for, and the same with its preconditions.

    :returns: tuple of two forms. The first has neither preconditions nor the owner that a claim
        with ``keep_owner`` names for a new consumer. The second is the form of release 2026.2,
        which has ``consumer_generation`` and always an owner.
    """
    whole = CanonicalForm(claim).without("consumer_tags", "keep_owner")
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
        self.consumers = (claim.consumer_uuid,)
        self.allocations = allocations or claim.allocations

    def desired_allocations(self, ledger: Ledger) -> list[DesiredAllocations]:
        consumer = ledger.consumers[self.claim.consumer_uuid]
        if self.claim.value("keep_owner") and consumer.held:
            self._set_owner(consumer)
        claim = self.claim
        return [DesiredAllocations(
            claim.consumer_uuid, self.allocations, claim.project_id, claim.user_id,
            claim.value("consumer_generation"), claim.value("consumer_tags"))]

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

    def refused(self, error: exception.PlacementException) -> tuple[str, EventPayload]:
        return events.refused(self.claim, self.allocations, error)


def _with_owner(claim, consumer):
    """Return the claim in the name of a consumer's project and user."""
    named = claim.obj_clone()
    named.project_id, named.user_id = consumer.project_id, consumer.user_id
    return named


class CandidateClaim(ClaimChange):
    """A claim on one candidate of several: after a refusal the next candidate is tried."""

    final = False


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

    The target gets the project and the user of the source.

    :param source: uuid of the consumer that holds the allocations
    :param target: uuid of the consumer that is to hold them
    :param generation: the generation that the source must be at; None for any
    """

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
                skip_unit_checks=True)]
