# SPDX-License-Identifier: Apache-2.0
"""Claims, and the results of claims, releases and moves.

A claim replaces all allocations of a consumer, on all providers (DESIGN rule 3). Otherwise
allocations stay on providers that a claim no longer names (upstream bug 1707669) or are doubled
(CVE-2017-17051).
"""

import typing

from placement_rpc import exception
from placement_rpc.objects import base, fields

_GENERATION = 2 ** 63 - 1
#: The type of a list of entity tags of a consumer.
CONSUMER_TAGS = fields.Several(fields.Text(64), maximum=100, minimum=1)


@base.PlacementObjectRegistry.register
class Claim(base.PlacementObject):
    """The allocations that a consumer is to have.

    ``allocations`` maps provider uuid to a mapping of resource class to amount; it is None in
    claim_by_request, where the service chooses the provider. ``consumer_generation`` is the
    generation at which the caller read the consumer, 0 for a consumer without allocations; None
    (or unset) skips the check. ``consumer_tags`` are entity tags, of which the consumer must have
    one, or ``*`` for any consumer that has allocations; None (or unset) skips the check. If
    ``keep_owner`` is true, a consumer that has allocations keeps its project and its user, and
    ``project_id`` and ``user_id`` are those of a new one. A consumer keeps its type if
    ``consumer_type`` is None (or unset), and a new one then has none. ``mappings`` are the groups
    of the request for which the providers were chosen, each with the uuids of its providers; they
    are kept with the event. A claim that changes nothing leaves the generation of the consumer as
    it is, unless ``raise_generation`` is true.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added consumer_generation
    # Version 1.2: Added consumer_tags, keep_owner, consumer_type, mappings, raise_generation
    VERSION = "1.2"

    fields = {
        "consumer_uuid": fields.field(fields.Uuid()),
        "project_id": fields.field(fields.Text(255)),
        "user_id": fields.field(fields.Text(255)),
        "consumer_generation": fields.field(
            fields.WholeNumber(maximum=_GENERATION), nullable=True),
        "allocations": fields.field(fields.Mapping(fields.Amounts()), nullable=True),
        "consumer_tags": fields.field(CONSUMER_TAGS, nullable=True),
        "keep_owner": fields.field(fields.Boolean(), nullable=True),
        "consumer_type": fields.field(fields.ConsumerType(), nullable=True),
        "mappings": fields.field(fields.Mappings(), nullable=True),
        "raise_generation": fields.field(fields.Boolean(), nullable=True),
    }

    added = {"consumer_generation": "1.1"} | dict.fromkeys(
        ("consumer_tags", "keep_owner", "consumer_type", "mappings", "raise_generation"), "1.2")

    def check(self, max_resources: float, may_be_empty: bool = False) -> None:
        """Check that the claim is complete.

        :param max_resources: the maximum number of amounts
        :param may_be_empty: whether it may have no amounts, which releases everything
        :raises InvalidInput: if the consumer, its project, its user or its allocations are missing
        :raises BatchTooLarge: if it has more amounts
        """
        self.check_owner()
        allocations = self.value("allocations")
        if allocations is None or not (allocations or may_be_empty):
            raise exception.InvalidInput(
                what="allocations", reason="a claim needs at least one amount; to delete all "
                                           "allocations, release them")
        size = sum(len(resources) for resources in allocations.values())
        if size > max_resources:
            raise exception.BatchTooLarge(what="claim", limit=max_resources, size=size)

    def check_owner(self) -> None:
        """Check that the claim has a consumer, its project and its user.

        :raises InvalidInput: if one is missing
        """
        for name in ("consumer_uuid", "project_id", "user_id"):
            if not self.obj_attr_is_set(name):
                raise exception.InvalidInput(what="Claim", reason=f"{name} is missing")


@base.PlacementObjectRegistry.register
class ClaimResult(base.PlacementObject):
    """The outcome of a claim, a release or a move.

    ``generations`` maps the uuid of each affected provider to its generation afterwards;
    ``consumer_generation`` is 0 if the consumer has no allocations any more. ``replayed`` says
    that the request was settled before, and that this is its stored outcome. In the answer to a
    batch, a refused claim has only ``error`` set, a mapping of code and values.
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
    def of_settled(cls, settled: typing.Any) -> typing.Self:
        """Return the result of an accepted claim.

        :param settled: :class:`placement_rpc.accounting.batch.Outcome` without an error
        """
        return cls.of(settled.result, settled.replayed)

    @classmethod
    def of(cls, accepted: "ClaimResult", replayed: bool) -> typing.Self:
        """Return a copy of a result; two deliveries of a request share the one that is given.

        One that was stored under the pin of an earlier release lacks what was added since.
        """
        return cls(replayed=replayed, **{
            name: getattr(accepted, name)
            for name in ("consumer_uuid", "generations", "consumer_generation")
            if accepted.obj_attr_is_set(name)})

    def exception(self) -> exception.PlacementException | None:
        """Return the error of a refused claim of a batch; None if it was accepted."""
        error = self.value("error")
        return exception.from_code(error["code"], error["kwargs"]) if error else None


@base.PlacementObjectRegistry.register
class ClaimList(base.PlacementObjectList):
    """The claims of a batch, or of a set that is accepted or refused as a whole."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"objects": fields.ListOfObjectsField("Claim")}


@base.PlacementObjectRegistry.register
class ClaimResultList(base.PlacementObjectList):
    """The outcomes of a batch or of a set of claims, in the order of the claims."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"objects": fields.ListOfObjectsField("ClaimResult")}

    @classmethod
    def of_settled(cls, settled: typing.Any) -> typing.Self:
        """Return the results of a set of claims that was accepted.

        :param settled: :class:`placement_rpc.accounting.batch.Outcome` without an error
        """
        return cls(objects=[
            ClaimResult.of(each, settled.replayed) for each in settled.result.objects])
