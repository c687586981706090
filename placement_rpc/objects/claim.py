# SPDX-License-Identifier: Apache-2.0
"""Claims, releases and moves: what clients ask for, as settlements.

A claim replaces the whole set of what a consumer holds, over all its providers (DESIGN rule 3;
upstream bugs 1707669 and CVE-2017-17051 are what happens otherwise).
"""

from placement_rpc import exception
from placement_rpc.objects import allocation_events, base, fields
from placement_rpc.objects.ledger import Holding
from placement_rpc.objects.settlement import Settlement

_GENERATION = 2 ** 63 - 1


@base.PlacementObjectRegistry.register
class Claim(base.PlacementObject):
    """What a consumer wants to hold.

    ``allocations`` maps provider uuid to a mapping of resource class to amount; None in
    claim_by_request, where the service chooses the provider. ``consumer_generation`` is the
    generation at which the caller read the consumer, 0 for one that holds nothing, and None
    (or left out) where the caller does not mind.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added consumer_generation
    VERSION = "1.1"

    fields = {
        "consumer_uuid": fields.field(fields.Uuid()),
        "project_id": fields.field(fields.Text(255)),
        "user_id": fields.field(fields.Text(255)),
        "consumer_generation": fields.field(
            fields.WholeNumber(maximum=_GENERATION), nullable=True),
        "allocations": fields.field(fields.Mapping(fields.Amounts()), nullable=True),
    }

    added = {"consumer_generation": "1.1"}

    def check(self, max_resources):
        """Whether it is complete.

        :param max_resources: int, the most amounts it may hold
        :raises InvalidInput: :raises BatchTooLarge:
        """
        self.check_owner()
        allocations = self.value("allocations")
        if not allocations:
            raise exception.InvalidInput(
                what="allocations", reason="a claim is for at least one amount; to give "
                                           "everything back, release the allocations")
        size = sum(len(resources) for resources in allocations.values())
        if size > max_resources:
            raise exception.BatchTooLarge(what="claim", limit=max_resources, size=size)

    def check_owner(self):
        """:raises InvalidInput: when the consumer, its project or its user is not given"""
        for name in ("consumer_uuid", "project_id", "user_id"):
            if not self.obj_attr_is_set(name):
                raise exception.InvalidInput(what="Claim", reason=f"{name} is missing")


@base.PlacementObjectRegistry.register
class ClaimResult(base.PlacementObject):
    """The outcome of a claim, a release or a move.

    ``generations`` maps the uuid of each provider concerned to its generation after the claim;
    ``consumer_generation`` is 0 where the consumer holds nothing any more. ``replayed`` tells
    that the request had been settled before, and this is what came out then. In the answer to
    a batch ``error`` is set, as code and values, where a claim was refused; nothing else is
    set then.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added consumer_generation
    # Version 1.2: Added error, in batches
    VERSION = "1.2"

    fields = {
        "consumer_uuid": fields.field(fields.Uuid()),
        "consumer_generation": fields.field(fields.WholeNumber(maximum=_GENERATION)),
        "generations": fields.field(
            fields.Mapping(fields.WholeNumber(maximum=_GENERATION))),
        "replayed": fields.BooleanField(),
        "error": fields.field(fields.Json(), nullable=True),
    }

    added = {"consumer_generation": "1.1", "error": "1.2"}

    @classmethod
    def of_settled(cls, settled):
        """:param settled: :class:`placement_rpc.objects.settlement.Settled`, accepted"""
        done = settled.result
        return cls(consumer_uuid=done.consumer_uuid, generations=done.generations,
                   consumer_generation=done.consumer_generation, replayed=settled.replayed)

    def exception(self):
        """:returns: the PlacementException of a refused claim of a batch; None otherwise"""
        error = self.value("error")
        return exception.from_code(error["code"], error["kwargs"]) if error else None


class ClaimSettlement(Settlement):
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
        return [Holding(claim.consumer_uuid, self.allocations, claim.project_id, claim.user_id,
                        claim.value("consumer_generation"))]

    def result(self, ledger, generations):
        return _result(ledger, self.claim.consumer_uuid, generations)

    def refused(self, error):
        return allocation_events.refused(self.claim, self.allocations, error)


class CandidateSettlement(ClaimSettlement):
    """A claim on one candidate of several: a refusal only means that the next one is tried."""

    final = False


class ReleaseSettlement(Settlement):
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
        return [Holding(uuid, {}, generation=self.generation)]

    def result(self, ledger, generations):
        return _result(ledger, self.consumers[0], generations)


class MoveSettlement(Settlement):
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
            Holding(source.uuid, {}, generation=self.generation),
            Holding(target.uuid, ledger.allocations_of(source), source.project_id,
                    source.user_id, carried=True)]

    def result(self, ledger, generations):
        return _result(ledger, self.consumers[1], generations)


def _result(ledger, consumer_uuid, generations):
    return ClaimResult(
        consumer_uuid=consumer_uuid, generations=generations,
        consumer_generation=ledger.consumers[consumer_uuid].generation, replayed=False)


@base.PlacementObjectRegistry.register
class ClaimList(base.PlacementObjectList):
    """The claims of a batch."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"objects": fields.ListOfObjectsField("Claim")}


@base.PlacementObjectRegistry.register
class ClaimResultList(base.PlacementObjectList):
    """The outcomes of a batch, in its order."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"objects": fields.ListOfObjectsField("ClaimResult")}
