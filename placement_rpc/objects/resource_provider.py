# SPDX-License-Identifier: Apache-2.0
"""Resource providers."""

import typing

from placement_rpc.objects import base, codec, fields


@base.PlacementObjectRegistry.register
class ResourceProvider(base.PlacementObject):
    """Something that provides amounts of resources: a compute node, a shared pool.

    ``free`` maps each requested class to its free amount, and is set only in answers to
    get_by_request.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added free
    VERSION = "1.1"

    fields = {
        "uuid": fields.field(fields.Uuid()),
        "name": fields.field(fields.Name()),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
        "free": fields.field(fields.Amounts(maximum=2 ** 63 - 1), nullable=True),
    }

    added = {"free": "1.1"}


@base.PlacementObjectRegistry.register
class ResourceProviderList(base.PlacementObjectList):
    """Several providers."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"objects": fields.ListOfObjectsField("ResourceProvider")}

    @classmethod
    def of_candidates(cls, found: typing.Iterable[typing.Any]) -> typing.Self:
        """Return the providers of candidates, with their free amounts.

        :param found: iterable of :class:`placement_rpc.candidates.query.Candidate`
        """
        return codec.stored(cls, objects=[codec.stored(
            ResourceProvider, uuid=each.uuid, name=each.name, generation=each.generation,
            free=each.free) for each in found])
