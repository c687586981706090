# SPDX-License-Identifier: Apache-2.0
"""Pages of all providers and of all consumers, with all that belongs to each of them.

A page is read in one snapshot by a few statements: each provider has the inventories, the traits
and the aggregates that it had at its generation, and each consumer all of its allocations.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from placement_rpc.accounting.consumer_tags import consumer_tag
from placement_rpc.accounting.providers import get_or_404
from placement_rpc.db.api import Connection, Database
from placement_rpc.db.queries import events
from placement_rpc.db.queries import summaries as queries
from placement_rpc.objects import codec
from placement_rpc.objects.summaries import (
    ConsumerSummary,
    ConsumerSummaryList,
    ProviderSummary,
    ProviderSummaryList,
    all_objects,
)


def provider_page(database: Database, marker: str | None, limit: int) -> ProviderSummaryList:
    """Return a page of all providers.

    :param marker: uuid after which to begin, which need not exist any more; None for the first
    :param limit: the most providers to return
    """
    with database.reader(snapshot=True) as tx:
        # Before the rows: they include at least what happened until then.
        position = events.last_position(tx)
        rows = queries.providers(tx, marker or "", limit + 1)
        objects = _providers(tx, rows[:limit])
    return codec.stored(ProviderSummaryList, objects=objects, more=len(rows) > limit,
                        position=position)


def _providers(tx: Connection, rows: Sequence[Any]) -> list[ProviderSummary]:
    ids = [row.id for row in rows]
    if not ids:
        return []
    inventories: dict[int, dict[str, dict]] = {}
    for row in queries.inventories(tx, ids):
        inventories.setdefault(row[0], {})[row[1]] = dict(
            zip(queries.VALUES, row[2:], strict=True))
    traits, aggregates = _lists(queries.traits(tx, ids)), _lists(queries.aggregates(tx, ids))
    return [codec.stored(
        ProviderSummary, uuid=row.uuid, name=row.name, generation=row.generation,
        parent_provider_uuid=row.parent_uuid, root_provider_uuid=row.root_uuid,
        updated_at=row.updated_at.isoformat(), inventories=inventories.get(row.id, {}),
        traits=traits.get(row.id, []), aggregates=aggregates.get(row.id, []),
    ) for row in rows]


def _lists(rows: Iterable[Any]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    return found


def consumer_page(database: Database, marker: str | None, limit: int,
                  project_id: str | None = None, user_id: str | None = None,
                  provider_uuid: str | None = None) -> ConsumerSummaryList:
    """Return a page of consumers; all conditions have to be met.

    :param marker: as of :func:`provider_page`
    :param limit: the most consumers to return
    :param project_id: only consumers of this project
    :param user_id: only consumers of this user
    :param provider_uuid: only consumers that have allocations from this provider; the answer has
        those from other providers too
    :raises ProviderNotFound: if there is no such provider
    """
    with database.reader(snapshot=True) as tx:
        # Before the rows: they include at least what happened until then.
        position = events.last_position(tx)
        provider_id = get_or_404(tx, provider_uuid).id if provider_uuid else None
        rows = queries.consumers(
            tx, marker or "", limit + 1, project_id, user_id, provider_id)
        objects = _consumers(tx, rows[:limit])
    return codec.stored(ConsumerSummaryList, objects=objects, more=len(rows) > limit,
                        position=position)


def all_providers(database: Database, size: int = 1000) -> Iterator[ProviderSummary]:
    """Return a generator of all providers in the order of their uuids, read page by page.

    :param size: of a page
    """
    return all_objects(lambda marker: provider_page(database, marker, size))


def all_consumers(database: Database, size: int = 1000) -> Iterator[ConsumerSummary]:
    """As :func:`all_providers`, for consumers."""
    return all_objects(lambda marker: consumer_page(database, marker, size))


def _consumers(tx: Connection, rows: Sequence[Any]) -> list[ConsumerSummary]:
    ids = [row.id for row in rows]
    if not ids:
        return []
    held: dict[int, dict[str, dict[str, int]]] = {}
    for consumer_id, provider_uuid, resource_class, used in queries.held(tx, ids):
        held.setdefault(consumer_id, {}).setdefault(provider_uuid, {})[resource_class] = used
    return [codec.stored(
        ConsumerSummary, uuid=row.uuid, generation=row.generation, project_id=row.project_id,
        user_id=row.user_id, consumer_type=row.consumer_type,
        tag=consumer_tag(row.id, row.created_at, row.generation),
        created_at=row.created_at.isoformat(), updated_at=row.updated_at.isoformat(),
        allocations=held.get(row.id, {})) for row in rows]
