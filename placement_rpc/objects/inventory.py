# SPDX-License-Identifier: Apache-2.0
"""Inventories: the amount of a class that a provider has, and the rules for allocating it."""

import decimal

from placement_rpc.objects import base, fields

#: The largest capacity; of an inventory that would have a larger one, no more can be allocated.
MAX_CAPACITY = 2 ** 63 - 1


def capacity_of(total: int, reserved: int, allocation_ratio: float) -> int:
    """Return ``(total - reserved) * allocation_ratio``, without its fraction.

    It is how much can be allocated in all; if it is below 0, the values contradict each other.
    Computed in decimals: 100 at a ratio of 0.29 is 29, not the 28 that binary fractions give
    (generic-resource-pools, scenario 1).
    """
    exact = (total - reserved) * decimal.Decimal(repr(allocation_ratio))
    return min(int(exact), MAX_CAPACITY)


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
    """The inventories of one provider, and its generation.

    ``updated_at``, UTC in ISO 8601, is the time of the last change of an inventory, and set in
    answers. It is None if there are none.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added updated_at
    VERSION = "1.1"

    fields = {
        "objects": fields.ListOfObjectsField("Inventory"),
        "provider_uuid": fields.field(fields.Uuid()),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
        "updated_at": fields.field(fields.Text(32), nullable=True),
    }

    added = {"updated_at": "1.1"}
