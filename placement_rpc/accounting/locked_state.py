# SPDX-License-Identifier: Apache-2.0
"""The one state that a change of allocations or inventories locks, reads, changes and writes.

:func:`lock` locks and reads the rows that a set of requests concerns, and :func:`write` writes the
result. In between, views change the state: :class:`placement_rpc.accounting.ledger.Ledger` applies
allocations to it, and :class:`placement_rpc.accounting.inventories.LockedInventories` changes the
inventories of one provider. One transaction can do both, in any order.

Every transaction locks in the same order: consumers and providers as
:mod:`placement_rpc.db.queries.locked_reads` says, then custom resource classes by id.
"""

import contextlib
import dataclasses
import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from placement_rpc.accounting import resource_classes
from placement_rpc.accounting.consumer_tags import consumer_tag
from placement_rpc.db import api as db
from placement_rpc.db.queries import claims as queries
from placement_rpc.db.queries import consumer_types, locked_reads
from placement_rpc.db.queries import inventories as inventory_queries

#: Provider id and class id.
InventoryKey = tuple[int, int]


@dataclasses.dataclass(slots=True)
class InventoryEntry:
    """An inventory; ``id`` is None until it is stored.

    The fields are the columns of :data:`placement_rpc.db.queries.inventories.COLUMNS`, in that
    order. Claims change ``used`` in place; a change of anything else makes a new entry.
    """

    id: int | None
    resource_provider_id: int
    resource_class_id: int
    used: int
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    capacity: int


@dataclasses.dataclass(slots=True)
class ProviderEntry:
    """A resource provider and its inventories by class id.

    ``read_generation`` is the generation in the database. ``read_inventories`` are the inventories
    in the database; None while they are the same but for ``used``.
    """

    id: int
    uuid: str
    generation: int
    read_generation: int
    inventories: dict[int, InventoryEntry] = dataclasses.field(default_factory=dict)
    read_inventories: dict[int, InventoryEntry] | None = None

    def raise_generation(self) -> tuple[int, int]:
        """Count one change of the provider (DESIGN rule 2).

        :returns: the generation before and after the change
        """
        previous, self.generation = self.generation, self.generation + 1
        return previous, self.generation


@dataclasses.dataclass(slots=True)
class ConsumerEntry:
    """A consumer; its generation is 0 while it holds nothing.

    ``id`` is the id of the row. It is None while there is no row, and after the consumer has
    released everything: its next allocations get a new row. ``read_id`` is the id of the row that
    was read from the database, ``created_at`` the time at which that row was inserted, and
    ``changed_at`` the time of its last committed change. ``held`` maps provider id and class
    id to an amount; ``read_held`` is the same as the database has it. ``consumer_type`` is the
    name of its type, None if that is not known.
    """

    uuid: str
    id: int | None = None
    generation: int = 0
    project_id: str = ""
    user_id: str = ""
    held: dict[InventoryKey, int] = dataclasses.field(default_factory=dict)
    read_held: dict[InventoryKey, int] = dataclasses.field(default_factory=dict)
    changed: bool = False
    created_at: datetime.datetime | None = None
    changed_at: datetime.datetime | None = None
    read_id: int | None = None
    consumer_type: str | None = None

    @property
    def tag(self) -> str | None:
        """Its entity tag; None if its row is not stored."""
        if self.id is None or self.created_at is None:
            return None
        return consumer_tag(self.id, self.created_at, self.generation)


@dataclasses.dataclass(slots=True)
class Scope:
    """The consumers, providers and classes that a set of requests concerns.

    Consumers and providers are uuids, classes are names. The providers of everything that the
    consumers hold belong to the scope without being named. If ``inventories_change`` is set, the
    custom classes of the inventories and of the requests keep their names until the transaction
    ends; claims alone do not need that, and do not pay for it.
    """

    consumers: set[str] = dataclasses.field(default_factory=set)
    providers: set[str] = dataclasses.field(default_factory=set)
    classes: set[str] = dataclasses.field(default_factory=set)
    inventories_change: bool = False


class LockedState:
    """Consumers, providers with their inventories, and resource classes of one transaction.

    :param consumers: one entry for each consumer of the scope, whether it holds anything or not
    :param class_ids: ids of the classes that the requests name, by name
    :param class_names: names of all classes of the state that are reported, by id
    :param may_overfill: whether a capacity may be set below what is used
    """

    def __init__(self, consumers: Mapping[str, ConsumerEntry], providers: Iterable[ProviderEntry],
                 class_ids: Mapping[str, int], class_names: Mapping[int, str],
                 may_overfill: bool = False):
        self.consumers = consumers
        self.providers = {entry.id: entry for entry in providers}
        self.providers_by_uuid = {entry.uuid: entry for entry in self.providers.values()}
        self.class_ids = class_ids
        self.class_names = class_names
        self.may_overfill = may_overfill
        self._used_changed: set[InventoryKey] = set()

    @contextlib.contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Restore the state if the block raises an error.

        For a request that makes several changes, one of which may be refused. It copies the whole
        state: a request of one change checks everything first, and does not need that.
        """
        entries: list[Any] = [*self.consumers.values(), *self.providers.values(), *(
            entry for provider in self.providers.values()
            for entry in provider.inventories.values())]
        saved = [(entry, dataclasses.replace(entry)) for entry in entries]
        inventories = {id_: dict(each.inventories) for id_, each in self.providers.items()}
        used_changed = set(self._used_changed)
        try:
            yield
        except BaseException:
            for entry, before in saved:
                for field in dataclasses.fields(entry):
                    setattr(entry, field.name, getattr(before, field.name))
            for id_, found in inventories.items():
                self.providers[id_].inventories = found
            self._used_changed = used_changed
            raise

    def use(self, key: InventoryKey, change: int) -> None:
        """Change the used amount of an inventory.

        :param change: difference to the present amount; negative to free
        """
        provider_id, class_id = key
        self.providers[provider_id].inventories[class_id].used += change
        self._used_changed.add(key)

    def used_changes(self) -> list[InventoryEntry]:
        """Return the stored inventories of which another amount is used now."""
        found = []
        for provider_id, class_id in self._used_changed:
            entry = self.providers[provider_id].inventories.get(class_id)
            if entry is not None and entry.id is not None:
                found.append(entry)
        return found

    def used_after(self) -> list[list]:
        """Return the used amounts after the transaction, for the candidate indexes.

        Providers whose inventories changed are left out: their own events tell the indexes to
        read them again.

        :returns: list of provider id, its generation in the database, its generation now, and a
            list of class ids, each followed by what is used of it
        """
        used: dict[int, list[int]] = {}
        for entry in self.used_changes():
            used.setdefault(entry.resource_provider_id, []).extend(
                (entry.resource_class_id, entry.used))
        return [[entry.id, entry.read_generation, entry.generation, used.get(entry.id, [])]
                for entry in self.providers.values()
                if entry.generation != entry.read_generation and entry.read_inventories is None]


def lock(tx: db.Connection, scope: Scope) -> LockedState:
    """Lock and read the rows that a set of requests concerns.

    :raises placement_rpc.db.api.Stale: if a class that the requests name is renamed or deleted
        meanwhile, and inventories change
    """
    return _state(tx, scope, locked_reads.lock(tx, scope.consumers, scope.providers))


def lock_unless_stored(tx: db.Connection, scope: Scope, request_ids: Collection[str],
                       ) -> tuple[Mapping[str, Any], LockedState | None]:
    """As :func:`lock`, unless one of the requests has a stored outcome: then nothing is locked.

    :returns: the rows of the stored outcomes by request id, and the state; None if there are any
    :raises StoreHeld: if one of them has no stored outcome, and the store is held
    """
    found = locked_reads.lock(tx, scope.consumers, scope.providers, request_ids)
    return found.stored, None if found.stored else _state(tx, scope, found)


def _state(tx, scope, found):
    consumers = {uuid: ConsumerEntry(uuid) for uuid in scope.consumers}
    consumers |= {entry.uuid: entry for entry in _consumers(tx, found)}
    providers = {row.id: ProviderEntry(row.id, row.uuid, row.generation, row.generation)
                 for row in found.providers}
    for row in found.inventories:
        entry = InventoryEntry(*row)
        providers[entry.resource_provider_id].inventories[entry.resource_class_id] = entry
    class_ids = resource_classes.ids_of(tx, scope.classes)
    if scope.inventories_change:
        class_names = resource_classes.pinned_names(tx, class_ids, {
            class_id for entry in providers.values() for class_id in entry.inventories})
    else:
        class_names = resource_classes.names_of(tx, class_ids, {
            class_id for entry in consumers.values() for _, class_id in entry.held})
    return LockedState(consumers, providers.values(), class_ids, class_names,
                       tx.info.get(db.MAY_OVERFILL, False))


def _consumers(tx, found):
    """Return the entries of the consumers that have a row."""
    type_ids = {row.consumer_type_id for row in found.consumers} - {None}
    types = {None: None, **(consumer_types.names(tx, type_ids) if type_ids else {})}
    entries = {row.id: ConsumerEntry(
        row.uuid, row.id, row.generation, row.project_id, row.user_id, read_id=row.id,
        created_at=row.created_at, changed_at=row.updated_at,
        consumer_type=types[row.consumer_type_id]) for row in found.consumers}
    for row in found.held:
        entries[row.consumer_id].held[row.resource_provider_id, row.resource_class_id] = row.used
    for entry in entries.values():
        entry.read_held = dict(entry.held)
    return entries.values()


def check_absent(tx: db.Connection, state: LockedState) -> None:
    """Check that consumers that have no row, and get none, have none still.

    There is nothing to lock of a new consumer. Its request may have waited for a provider on which
    another transaction, meanwhile committed, made the consumer hold something: a refusal that
    does not count that as its own would be wrong, and so would a release that leaves it. A
    consumer that gets a row needs no check, since its row would be a duplicate.

    :raises placement_rpc.db.api.Stale: if one of them has a row now
    """
    missing = [uuid for uuid, entry in state.consumers.items()
               if entry.read_id is None and not entry.held]
    if missing and queries.consumer_ids(tx, missing):
        raise db.Stale("a consumer")


def write(tx: db.Connection, state: LockedState, events: Collection[tuple] = (),
          outcomes: Collection[tuple] = ()) -> None:
    """Write all that changed, with the events and the outcomes of the requests.

    :param events: rows as :meth:`placement_rpc.accounting.outbox.Outbox.rows` returns them
    :param outcomes: rows as :meth:`placement_rpc.accounting.idempotency.Request.row` returns them
    :raises placement_rpc.db.api.Stale: if another writer changed one of the providers
    """
    changed = [entry for entry in state.consumers.values() if entry.changed]
    # Allocations refer to inventories: old ones go before, and new ones come after.
    queries.clear(tx, [entry.read_id for entry in changed if entry.read_held],
                  [entry.read_id for entry in changed if entry.read_id != entry.id])
    _write_inventories(tx, state)
    held = [entry for entry in changed if entry.held]
    types = consumer_types.ids(tx, {
        entry.consumer_type for entry in held if entry.consumer_type is not None})
    stored = {entry.id: {"project_id": entry.project_id, "user_id": entry.user_id,
                         "generation": entry.generation,
                         "consumer_type_id": types.get(entry.consumer_type)}
              for entry in held if entry.id}
    if stored:
        queries.update_consumers(tx, stored)
    rows = {
        "consumers": [(entry.uuid, entry.project_id, entry.user_id, entry.generation,
                       types.get(entry.consumer_type)) for entry in held if not entry.id],
        "allocations": [(entry.id, entry.uuid, *key, amount)
                        for entry in held for key, amount in entry.held.items()],
        "used": [(entry.id, entry.used) for entry in state.used_changes()],
        "generations": [(entry.id, entry.read_generation, entry.generation)
                        for entry in state.providers.values()
                        if entry.generation != entry.read_generation],
        "events": events, "requests": outcomes}
    if any(rows.values()) and not queries.write(tx, rows):
        raise db.Stale("a resource provider")


def _write_inventories(tx, state):
    providers = [each for each in state.providers.values() if each.read_inventories is not None]
    removed = [read.id for provider in providers
               for class_id, read in provider.read_inventories.items()
               if class_id not in provider.inventories]
    entries = [(entry, provider.read_inventories.get(class_id)) for provider in providers
               for class_id, entry in provider.inventories.items()]
    changed = [entry for entry, read in entries if read is not None and entry != read]
    added = [entry for entry, read in entries if read is None]
    if removed:
        inventory_queries.delete(tx, removed)
    if changed:
        inventory_queries.update(tx, changed)
    if added:
        inventory_queries.insert(tx, added)
