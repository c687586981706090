# SPDX-License-Identifier: Apache-2.0
"""Resource providers."""

import typing

from placement_rpc.objects import base, codec, fields


@base.PlacementObjectRegistry.register
class ResourceProvider(base.PlacementObject):
    """Something that provides amounts of resources: a compute node, a shared pool.

    ``free`` maps each requested class to its free amount, and is set only in answers to
    get_by_request. The parent of a root is None, and its root is itself. ``updated_at``, UTC in
    ISO 8601, is the time of the last change of the provider or of its generation.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added free
    # Version 1.2: Added parent_provider_uuid, root_provider_uuid and updated_at
    VERSION = "1.2"

    fields = {
        "uuid": fields.field(fields.Uuid()),
        "name": fields.field(fields.Name()),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
        "free": fields.field(fields.Amounts(maximum=2 ** 63 - 1), nullable=True),
        "parent_provider_uuid": fields.field(fields.Uuid(), nullable=True),
        "root_provider_uuid": fields.field(fields.Uuid()),
        "updated_at": fields.field(fields.Text(32), nullable=True),
    }

    added = {"free": "1.1", "parent_provider_uuid": "1.2", "root_provider_uuid": "1.2",
             "updated_at": "1.2"}


@base.PlacementObjectRegistry.register
class ResourceProviderList(base.PlacementObjectList):
    """Several providers.

    ``more`` says that there are others after the last. ``position`` is the position of an event
    up to which the list is sure to include every change.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added more and position
    VERSION = "1.1"

    fields = {
        "objects": fields.ListOfObjectsField("ResourceProvider"),
        "more": fields.BooleanField(nullable=True),
        "position": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1), nullable=True),
    }

    added = {"more": "1.1", "position": "1.1"}

    @classmethod
    def of_candidates(cls, found: typing.Iterable[typing.Any], more: bool,
                      position: int) -> typing.Self:
        """Return the providers of candidates, with their free amounts.

        :param found: iterable of :class:`placement_rpc.candidates.query.Candidate`
        :param more: whether other providers fit, too
        :param position: of an event, up to which they include every change
        """
        return codec.stored(cls, more=more, position=position, objects=[codec.stored(
            ResourceProvider, uuid=each.uuid, name=each.name, generation=each.generation,
            free=each.free) for each in found])
