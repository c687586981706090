# SPDX-License-Identifier: Apache-2.0
"""Usages: the allocated amounts of a provider's inventories."""

from placement_rpc.objects import base, fields

#: The type of the consumers whose type is not known.
UNKNOWN_TYPE = "unknown"


@base.PlacementObjectRegistry.register
class Usage(base.PlacementObject):
    """The sum of the allocations of one class, and the capacity of its inventory."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "resource_class": fields.field(fields.ClassName()),
        "used": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
        "capacity": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
    }


@base.PlacementObjectRegistry.register
class UsageList(base.PlacementObjectList):
    """The usages of one provider, and its generation."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "objects": fields.ListOfObjectsField("Usage"),
        "provider_uuid": fields.field(fields.Uuid()),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
    }


@base.PlacementObjectRegistry.register
class ProjectUsages(base.PlacementObject):
    """How much the consumers of a project have, or those of one of its users, or of one type.

    ``usages`` maps each class to the sum of the allocations. ``by_type`` maps each type of
    consumers to a mapping of ``usages`` and ``consumers``, their number; those whose type is not
    known have the type ``unknown``.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "project_id": fields.field(fields.Text(255)),
        "user_id": fields.field(fields.Text(255), nullable=True),
        "consumer_type": fields.field(fields.Text(255), nullable=True),
        "usages": fields.field(fields.Json()),
        "by_type": fields.field(fields.Json()),
    }
