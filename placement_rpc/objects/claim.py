# SPDX-License-Identifier: Apache-2.0
"""Claims, releases and moves: what clients ask for, as settlements.

A claim replaces the whole set of what a consumer holds, over all its providers (DESIGN rule 3;
upstream bugs 1707669 and CVE-2017-17051 are what happens otherwise).
"""

from placement_rpc import exception
from placement_rpc.objects import base, fields

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
        """:param settled: :class:`placement_rpc.accounting.batch.Outcome`, accepted"""
        done = settled.result
        return cls(consumer_uuid=done.consumer_uuid, generations=done.generations,
                   consumer_generation=done.consumer_generation, replayed=settled.replayed)

    def exception(self):
        """:returns: the PlacementException of a refused claim of a batch; None otherwise"""
        error = self.value("error")
        return exception.from_code(error["code"], error["kwargs"]) if error else None


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
