# SPDX-License-Identifier: Apache-2.0
"""Claims, releases and moves as changes that a batch settles."""

from placement_rpc import exception
from placement_rpc.accounting import events
from placement_rpc.accounting.batch import AllocationChange
from placement_rpc.accounting.ledger import DesiredAllocations
from placement_rpc.objects.claim import ClaimResult


class ClaimChange(AllocationChange):
    """A claim on its way into a batch.

    :param claim: :class:`Claim`, checked
    """

    def __init__(self, request, claim, deadline=None, allocations=None):
        super().__init__(request, deadline)
        self.claim = claim
        self.consumers = (claim.consumer_uuid,)
        self.allocations = allocations or claim.allocations

    def holdings(self, ledger):
        claim = self.claim
        return [DesiredAllocations(
            claim.consumer_uuid, self.allocations, claim.project_id, claim.user_id,
            claim.value("consumer_generation"))]

    def result(self, ledger, generations):
        return _result(ledger, self.claim.consumer_uuid, generations)

    def refused(self, error):
        return events.refused(self.claim, self.allocations, error)


class CandidateClaim(ClaimChange):
    """A claim on one candidate of several: a refusal only means that the next one is tried."""

    final = False


class ReleaseChange(AllocationChange):
    """Everything that a consumer holds, given back.

    :param consumer_uuid: str
    :param generation: int the consumer must be at; None for any
    """

    def __init__(self, request, consumer_uuid, generation=None, deadline=None):
        super().__init__(request, deadline)
        self.consumers = (consumer_uuid,)
        self.generation = generation

    def holdings(self, ledger):
        uuid, = self.consumers
        if not ledger.consumers[uuid].held:
            raise exception.ConsumerNotFound(consumer=uuid)
        return [DesiredAllocations(uuid, {}, generation=self.generation)]

    def result(self, ledger, generations):
        return _result(ledger, self.consumers[0], generations)


class MoveChange(AllocationChange):
    """Everything that one consumer holds, given to another that holds nothing.

    The target's project and user are the source's.

    :param source: str, uuid of the consumer that gives
    :param target: str, uuid of the consumer that gets
    :param generation: int the source must be at; None for any
    """

    def __init__(self, request, source, target, generation=None, deadline=None):
        super().__init__(request, deadline)
        self.consumers = (source, target)
        self.generation = generation

    def holdings(self, ledger):
        source, target = (ledger.consumers[uuid] for uuid in self.consumers)
        if source is target:
            raise exception.ConsumerConflict(
                consumer=source.uuid, reason="it can not be moved to itself")
        if not source.held:
            raise exception.ConsumerNotFound(consumer=source.uuid)
        if target.held:
            raise exception.ConsumerConflict(
                consumer=target.uuid, reason="it holds allocations already")
        return [
            DesiredAllocations(source.uuid, {}, generation=self.generation),
            DesiredAllocations(target.uuid, ledger.allocations_of(source), source.project_id,
                    source.user_id, carried=True)]

    def result(self, ledger, generations):
        return _result(ledger, self.consumers[1], generations)


def _result(ledger, consumer_uuid, generations):
    return ClaimResult(
        consumer_uuid=consumer_uuid, generations=generations,
        consumer_generation=ledger.consumers[consumer_uuid].generation, replayed=False)
