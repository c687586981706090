# SPDX-License-Identifier: Apache-2.0
"""What consumers hold of providers, read."""

from placement_rpc.objects import base, fields


@base.PlacementObjectRegistry.register
class Allocation(base.PlacementObject):
    """An amount of one class that one consumer holds of one provider."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "consumer_uuid": fields.field(fields.Uuid()),
        "provider_uuid": fields.field(fields.Uuid()),
        "provider_generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
        "resource_class": fields.field(fields.ClassName()),
        "used": fields.field(fields.WholeNumber(minimum=1)),
    }


@base.PlacementObjectRegistry.register
class AllocationList(base.PlacementObjectList):
    """The allocations of one consumer, or of one provider.

    ``consumer`` is set where they are one consumer's and it holds any; ``generation`` is the
    provider's where they are one provider's.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added consumer
    VERSION = "1.1"

    fields = {
        "objects": fields.ListOfObjectsField("Allocation"),
        "consumer": fields.ObjectField("Consumer", nullable=True),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1), nullable=True),
    }

    added = {"consumer": "1.1"}

    def by_provider(self):
        """:returns: dict of provider uuid to dict of class to amount"""
        result = {}
        for each in self.objects:
            result.setdefault(each.provider_uuid, {})[each.resource_class] = each.used
        return result
