# SPDX-License-Identifier: Apache-2.0
"""Inventories: how much of a class a provider has, and what may be taken of it at a time."""

import decimal

from placement_rpc import exception
from placement_rpc.db import api as db
from placement_rpc.db.queries import inventories as queries
from placement_rpc.objects import base, fields
from placement_rpc.objects.payloads import (
    CapacityExceededPayload,
    InventoryChange,
    InventoryPayload,
)
from placement_rpc.objects.resource_class import canonical, resolve
from placement_rpc.objects.resource_provider import known, locked, raise_generation

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
        return cls(**{name: getattr(row, name) for name in cls.fields})

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
        return cls(provider_uuid=row.uuid, generation=row.generation,
                   objects=[Inventory.of_row(each) for each in queries.of_provider(tx, row.id)])

    @classmethod
    def get(cls, context, provider_uuid):
        """:raises ProviderNotFound: where there is no such provider"""
        with context.database.reader() as tx:
            return cls.of_provider(tx, known(tx, provider_uuid))


def replace_all(tx, journal, provider_uuid, inventories, generation=None):
    """Set all inventories of a provider; equal ones change nothing (DESIGN section 4).

    :param inventories: list of :class:`Inventory`
    :param generation: int, see :func:`~placement_rpc.objects.resource_provider.locked`
    :returns: :class:`InventoryList`
    :raises ProviderNotFound: :raises ConcurrentUpdate: :raises ResourceClassNotFound:
    :raises InvalidInventory: :raises InventoryInUse: :raises CapacityConflict:
    """
    wanted = _wanted(inventories)
    row = locked(tx, provider_uuid, generation)
    current = {each.resource_class: each for each in queries.of_provider(tx, row.id)}
    return _apply(tx, journal, row, current, wanted, gone=set(current) - set(wanted))


def merge(tx, journal, provider_uuid, inventories, classes):
    """Set the inventories of some classes, and leave those of all others as they are.

    :param inventories: list of :class:`Inventory`, of these classes
    :param classes: collection of class names; one without an inventory has none from then on
    :returns: :class:`InventoryList`, and what :func:`replace_all` raises
    """
    wanted = _wanted(inventories)
    row = locked(tx, provider_uuid)
    current = {each.resource_class: each for each in queries.of_provider(tx, row.id)}
    return _apply(tx, journal, row, current, wanted,
                  gone=(set(current) & set(classes)) - set(wanted))


def changes(rows, inventories, classes):
    """What :func:`merge` would change.

    :param rows: list of rows of the provider's inventories
    :returns: list of class names
    """
    wanted = _wanted(inventories)
    current = {each.resource_class: each for each in rows if each.resource_class in classes}
    return sorted(name for name in wanted.keys() | current.keys()
                  if name not in wanted or name not in current or _differs(
                      current[name], wanted[name]))


def add(tx, journal, provider_uuid, inventory, generation=None):
    """Add an inventory of a class that the provider has none of.

    :raises InventoryExists: and what :func:`replace_all` raises
    """
    wanted = _wanted([inventory])
    row = locked(tx, provider_uuid, generation)
    current = {each.resource_class: each for each in queries.of_provider(tx, row.id)}
    if inventory.resource_class in current:
        raise exception.InventoryExists(
            provider=provider_uuid, resource_class=inventory.resource_class)
    return _apply(tx, journal, row, current, wanted)


def update(tx, journal, provider_uuid, inventory, generation=None):
    """Change the inventory of one class.

    :raises InventoryNotFound: and what :func:`replace_all` raises
    """
    wanted = _wanted([inventory])
    row = locked(tx, provider_uuid, generation)
    current = _having(tx, row, inventory.resource_class)
    return _apply(tx, journal, row, current, wanted)


def delete(tx, journal, provider_uuid, resource_class, generation=None):
    """Delete the inventory of one class.

    :raises InventoryNotFound: :raises InventoryInUse: :raises ProviderNotFound:
    :raises ConcurrentUpdate:
    """
    resource_class = canonical(resource_class)
    row = locked(tx, provider_uuid, generation)
    current = _having(tx, row, resource_class)
    return _apply(tx, journal, row, current, {}, gone={resource_class})


def _wanted(inventories):
    wanted = {}
    for inventory in inventories:
        values = inventory.columns()
        if inventory.resource_class in wanted:
            raise exception.InvalidInventory(
                resource_class=inventory.resource_class, reason="it is given twice")
        wanted[inventory.resource_class] = values
    return wanted


def _having(tx, row, resource_class):
    current = {each.resource_class: each for each in queries.of_provider(tx, row.id)}
    if resource_class not in current:
        raise exception.InventoryNotFound(provider=row.uuid, resource_class=resource_class)
    return current


def _apply(tx, journal, row, current, wanted, gone=()):
    """Write what differs; the provider's generation rises if anything does."""
    for name in sorted(gone):
        if current[name].used:
            raise exception.InventoryInUse(
                provider=row.uuid, resource_class=name, used=current[name].used)
    changed = {name: values for name, values in wanted.items()
               if name in current and _differs(current[name], values)}
    for name, values in changed.items():
        _check_shrinking(tx, row, current[name], values)
    added = {name: values for name, values in wanted.items() if name not in current}
    if not (gone or changed or added):
        return InventoryList.of_provider(tx, row)
    if gone:
        queries.delete(tx, [current[name].id for name in gone])
    if changed:
        queries.update(tx, {current[name].id: values for name, values in changed.items()})
    if added:
        ids = resolve(tx, added)
        queries.insert(tx, row.id, [
            {**values, "resource_class_id": ids[name]} for name, values in added.items()])
    generation = raise_generation(tx, row)
    result = InventoryList.of_provider(tx, row)
    result.generation = generation
    now = {each.resource_class: each for each in result.objects}
    for kind, names in (("delete", gone), ("update", changed), ("create", added)):
        if names:
            journal.add(f"inventory.{kind}", InventoryPayload(
                provider_uuid=row.uuid, generation=generation,
                previous_generation=row.generation, inventories=[
                    InventoryChange(
                        resource_class=name, after=now.get(name),
                        before=Inventory.of_row(current[name]) if name in current else None)
                    for name in sorted(names)]))
    _note_over_full(journal, row, generation, (now[name] for name in changed))
    return result


def _note_over_full(journal, row, generation, inventories):
    for each in inventories:
        if each.used > each.capacity:
            journal.add("inventory.capacity_exceeded", CapacityExceededPayload(
                provider_uuid=row.uuid, generation=generation, capacity=each.capacity,
                resource_class=each.resource_class, used=each.used))


def _differs(row, values):
    return any(getattr(row, name) != value for name, value in values.items())


def _check_shrinking(tx, row, inventory, values):
    if tx.info.get(db.MAY_OVERFILL):
        return
    # What is over-full already may become less so: a change that frees is never in the way
    # (upstream bugs 1943191 and 2104040).
    capacity = values["capacity"]
    if capacity < inventory.used and capacity < inventory.capacity:
        raise exception.CapacityConflict(
            provider=row.uuid, resource_class=inventory.resource_class, capacity=capacity,
            used=inventory.used)
