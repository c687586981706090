# SPDX-License-Identifier: Apache-2.0
"""The rules of changing inventories (DESIGN section 4), on what a transaction has locked.

A :class:`Shelf` holds what a provider has. Changes are applied to it one after the other: each is
accepted, which changes the shelf, or refused, which leaves it as it was. What changed in the end
is written for all shelves of the transaction at once.
"""

from placement_rpc import exception
from placement_rpc.accounting.outbox import primitive
from placement_rpc.accounting.providers import lock
from placement_rpc.accounting.resource_classes import ids_of
from placement_rpc.candidates import capacity
from placement_rpc.db import api as db
from placement_rpc.db.queries import claims, resource_classes
from placement_rpc.db.queries import inventories as queries
from placement_rpc.objects import codec
from placement_rpc.objects.class_names import FIRST_CUSTOM_ID
from placement_rpc.objects.inventory import Inventory, InventoryList
from placement_rpc.objects.payloads import (
    CapacityExceededPayload,
    InventoryChange,
    InventoryPayload,
)
from placement_rpc.objects.resource_class import canonical

_DEFAULTS = {name: Inventory.fields[name].default for name in (
    "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")}


class LockedInventories:
    """The inventories of a locked provider.

    :param row: row of id, uuid and generation of the provider
    :param rows: list of :class:`placement_rpc.db.queries.inventories.Row`
    """

    def __init__(self, row, rows):
        self.id, self.uuid = row.id, row.uuid
        self.generation = self.read_generation = row.generation
        #: dict of class name to row, as it was read and as it is to be
        self.read = {each.resource_class: each for each in rows}
        self.rows = dict(self.read)
        self._given = set()

    def inventories(self):
        """What there is after the last change.

        :returns: :class:`placement_rpc.objects.inventory.InventoryList`
        """
        found = inventory_list(self.uuid, self.generation, sorted(
            self.rows.values(), key=lambda row: row.resource_class_id))
        for each in found.objects:
            if each.resource_class in self._given:
                # As it always was answered: who gave them knows which fields he set.
                each.forget_changes()
        return found

    def change(self, wanted, gone, class_ids, outbox, may_overfill=False):
        """Change inventories, all of them or none; equal ones change nothing.

        The provider's generation rises if anything does change.

        :param wanted: dict of class name to the columns of its inventory
        :param gone: set of the names of classes of which there is to be none
        :param class_ids: dict of class name to id
        :param outbox: :class:`placement_rpc.accounting.outbox.Outbox`
        :param may_overfill: bool, whether capacity may go below what is used
        :raises ResourceClassNotFound: :raises InventoryInUse: :raises CapacityConflict:
        """
        for name in sorted(gone):
            if self.rows[name].used:
                raise exception.InventoryInUse(
                    provider=self.uuid, resource_class=name, used=self.rows[name].used)
        changed = [name for name, values in wanted.items()
                   if name in self.rows and differs(self.rows[name], values)]
        for name in changed:
            if not may_overfill:
                self._check_shrinking(self.rows[name], wanted[name])
        added = [name for name in wanted if name not in self.rows]
        for name in added:
            if name not in class_ids:
                raise exception.ResourceClassNotFound(resource_class=name)
        self._given = {*changed, *added}
        if gone or changed or added:
            self._put(wanted, gone, changed, added, class_ids, outbox)

    def _check_shrinking(self, row, values):
        # What is over-full already may become less so: a change that frees is never in the way
        # (upstream bugs 1943191 and 2104040).
        new = values["capacity"]
        if new < row.used and new < row.capacity:
            raise exception.CapacityConflict(
                provider=self.uuid, resource_class=row.resource_class, capacity=new,
                used=row.used)

    def _put(self, wanted, gone, changed, added, class_ids, outbox):
        before = dict(self.rows)
        for name in gone:
            del self.rows[name]
        for name in changed:
            self.rows[name] = self.rows[name]._replace(**wanted[name])
        for name in added:
            # Deleted a moment ago in the same transaction, it keeps its row.
            row = self.read.get(name)
            self.rows[name] = queries.Row(
                id=row and row.id, resource_provider_id=self.id, used=0, resource_class=name,
                resource_class_id=class_ids[name], **wanted[name])
        previous, self.generation = self.generation, self.generation + 1
        for kind, names in (("delete", gone), ("update", changed), ("create", added)):
            if names:
                self._tell(outbox, kind, previous, before, sorted(names))
        for name in changed:
            self._tell_over_full(outbox, self.rows[name])

    def _tell(self, outbox, kind, previous, before, names):
        outbox.add_plain(
            f"inventory.{kind}", InventoryPayload, provider_uuid=self.uuid,
            generation=self.generation, previous_generation=previous, inventories=[
                primitive(InventoryChange, resource_class=name, before=_told(before.get(name)),
                          after=_told(self.rows.get(name))) for name in names])

    def _tell_over_full(self, outbox, row):
        if row.used > row.capacity:
            outbox.add("inventory.capacity_exceeded", CapacityExceededPayload(
                provider_uuid=self.uuid, generation=self.generation, capacity=row.capacity,
                resource_class=row.resource_class, used=row.used))


def _told(row):
    """:returns: dict, what an inventory looks like on its way; None for none"""
    return row and primitive(Inventory, **{name: getattr(row, name) for name in Inventory.fields})


def read(tx, rows, names):
    """The shelves of locked providers.

    Custom classes that they have, or that are asked for, keep their names until the transaction
    ends: what is written and told of a class is of that name.

    :param rows: list of rows of id, uuid and generation
    :param names: collection of class names that are asked for
    :returns: tuple of a dict of provider uuid to :class:`Shelf`, and a dict of class name to id
    """
    found, class_ids = {}, ids_of(tx, names)
    custom = {id_: name for name, id_ in class_ids.items() if id_ >= FIRST_CUSTOM_ID}
    for each in queries.of_providers(tx, [row.id for row in rows]) if rows else ():
        found.setdefault(each.resource_provider_id, []).append(each)
        if each.resource_class_id >= FIRST_CUSTOM_ID:
            custom[each.resource_class_id] = each.resource_class
    if custom and resource_classes.shared(tx, custom) != custom:
        raise db.Stale("a resource class that is renamed")
    return {row.uuid: LockedInventories(row, found.get(row.id, ())) for row in rows}, class_ids


def write(tx, shelves):
    """Write what changed of shelves, set by set.

    :param shelves: list of :class:`Shelf`
    """
    shelves = [each for each in shelves if each.generation != each.read_generation]
    gone = [row.id for shelf in shelves for name, row in shelf.read.items()
            if name not in shelf.rows]
    changed, added = [], []
    for shelf in shelves:
        for name, row in shelf.rows.items():
            if row.id is None:
                added.append(row)
            elif row != shelf.read[name]:
                changed.append(row)
    if gone:
        queries.delete(tx, gone)
    if changed:
        queries.update(tx, changed)
    if added:
        queries.insert(tx, added)
    if shelves and not claims.set_generations(
            tx, {each.id: each.generation for each in shelves},
            {each.id: each.read_generation for each in shelves}):
        raise db.Stale("a resource provider whose inventories change")


def _change(tx, outbox, shelf, class_ids, wanted, gone=()):
    shelf.change(wanted, gone, class_ids, outbox, tx.info.get(db.MAY_OVERFILL))
    write(tx, [shelf])
    return shelf.inventories()


def _shelf(tx, provider_uuid, names, generation=None):
    """:returns: tuple of the :class:`Shelf` and a dict of class name to id"""
    row = lock(tx, provider_uuid, generation)
    shelves, class_ids = read(tx, [row], names)
    return shelves[row.uuid], class_ids


def merge(tx, outbox, provider_uuid, inventories, classes):
    """Set the inventories of some classes, and leave those of all others as they are.

    :param inventories: list of :class:`Inventory`, of these classes
    :param classes: collection of class names; one without an inventory has none from then on
    :returns: :class:`InventoryList`
    :raises ProviderNotFound: :raises InvalidInventory: and what :meth:`Shelf.change` raises
    """
    wanted = columns_of(inventories)
    shelf, class_ids = _shelf(tx, provider_uuid, wanted)
    return _change(tx, outbox, shelf, class_ids, wanted,
                   (set(shelf.rows) & set(classes)) - set(wanted))


def changes(rows, inventories, classes):
    """What :func:`merge` would change.

    :param rows: list of rows of the provider's inventories
    :returns: list of class names
    """
    wanted = columns_of(inventories)
    current = {each.resource_class: each for each in rows if each.resource_class in classes}
    return sorted(name for name in wanted.keys() | current.keys()
                  if name not in wanted or name not in current or differs(
                      current[name], wanted[name]))


def add(tx, outbox, provider_uuid, inventory, generation=None):
    """Add an inventory of a class that the provider has none of.

    :param generation: int, see :func:`~placement_rpc.accounting.providers.lock`
    :returns: :class:`InventoryList`
    :raises InventoryExists: :raises ProviderNotFound: :raises ConcurrentUpdate:
    :raises InvalidInventory: :raises ResourceClassNotFound:
    """
    wanted = columns_of([inventory])
    shelf, class_ids = _shelf(tx, provider_uuid, wanted, generation)
    if inventory.resource_class in shelf.rows:
        raise exception.InventoryExists(
            provider=provider_uuid, resource_class=inventory.resource_class)
    return _change(tx, outbox, shelf, class_ids, wanted)


def update(tx, outbox, provider_uuid, inventory, generation=None):
    """Change the inventory of one class.

    :raises InventoryNotFound: :raises CapacityConflict: and what :func:`add` raises
    """
    wanted = columns_of([inventory])
    shelf, class_ids = _shelf(tx, provider_uuid, wanted, generation)
    _check_has(shelf, inventory.resource_class)
    return _change(tx, outbox, shelf, class_ids, wanted)


def delete(tx, outbox, provider_uuid, resource_class, generation=None):
    """Delete the inventory of one class.

    :raises InventoryNotFound: :raises InventoryInUse: :raises ProviderNotFound:
    :raises ConcurrentUpdate:
    """
    resource_class = canonical(resource_class)
    shelf, class_ids = _shelf(tx, provider_uuid, (), generation)
    _check_has(shelf, resource_class)
    return _change(tx, outbox, shelf, class_ids, {}, {resource_class})


def _check_has(shelf, resource_class):
    if resource_class not in shelf.rows:
        raise exception.InventoryNotFound(provider=shelf.uuid, resource_class=resource_class)


def columns(inventory):
    """Return the values to store of an inventory, defaults filled in.

    :param inventory: :class:`placement_rpc.objects.inventory.Inventory`
    :returns: dict of column to value, without the class
    :raises InvalidInventory: if a value is missing, or two contradict each other
    """
    for name in ("resource_class", "total"):
        if not inventory.obj_attr_is_set(name):
            raise exception.InvalidInventory(
                resource_class=inventory.value("resource_class", "?"),
                reason=f"{name} is missing")
    values = {name: inventory.value(name, default) for name, default in _DEFAULTS.items()}
    values["total"] = inventory.total
    if values["reserved"] > inventory.total:
        raise _invalid(
            inventory, f"{values['reserved']} reserved of a total of {inventory.total}")
    if values["min_unit"] > values["max_unit"]:
        raise _invalid(
            inventory, f"min_unit {values['min_unit']} is above max_unit {values['max_unit']}")
    values["capacity"] = capacity.capacity_of(
        values["total"], values["reserved"], values["allocation_ratio"])
    return values


def _invalid(inventory, reason):
    return exception.InvalidInventory(resource_class=inventory.resource_class, reason=reason)


def inventory_list(uuid, generation, rows):
    """Return the :class:`placement_rpc.objects.inventory.InventoryList` of a provider.

    :param rows: rows of the inventory query
    """
    return codec.stored(InventoryList, provider_uuid=uuid, generation=generation, objects=[
        codec.stored(Inventory, **{name: getattr(row, name) for name in Inventory.fields})
        for row in rows])


def columns_of(inventories):
    """:returns: dict of class name to the columns of its inventory

    :raises InvalidInventory: when one does not go together, or there are two of a class
    """
    wanted = {}
    for inventory in inventories:
        values = columns(inventory)
        if inventory.resource_class in wanted:
            raise exception.InvalidInventory(
                resource_class=inventory.resource_class, reason="it is given twice")
        wanted[inventory.resource_class] = values
    return wanted


def differs(row, values):
    """:returns: bool, whether an inventory has other columns than these"""
    return any(getattr(row, name) != value for name, value in values.items())
