# SPDX-License-Identifier: Apache-2.0
"""Inventories: how much of a class a provider has, and what may be taken of it at a time."""

import decimal

from placement_rpc import exception
from placement_rpc.db.queries import inventories as queries
from placement_rpc.objects import base, fields, lean
from placement_rpc.objects.resource_provider import known

_MAX_CAPACITY = 2 ** 62
_DEFAULTS = {"reserved": 0, "min_unit": 1, "max_unit": fields.MAX_INT, "step_size": 1,
             "allocation_ratio": 1.0}


def capacity_of(total, reserved, allocation_ratio):
    """What may be allocated in all: ``(total - reserved) * allocation_ratio``, rounded down.

    Worked out in decimals: 100 at a ratio of 0.29 are 29, not the 28 that binary fractions
    make of it.

    :returns: int (generic-resource-pools, scenario 1; DESIGN rule 1)
    """
    exact = (total - reserved) * decimal.Decimal(repr(allocation_ratio))
    return min(int(exact), _MAX_CAPACITY)


@base.PlacementObjectRegistry.register
class Inventory(base.PlacementObject):
    """The inventory of one resource class.

    ``used`` is answered and never taken.
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

    @classmethod
    def of_row(cls, row):
        """:param row: row of the inventory query"""
        return lean.stored(cls, **{name: getattr(row, name) for name in cls.fields})

    @property
    def capacity(self):
        """int, see :func:`capacity_of`"""
        return capacity_of(self.total, self.value("reserved", 0),
                           self.value("allocation_ratio", 1.0))

    def columns(self):
        """The values to store, defaults filled in.

        :returns: dict of column to value, without the class
        :raises InvalidInventory: when they do not go together
        """
        for name in ("resource_class", "total"):
            if not self.obj_attr_is_set(name):
                raise exception.InvalidInventory(
                    resource_class=self.value("resource_class", "?"), reason=f"{name} is missing")
        values = {name: self.value(name, default) for name, default in _DEFAULTS.items()}
        values["total"] = self.total
        if values["reserved"] > self.total:
            raise self._invalid(f"{values['reserved']} reserved of a total of {self.total}")
        if values["min_unit"] > values["max_unit"]:
            raise self._invalid(
                f"min_unit {values['min_unit']} is above max_unit {values['max_unit']}")
        values["capacity"] = self.capacity
        return values

    def _invalid(self, reason):
        return exception.InvalidInventory(resource_class=self.resource_class, reason=reason)


@base.PlacementObjectRegistry.register
class InventoryList(base.PlacementObjectList):
    """The inventories of one provider, and the generation at which it has them."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "objects": fields.ListOfObjectsField("Inventory"),
        "provider_uuid": fields.field(fields.Uuid()),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
    }

    @classmethod
    def of_provider(cls, tx, row):
        """:param row: row of a provider"""
        return cls.of_rows(row.uuid, row.generation, queries.of_provider(tx, row.id))

    @classmethod
    def of_rows(cls, uuid, generation, rows):
        """:param rows: rows of the inventory query"""
        return lean.stored(cls, provider_uuid=uuid, generation=generation,
                           objects=[Inventory.of_row(each) for each in rows])

    @classmethod
    def get(cls, context, provider_uuid):
        """:raises ProviderNotFound: where there is no such provider"""
        with context.database.reader() as tx:
            return cls.of_provider(tx, known(tx, provider_uuid))
