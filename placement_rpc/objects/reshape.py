# SPDX-License-Identifier: Apache-2.0
"""Reshapes: inventories and allocations that move between providers in one transaction."""

import typing

from placement_rpc.objects import base, fields

_GENERATION = fields.WholeNumber(maximum=2 ** 63 - 1)


@base.PlacementObjectRegistry.register
class Reshape(base.PlacementObject):
    """The inventories that providers are to have, and the allocations that fit into them.

    ``inventories`` are all inventories of each provider, of different ones, with the
    ``generation`` at which the caller read it; without it, any will do. ``claims`` are of
    different consumers; one without allocations releases what its consumer holds.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "inventories": fields.ListOfObjectsField("InventoryList"),
        "claims": fields.ListOfObjectsField("Claim"),
    }


@base.PlacementObjectRegistry.register
class ReshapeResult(base.PlacementObject):
    """The outcome of a reshape.

    ``generations`` maps the uuid of each provider that it names or frees to its generation
    afterwards, and ``consumer_generations`` the uuid of each consumer. ``replayed`` says that the
    request was settled before, and that this is its stored outcome.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "generations": fields.field(fields.Mapping(_GENERATION)),
        "consumer_generations": fields.field(fields.Mapping(_GENERATION)),
        "replayed": fields.BooleanField(),
    }

    @classmethod
    def of_settled(cls, settled: typing.Any) -> typing.Self:
        """Return the result of a reshape that was accepted.

        :param settled: :class:`placement_rpc.accounting.batch.Outcome` without an error
        """
        done = settled.result
        return cls(generations=done.generations, consumer_generations=done.consumer_generations,
                   replayed=settled.replayed)
