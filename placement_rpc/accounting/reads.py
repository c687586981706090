# SPDX-License-Identifier: Apache-2.0
"""Reads: each opens a reading transaction and returns versioned objects."""

import datetime
import json
from typing import Any

from placement_rpc import exception
from placement_rpc.accounting import providers as provider_rules
from placement_rpc.accounting.consumer_tags import consumer_tag
from placement_rpc.accounting.inventories import inventory_list
from placement_rpc.accounting.providers import get_or_404
from placement_rpc.db.api import Database
from placement_rpc.db.queries import aggregates as aggregate_queries
from placement_rpc.db.queries import allocations as allocation_queries
from placement_rpc.db.queries import bulk, events, requests
from placement_rpc.db.queries import consumers as consumer_queries
from placement_rpc.db.queries import inventories as inventory_queries
from placement_rpc.db.queries import resource_classes as class_queries
from placement_rpc.db.queries import services as service_queries
from placement_rpc.db.queries import traits as trait_queries
from placement_rpc.objects import codec
from placement_rpc.objects.aggregate import ProviderAggregates
from placement_rpc.objects.allocation import Allocation, AllocationList
from placement_rpc.objects.base import backported
from placement_rpc.objects.codec import without_envelopes
from placement_rpc.objects.consumer import Consumer
from placement_rpc.objects.event_page import EventPage, EventPositions
from placement_rpc.objects.inventory import InventoryList
from placement_rpc.objects.request_result import RequestResult
from placement_rpc.objects.resource_class import ResourceClass, ResourceClassList, canonical
from placement_rpc.objects.resource_provider import ResourceProvider
from placement_rpc.objects.service import Service, ServiceList
from placement_rpc.objects.trait import ProviderTraits, Trait, TraitList
from placement_rpc.objects.usage import Usage, UsageList

# Events that one statement reads: the largest are some megabytes each.
_PART = 100


def provider(database: Database, uuid: str) -> ResourceProvider:
    """Return a :class:`ResourceProvider`.

    :raises ProviderNotFound: if there is no such provider
    """
    with database.reader() as tx:
        return provider_rules.of_row(get_or_404(tx, uuid))


def inventories(database: Database, provider_uuid: str) -> InventoryList:
    """Return the :class:`InventoryList` of a provider.

    :raises ProviderNotFound: if there is no such provider
    """
    first, rows = _with_provider(database, inventory_queries.with_provider, provider_uuid)
    return inventory_list(first.provider_uuid, first.generation, rows)


def usages(database: Database, provider_uuid: str) -> UsageList:
    """Return the :class:`UsageList` of a provider.

    :raises ProviderNotFound: if there is no such provider
    """
    first, rows = _with_provider(database, inventory_queries.with_provider, provider_uuid)
    return UsageList(provider_uuid=first.provider_uuid, generation=first.generation, objects=[
        Usage(resource_class=each.resource_class, used=each.used, capacity=each.capacity)
        for each in rows])


def aggregates(database: Database, provider_uuid: str) -> ProviderAggregates:
    """Return the :class:`ProviderAggregates` of a provider.

    :raises ProviderNotFound: if there is no such provider
    """
    first, rows = _with_provider(database, aggregate_queries.with_provider, provider_uuid)
    return ProviderAggregates(
        provider_uuid=first.provider_uuid, generation=first.generation,
        aggregates=[each.uuid for each in rows])


def consumer_allocations(database: Database, consumer_uuid: str) -> AllocationList:
    """Return the :class:`AllocationList` of a consumer.

    An unknown consumer has no allocations, which is no error (generic-resource-pools,
    GET /allocations/{consumer_uuid}).
    """
    with database.reader() as tx:
        # Before the rows: they include at least what happened until then.
        position = events.last_position(tx)
        rows = allocation_queries.of_consumer(tx, consumer_uuid)
    consumer = rows and Consumer(
        uuid=rows[0].consumer_uuid, generation=rows[0].consumer_generation,
        project_id=rows[0].project_id, user_id=rows[0].user_id,
        consumer_type=rows[0].consumer_type, tag=consumer_tag(
            rows[0].consumer_id, rows[0].consumer_created_at, rows[0].consumer_generation))
    return AllocationList(objects=_allocations(rows), consumer=consumer or None, generation=None,
                          position=position, updated_at=_newest(rows))


def consumer_owner(database: Database, consumer_uuid: str) -> Any:
    """Return the row of project_id, user_id of a consumer; None if it has no allocations."""
    with database.reader() as tx:
        return consumer_queries.owner(tx, consumer_uuid)


def provider_allocations(database: Database, provider_uuid: str) -> AllocationList:
    """Return the :class:`AllocationList` of a provider.

    :raises ProviderNotFound: if there is no such provider
    """
    first, rows = _with_provider(database, allocation_queries.with_provider, provider_uuid)
    return AllocationList(
        objects=_allocations(rows), consumer=None, generation=first.provider_generation,
        position=first.position or 0, updated_at=_newest(rows))


def _with_provider(database, query, uuid):
    """Read a provider and what belongs to it in one statement.

    PostgreSQL and MariaDB show each statement what was committed before it. Two statements could
    answer with a generation and with contents of another one, which a caller would take for the
    contents that a change with this generation replaces.

    :param query: ``with_provider`` of a module of queries
    :returns: tuple of the first row, which has the columns of the provider, and of the list of the
        rows that have an id
    :raises ProviderNotFound: if there is no such provider
    """
    with database.reader() as tx:
        rows = query(tx, uuid)
    if not rows:
        raise exception.ProviderNotFound(provider=uuid)
    return rows[0], [] if rows[0].id is None else rows


def _allocations(rows):
    return [Allocation(**{name: getattr(row, name) for name in Allocation.fields})
            for row in rows]


def _newest(rows):
    """Return the time of the newest of rows with ``updated_at``; None if there are none."""
    return max(row.updated_at for row in rows).isoformat() if rows else None


def resource_class(database: Database, name: str) -> ResourceClass:
    """Return a :class:`ResourceClass`.

    :raises ResourceClassNotFound: if there is no class of that name
    """
    name = canonical(name)
    with database.reader() as tx:
        row = class_queries.get(tx, name)
    if row is None:
        raise exception.ResourceClassNotFound(resource_class=name)
    return _class_of_row(row)


def _class_of_row(row):
    return codec.stored(ResourceClass, name=row.name, updated_at=row.updated_at.isoformat())


def resource_class_page(database: Database, marker: str | None = None, limit: int | None = None,
                        ) -> ResourceClassList:
    """Return a :class:`ResourceClassList` in alphabetical order.

    :param marker: the name after which to begin
    :param limit: the most classes to return
    """
    with database.reader() as tx:
        rows = class_queries.page(tx, marker, limit)
    return ResourceClassList(objects=[_class_of_row(row) for row in rows])


def services(database: Database, down_time: int) -> ServiceList:
    """Return the :class:`ServiceList` of all processes that did not stop in an orderly way.

    :param down_time: seconds without a heartbeat after which a process counts as down
    """
    with database.reader() as tx:
        rows = service_queries.everyone(tx)
    oldest = bulk.now() - datetime.timedelta(seconds=down_time)
    return ServiceList(objects=[
        Service(binary=row.binary, host=row.host, worker=row.worker, version=row.version,
                rpc_version=row.rpc_version, started_at=row.started_at.isoformat(),
                last_seen_at=row.last_seen_at.isoformat(), alive=row.last_seen_at >= oldest,
                pin=row.pin, oldest_caller=row.oldest_caller)
        for row in rows])


def request_result(database: Database, request_id: str) -> RequestResult:
    """Return the :class:`RequestResult` of a settled request.

    :raises RequestNotFound: if nothing is stored under the id
    """
    with database.reader() as tx:
        row = requests.find(tx, [request_id]).get(request_id)
    if row is None:
        raise exception.RequestNotFound(request_id=request_id)
    return RequestResult(request_id=row.request_id, method=row.method, outcome={
        name: value for name, value in json.loads(row.outcome).items()
        if name in ("result", "error")})


def last_position(database: Database) -> int:
    """Return the position of the newest event; everything read from now on includes it."""
    with database.reader() as tx:
        return events.last_position(tx)


def event_positions(database: Database) -> EventPositions:
    """Return the :class:`EventPositions` as they are now."""
    with database.reader() as tx:
        return _positions(tx)


def _positions(tx):
    oldest, last = events.bounds(tx)
    return EventPositions(last=last, oldest=last + 1 if oldest is None else oldest)


def events_after(database: Database, after: int | None, limit: int, size: int,
                 versions: dict[str, str] | None = None) -> EventPage:
    """Return an :class:`EventPage` of the events after a position.

    :param after: None to begin with the oldest event that is kept
    :param limit: the most events to return
    :param size: int, characters of JSON: no event is added after they are reached
    :param versions: dict of object name to the version that the reader knows; None for those of
        this release
    :raises EventsPruned: if some of these events are no longer kept
    :raises InvalidInput: if the position was not assigned yet
    """
    with database.reader() as tx:
        start = _positions(tx).oldest - 1 if after is None else after
        rows = _rows_after(tx, start, limit, size)
        # After the rows: what is pruned in between is then reported as pruned, and not left out.
        bounds = _positions(tx)
    if start > max(bounds.last, rows[-1].position if rows else 0):
        raise exception.InvalidInput(
            what="after",
            reason=f"position {start} was not assigned yet; the last is {bounds.last}")
    # Positions without an event after the oldest one are of changes that the store has lost.
    if start + 1 < bounds.oldest and start < bounds.last:
        if after is None:
            # The oldest event was pruned meanwhile: begin with the one that is the oldest now.
            return events_after(database, after, limit, size, versions)
        raise exception.EventsPruned(after=after, oldest=bounds.oldest)
    return EventPage(position=rows[-1].position if rows else start, events=[
        _event(row, without_envelopes(backported(json.loads(row.payload), versions or {})))
        for row in rows])


def _rows_after(tx, position, limit, size):
    """Return rows of events in parts, since some events are large; see :func:`events_after`."""
    rows: list = []
    while len(rows) < limit and size > 0:
        wanted = min(_PART, limit - len(rows))
        part = events.after(tx, rows[-1].position if rows else position, wanted)
        for row in part:
            if size <= 0:
                break
            rows.append(row)
            size -= len(row.payload)
        if len(part) < wanted:
            break
    return rows


def _event(row, payload):
    return {"position": row.position, "event_type": row.event_type,
            "event_id": payload["event_id"], "occurred_at": payload["occurred_at"],
            "payload": {**payload, "position": row.position, **(
                {"epoch": row.epoch} if "epoch" in payload else {})}}


def provider_traits(database: Database, provider_uuid: str) -> ProviderTraits:
    """Return the :class:`ProviderTraits` of a provider.

    :raises ProviderNotFound: if there is no such provider
    """
    first, rows = _with_provider(database, trait_queries.with_provider, provider_uuid)
    return ProviderTraits(provider_uuid=first.provider_uuid, generation=first.generation,
                          updated_at=first.updated_at.isoformat(),
                          traits=[each.name for each in rows])


def trait_page(database: Database, **filters: Any) -> TraitList:
    """Return a :class:`TraitList` in alphabetical order.

    :param filters: names, prefix, associated, marker, limit; see
        :func:`placement_rpc.db.queries.traits.page`
    """
    with database.reader() as tx:
        rows = trait_queries.page(tx, **filters)
    return codec.stored(TraitList, objects=[codec.stored(
        Trait, name=row.name, updated_at=row.updated_at.isoformat()) for row in rows])
