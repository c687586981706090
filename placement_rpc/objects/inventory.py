# SPDX-License-Identifier: Apache-2.0
"""Inventories: the amount of a class that a provider has, and the rules for allocating it."""

from placement_rpc.objects import base, fields


@base.PlacementObjectRegistry.register
class Inventory(base.PlacementObject):
    """The inventory of one resource class.

    ``used`` is set in answers and ignored in requests.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "resource_class": fields.field(fields.ClassName()),
        "total": fields.field(fields.WholeNumber(minimum=1)),
        "reserved": fields.field(fields.WholeNumber(), default=0),
        "min_unit": fields.field(fields.WholeNumber(minimum=1), default=1),
        "max_unit": fields.field(fields.WholeNumber(minimum=1), default=fields.MAX_INT),
        "step_size": fields.field(fields.WholeNumber(minimum=1), default=1),
        "allocation_ratio": fields.field(fields.Ratio(), default=1.0),
        "used": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
    }


@base.PlacementObjectRegistry.register
class InventoryList(base.PlacementObjectList):
    """The inventories of one provider, and its generation."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "objects": fields.ListOfObjectsField("Inventory"),
        "provider_uuid": fields.field(fields.Uuid()),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
    }
