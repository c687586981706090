# SPDX-License-Identifier: Apache-2.0
"""What listeners have to take back after the store has lost events that were published.

``outbox.reconciled`` has the present state of all that these events name, and those that are
published again at other positions: to a listener that does not know their ids they contradict what
it knows. Its rows are locked while it is written, as a snapshot's are: changes before it have
events before it, and changes after it have events after it. On a Galera cluster they are written,
too, since other nodes do not see the locks.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from placement_rpc import exception
from placement_rpc.accounting import snapshot
from placement_rpc.accounting.outbox import Outbox, primitive
from placement_rpc.db.api import Connection, Database
from placement_rpc.db.queries import (
    aggregates,
    claims,
    consumer_types,
    events,
    inventories,
    providers,
    relaying,
    resource_classes,
    snapshots,
    traits,
)
from placement_rpc.objects.inventory import Inventory
from placement_rpc.objects.payloads import (
    LostEvent,
    OutboxReconciledPayload,
    ReconciledConsumer,
    ReconciledProvider,
    StoreImportPayload,
)

# Events, providers, and consumers of one event at most.
_PART = 200
_IMPORT = "store.import"
_RULES = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio", "used")


class Named(NamedTuple):
    """What events name: uuids of providers and consumers, names of classes and traits."""

    providers: list[str]
    consumers: list[str]
    resource_classes: list[str]
    traits: list[str]


def named(lost: Iterable[Any]) -> Named:
    """Return what events name, in order.

    :param lost: of :class:`placement_rpc.notifications.event.Event`
    """
    found: dict[str, set[str]] = {name: set() for name in Named._fields}
    for event in lost:
        payload = event.payload
        found["providers"] |= event.providers
        if event.event_type == "outbox.reconciled":
            found["consumers"].update(each["consumer_uuid"] for each in payload["consumers"])
        for name in ("parent_provider_uuid", "previous_parent_provider_uuid"):
            if isinstance(payload.get(name), str):
                found["providers"].add(payload[name])
        if isinstance(payload.get("consumer_uuid"), str):
            found["consumers"].add(payload["consumer_uuid"])
        kind = event.event_type.partition(".")[0]
        if kind in ("resource_class", "trait"):
            key = "traits" if kind == "trait" else "resource_classes"
            found[key].update(payload[name] for name in ("name", "previous_name")
                              if isinstance(payload.get(name), str))
    return Named(*(sorted(found[name]) for name in Named._fields))


def reconcile(database: Database, found: events.Comparison) -> str:
    """Write the events that say what is taken back, and continue in a new epoch.

    Each part is written in a transaction of its own, the last one together with the new epoch: a
    reconciliation that is interrupted is begun again. Nothing is written in a transaction that
    finds the store changed since the comparison.

    :returns: the epoch
    :raises ServiceUnavailable: if positions were given since the comparison
    """
    names = named([*found.lost, *found.moved])
    number = max(1, *(-(-len(each) // _PART) for each in (
        found.lost, names.providers, names.consumers)))
    for part in range(1, number):
        database.write(lambda tx, part=part: _record(tx, found, names, part, number), "reconcile")

    def finish(tx):
        _record(tx, found, names, number, number)
        if any(event.event_type == _IMPORT for event in found.lost):
            _announce_import(tx)
        return relaying.continue_after(tx, found.agreed, found.last)

    return database.write(finish, "reconcile")


def _announce_import(tx):
    """Have listeners read everything again: no event names what a lost import has brought."""
    outbox = Outbox()
    outbox.add(_IMPORT, StoreImportPayload(passes=0, finished=True))
    outbox.write(tx)
    snapshot.begin_in(tx)


def _record(tx, found, names, part, parts):
    """Write one of the events.

    :raises ServiceUnavailable: if positions were given since the comparison
    """
    state = events.state(tx, lock=True)
    if found.state is not None and state != found.state:
        raise exception.ServiceUnavailable(
            reason="positions were given to events meanwhile; try again")
    some = slice((part - 1) * _PART, part * _PART)
    # The order in which claims lock rows.
    consumers = _consumers(tx, names.consumers[some])
    providers_now = _providers(tx, names.providers[some])
    classes, known = (names.resource_classes, names.traits) if part == parts else ((), ())
    outbox = Outbox()
    outbox.add_plain(
        "outbox.reconciled", OutboxReconciledPayload,
        previous_epoch=found.state.epoch if found.state is not None else None,
        agreed_position=found.agreed, part=part, parts=parts,
        lost_events=[primitive(
            LostEvent, event_id=event.event_id, event_type=event.event_type,
            position=event.position, epoch=event.epoch) for event in found.lost[some]],
        providers=providers_now, consumers=consumers,
        resource_classes=_exist(classes, resource_classes.ids(tx, classes) if classes else {}),
        traits=_exist(known, traits.ids(tx, known) if known else {}))
    outbox.write(tx)


def _exist(names: Iterable[str], found: Mapping[str, int]) -> dict[str, bool]:
    return {name: name in found for name in names}


def _consumers(tx: Connection, uuids: list[str]) -> list[dict]:
    rows = {row.uuid: row for row in claims.lock_consumers(tx, uuids)} if uuids else {}
    claims.touch(tx, consumers={row.id for row in rows.values()})
    held: dict[int, dict[str, dict[str, int]]] = {}
    for row in snapshots.held(tx, [each.id for each in rows.values()]) if rows else ():
        held.setdefault(row.consumer_id, {}).setdefault(
            row.provider_uuid, {})[row.resource_class] = row.used
    types = {row.consumer_type_id for row in rows.values()} - {None}
    type_names = consumer_types.names(tx, types) if types else {}
    return [_consumer(uuid, rows.get(uuid), held, type_names) for uuid in uuids]


def _consumer(uuid, row, held, type_names):
    allocations = held.get(row.id, {}) if row is not None else {}
    if not allocations:
        return primitive(
            ReconciledConsumer, consumer_uuid=uuid, consumer_generation=0, project_id=None,
            user_id=None, consumer_type=None, allocations={})
    return primitive(
        ReconciledConsumer, consumer_uuid=uuid, consumer_generation=row.generation,
        project_id=row.project_id, user_id=row.user_id,
        consumer_type=type_names.get(row.consumer_type_id), allocations=allocations)


def _providers(tx: Connection, uuids: list[str]) -> list[dict]:
    if uuids:
        claims.touch(tx, providers={row.id for row in claims.lock_providers(tx, uuids)})
    return [_provider(tx, uuid) for uuid in uuids]


def _provider(tx, uuid):
    row = providers.get(tx, uuid)
    if row is None:
        return primitive(
            ReconciledProvider, provider_uuid=uuid, generation=None, name=None,
            parent_provider_uuid=None, root_provider_uuid=None, inventories=[], aggregates=[],
            traits=[])
    return primitive(
        ReconciledProvider, provider_uuid=uuid, generation=row.generation, name=row.name,
        parent_provider_uuid=row.parent_uuid, root_provider_uuid=row.root_uuid,
        inventories=[primitive(Inventory, resource_class=each.resource_class, **{
            name: getattr(each, name) for name in _RULES})
            for each in inventories.of_provider(tx, row.id)],
        aggregates=sorted(aggregates.of_provider(tx, row.id)),
        traits=list(traits.of_provider(tx, row.id)))
