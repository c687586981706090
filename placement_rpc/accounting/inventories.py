# SPDX-License-Identifier: Apache-2.0
"""The rules of changing inventories (DESIGN section 4), applied to a locked state.

Changes are applied to the :class:`LockedInventories` of a provider one after the other. Each is
either accepted, which changes the state, or refused, which leaves the state as it was.
"""

import contextlib
import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from placement_rpc import exception
from placement_rpc.accounting import locked_state
from placement_rpc.accounting.locked_state import InventoryEntry, LockedState, Scope
from placement_rpc.accounting.outbox import Outbox, primitive
from placement_rpc.candidates import capacity
from placement_rpc.db import api as db
from placement_rpc.db.queries import bulk
from placement_rpc.objects import codec
from placement_rpc.objects.inventory import Inventory, InventoryList, capacity_of
from placement_rpc.objects.payloads import (
    CapacityExceededPayload,
    InventoryChange,
    InventoryPayload,
)
from placement_rpc.objects.resource_class import canonical

_DEFAULTS = {name: Inventory.fields[name].default for name in (
    "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")}
_COERCIONS = {name: Inventory.fields[name].coerce for name in ("total", *_DEFAULTS)}

#: The stored values of an inventory by column.
Columns = dict[str, Any]
#: Whether a capacity may be set below what is used: an error, if it may be but for that error.
BelowUse = bool | exception.UpgradeInProgress


class LockedInventories:
    """The view of a locked state through which the inventories of one provider change.

    :param generation: the generation of the provider that the caller read; None for any
    :raises ProviderNotFound: if there is no such provider
    :raises ConcurrentUpdate: if the provider is at another generation
    """

    def __init__(self, state: LockedState, provider_uuid: str, generation: int | None = None):
        provider = state.providers_by_uuid.get(provider_uuid)
        if provider is None:
            raise exception.ProviderNotFound(provider=provider_uuid)
        if generation is not None and generation != provider.generation:
            raise exception.ConcurrentUpdate(
                provider=provider_uuid, current=provider.generation, given=generation)
        self._state = state
        self._provider = provider
        self._entries = {state.class_names[class_id]: entry
                         for class_id, entry in provider.inventories.items()}
        self._changed: list[str] = []

    @property
    def classes(self) -> set[str]:
        """The names of the classes of which the provider has an inventory."""
        return set(self._entries)

    def inventories(self) -> InventoryList:
        """Return the inventories after the last change."""
        return codec.stored(
            InventoryList, provider_uuid=self._provider.uuid,
            generation=self._provider.generation,
            updated_at=bulk.now().isoformat() if self._entries else None,
            objects=[codec.stored(Inventory, **_values(name, entry)) for name, entry in sorted(
                self._entries.items(), key=lambda item: item[1].resource_class_id)])

    def change(self, wanted: Mapping[str, Columns], removed: Collection[str], outbox: Outbox,
               below_use: BelowUse = False, final: bool = True) -> None:
        """Change inventories: all that are given, or none; equal ones change nothing.

        The generation of the provider is raised if anything changes.

        :param wanted: class name to the columns of its inventory
        :param removed: names of the classes whose inventories are removed
        :param below_use: whether a capacity may shrink below what is used; it always may if the
            option ``[claims] allow_capacity_below_use`` is set
        :param final: whether the request changes no allocations after that; otherwise it calls
            :meth:`record_excess` when it has
        :raises InventoryInUse: if something is allocated from an inventory that is removed
        :raises CapacityConflict: if a capacity shrinks below what is used, and may not
        :raises UpgradeInProgress: the same, if it may not yet
        :raises ResourceClassNotFound: if there is no class of a name
        """
        added = [name for name in wanted if name not in self._entries]
        for name in added:
            self.check_class(name)
        in_use = sorted((name for name in removed if self._entries[name].used),
                        key=lambda name: self._entries[name].resource_class_id)
        if in_use:
            used = [self._entries[name].used for name in in_use]
            raise exception.InventoryInUse(
                provider=self._provider.uuid, resource_class=", ".join(in_use),
                used=used[0] if len(used) == 1 else ", ".join(map(str, used)))
        changed = [name for name, values in wanted.items()
                   if name in self._entries and differs(self._entries[name], values)]
        if not self._state.may_overfill:
            for name in changed:
                self._check_shrinking(name, wanted[name]["capacity"], below_use)
        self._changed = changed
        if removed or changed or added:
            self._put(wanted, removed, changed, added, outbox)
        if final:
            self.record_excess(outbox)

    def record_excess(self, outbox: Outbox) -> None:
        """Record which inventories have a capacity below what is used, of the last change."""
        for name in self._changed:
            self._record_excess(outbox, name)

    def check_class(self, name: str) -> None:
        """Check that a class of the scope exists.

        :raises ResourceClassNotFound: if it does not
        """
        if name not in self._state.class_ids:
            raise exception.ResourceClassNotFound(resource_class=name)

    def _check_shrinking(self, name, new_capacity, below_use):
        # An inventory that is over its capacity may become less so: a change that frees is never
        # refused (upstream bugs 1943191 and 2104040).
        entry = self._entries[name]
        if capacity.is_over(new_capacity, entry.used) and new_capacity < entry.capacity:
            if isinstance(below_use, exception.PlacementException):
                raise below_use
            if below_use:
                return
            raise exception.CapacityConflict(
                provider=self._provider.uuid, resource_class=name, capacity=new_capacity,
                used=entry.used)

    def _put(self, wanted, removed, changed, added, outbox):
        before = dict(self._entries)
        provider = self._provider
        if provider.read_inventories is None:
            provider.read_inventories = dict(provider.inventories)
        for name in removed:
            del provider.inventories[self._entries.pop(name).resource_class_id]
        for name in changed:
            self._set(name, dataclasses.replace(self._entries[name], **wanted[name]))
        for name in added:
            class_id = self._state.class_ids[name]
            # If it was removed earlier in the same transaction, it keeps its row.
            stored = provider.read_inventories.get(class_id)
            self._set(name, InventoryEntry(
                id=stored and stored.id, resource_provider_id=provider.id,
                resource_class_id=class_id, used=0, **wanted[name]))
        previous, _ = provider.raise_generation()
        for kind, names in (("delete", removed), ("update", changed), ("create", added)):
            if names:
                self._record(outbox, kind, previous, before, sorted(names))

    def _set(self, name, entry):
        self._entries[name] = self._provider.inventories[entry.resource_class_id] = entry

    def _record(self, outbox, kind, previous, before, names):
        outbox.add_plain(
            f"inventory.{kind}", InventoryPayload, provider_uuid=self._provider.uuid,
            generation=self._provider.generation, previous_generation=previous, inventories=[
                primitive(InventoryChange, resource_class=name,
                          before=_primitive(name, before.get(name)),
                          after=_primitive(name, self._entries.get(name))) for name in names])

    def _record_excess(self, outbox, name):
        entry = self._entries[name]
        if capacity.is_over(entry.capacity, entry.used):
            outbox.add("inventory.capacity_exceeded", CapacityExceededPayload(
                provider_uuid=self._provider.uuid, generation=self._provider.generation,
                capacity=entry.capacity, resource_class=name, used=entry.used))


def _values(name, entry):
    """Return the fields of an inventory, by the name of its class and its entry."""
    return {field: name if field == "resource_class" else getattr(entry, field)
            for field in Inventory.fields}


def _primitive(name, entry):
    """Return the serialized form of an inventory; None for None."""
    return entry and primitive(Inventory, **_values(name, entry))


@contextlib.contextmanager
def _locked(tx, provider_uuid, classes, generation=None):
    """Lock the state of one provider and yield its inventories; write what the block changes."""
    state = locked_state.lock(tx, Scope(
        providers={provider_uuid}, classes=set(classes), inventories_change=True))
    yield LockedInventories(state, provider_uuid, generation)
    locked_state.write(tx, state)


def merge(tx: db.Connection, outbox: Outbox, provider_uuid: str, wanted: Mapping[str, Columns],
          classes: Collection[str], below_use: BelowUse = False) -> InventoryList:
    """Set the inventories of some classes, and leave those of all others as they are.

    :param wanted: class name to the columns of its inventory, of these classes only
    :param classes: class names; one that is not among the inventories has none afterwards
    :param below_use: see :meth:`LockedInventories.change`
    :raises ProviderNotFound: if there is no such provider

    It also raises what :meth:`LockedInventories.change` raises.
    """
    with _locked(tx, provider_uuid, wanted) as locked:
        locked.change(wanted, (locked.classes & set(classes)) - wanted.keys(), outbox,
                      below_use)
    return locked.inventories()


def changes(rows: Iterable[Any], wanted: Mapping[str, Columns], classes: Collection[str],
            ) -> list[str]:
    """Return the names of the classes that :func:`merge` would change.

    :param rows: rows of the provider's inventories
    :param wanted: as of :func:`merge`
    """
    current = {each.resource_class: each for each in rows if each.resource_class in classes}
    return sorted(name for name in wanted.keys() | current.keys()
                  if name not in wanted or name not in current or differs(
                      current[name], wanted[name]))


def add(tx: db.Connection, outbox: Outbox, provider_uuid: str, inventory: Inventory,
        generation: int | None = None) -> InventoryList:
    """Add an inventory of a class of which the provider has none.

    :param generation: see :class:`LockedInventories`
    :raises InvalidInventory: if the inventory contradicts itself
    :raises ProviderNotFound: if there is no such provider
    :raises ConcurrentUpdate: if the provider is at another generation
    :raises InventoryExists: if the provider has an inventory of the class
    :raises ResourceClassNotFound: if there is no such class
    """
    wanted = columns_of([inventory])
    with _locked(tx, provider_uuid, wanted, generation) as locked:
        if inventory.resource_class in locked.classes:
            raise exception.InventoryExists(
                provider=provider_uuid, resource_class=inventory.resource_class)
        locked.change(wanted, (), outbox)
    return locked.inventories()


def update(tx: db.Connection, outbox: Outbox, provider_uuid: str, inventory: Inventory,
           generation: int | None = None, below_use: BelowUse = False) -> InventoryList:
    """Change the inventory of one class.

    :param generation: see :class:`LockedInventories`
    :param below_use: see :meth:`LockedInventories.change`
    :raises InvalidInventory: if the inventory contradicts itself
    :raises ProviderNotFound: if there is no such provider
    :raises ConcurrentUpdate: if the provider is at another generation
    :raises ResourceClassNotFound: if there is no such class
    :raises InventoryNotFound: if the provider has no inventory of the class
    :raises CapacityConflict: if the capacity shrinks below what is used, and may not
    :raises UpgradeInProgress: the same, if it may not yet
    """
    wanted = columns_of([inventory])
    with _locked(tx, provider_uuid, wanted, generation) as locked:
        locked.check_class(inventory.resource_class)
        _check_has(locked, provider_uuid, inventory.resource_class)
        locked.change(wanted, (), outbox, below_use)
    return locked.inventories()


def delete(tx: db.Connection, outbox: Outbox, provider_uuid: str, resource_class: str,
           generation: int | None = None) -> InventoryList:
    """Delete the inventory of one class.

    :param generation: see :class:`LockedInventories`
    :returns: the inventories that are left
    :raises ProviderNotFound: if there is no such provider
    :raises ConcurrentUpdate: if the provider is at another generation
    :raises ResourceClassNotFound: if there is no such class
    :raises InventoryNotFound: if the provider has no inventory of the class
    :raises InventoryInUse: if something is allocated from it
    """
    resource_class = canonical(resource_class)
    with _locked(tx, provider_uuid, {resource_class}, generation) as locked:
        locked.check_class(resource_class)
        _check_has(locked, provider_uuid, resource_class)
        locked.change({}, {resource_class}, outbox)
    return locked.inventories()


def _check_has(locked, provider_uuid, resource_class):
    if resource_class not in locked.classes:
        raise exception.InventoryNotFound(
            provider=provider_uuid, resource_class=resource_class)


def columns(inventory: Inventory, may_contradict: bool = False) -> Columns:
    """Return the values to store of an inventory, defaults filled in.

    :param may_contradict: whether more may be reserved than there is; the capacity then is 0
    :returns: dict of column to value, without the class
    :raises InvalidInventory: if a value is missing, or they contradict each other
    """
    for name in ("resource_class", "total"):
        if not inventory.obj_attr_is_set(name):
            raise exception.InvalidInventory(
                resource_class=inventory.value("resource_class", "?"),
                reason=f"{name} is missing")
    values = {name: inventory.value(name, default) for name, default in _DEFAULTS.items()}
    values["total"] = inventory.total
    return _with_capacity(inventory.resource_class, values, may_contradict)


def checked(resource_class: str, values: Columns) -> Columns:
    """Return the values to store of an inventory, from values of which no object was made.

    :param values: those of all columns but ``capacity``
    :raises ValueError: if a value is not valid
    :raises InvalidInventory: if they contradict each other
    """
    return _with_capacity(resource_class, {
        name: _COERCIONS[name](None, name, value) for name, value in values.items()})


def _with_capacity(resource_class, values, may_contradict=False):
    found = capacity_of(values["total"], values["reserved"], values["allocation_ratio"])
    if found < 0 and not may_contradict:
        raise exception.InvalidInventory(
            resource_class=resource_class,
            reason=f"{values['reserved']} reserved of a total of {values['total']}, at a ratio of "
                   f"{values['allocation_ratio']:g}, is a capacity of {found}. The reserved value "
                   "is greater than total.")
    values["capacity"] = max(0, found)
    return values


def inventory_list(uuid: str, generation: int, rows: Iterable[Any]) -> InventoryList:
    """Return the inventories of a provider.

    :param rows: as :func:`placement_rpc.db.queries.inventories.of_provider` returns them
    """
    return codec.stored(
        InventoryList, provider_uuid=uuid, generation=generation,
        updated_at=max((row.updated_at.isoformat() for row in rows), default=None),
        objects=[codec.stored(
            Inventory, **{name: getattr(row, name) for name in Inventory.fields})
            for row in rows])


def columns_of(inventories: Iterable[Inventory], may_contradict: bool = False,
               ) -> dict[str, Columns]:
    """Return the values to store of inventories, by class name.

    :param may_contradict: as of :func:`columns`
    :raises InvalidInventory: if one contradicts itself, or two are of one class
    """
    wanted = {}
    for inventory in inventories:
        values = columns(inventory, may_contradict)
        if inventory.resource_class in wanted:
            raise exception.InvalidInventory(
                resource_class=inventory.resource_class, reason="it is given twice")
        wanted[inventory.resource_class] = values
    return wanted


def differs(inventory: Any, values: Columns) -> bool:
    """Return whether a stored inventory has other values than these.

    :param inventory: an object with an attribute for each column
    """
    return any(getattr(inventory, name) != value for name, value in values.items())
