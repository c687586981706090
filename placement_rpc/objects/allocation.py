# SPDX-License-Identifier: Apache-2.0
"""Allocations, as they are read."""

from placement_rpc.objects import base, fields


@base.PlacementObjectRegistry.register
class Allocation(base.PlacementObject):
    """The amount of one class that one consumer has from one provider."""

    # Version 1.0: Initial version
    # Version 1.1: Added consumer_generation
    VERSION = "1.1"

    fields = {
        "consumer_uuid": fields.field(fields.Uuid()),
        "provider_uuid": fields.field(fields.Uuid()),
        "provider_generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
        "resource_class": fields.field(fields.ClassName()),
        "used": fields.field(fields.WholeNumber(minimum=1)),
        "consumer_generation": fields.field(
            fields.WholeNumber(maximum=2 ** 63 - 1), nullable=True),
    }

    added = {"consumer_generation": "1.1"}


@base.PlacementObjectRegistry.register
class AllocationList(base.PlacementObjectList):
    """The allocations of one consumer, or of one provider.

    For a consumer, ``consumer`` is set if it has allocations. For a provider, ``generation`` is
    the provider's. ``position`` is the position of an event up to which the list is sure to
    include every change, and ``updated_at``, UTC in ISO 8601, the time of the newest allocation.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added consumer
    # Version 1.2: Added position and updated_at
    VERSION = "1.2"

    fields = {
        "objects": fields.ListOfObjectsField("Allocation"),
        "consumer": fields.ObjectField("Consumer", nullable=True),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1), nullable=True),
        "position": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1), nullable=True),
        "updated_at": fields.field(fields.Text(32), nullable=True),
    }

    added = {"consumer": "1.1", "position": "1.2", "updated_at": "1.2"}

    def by_provider(self) -> dict[str, dict[str, int]]:
        """Return a dict of provider uuid to dict of class name to amount."""
        result: dict[str, dict[str, int]] = {}
        for each in self.objects:
            result.setdefault(each.provider_uuid, {})[each.resource_class] = each.used
        return result
