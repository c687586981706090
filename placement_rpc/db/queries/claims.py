# SPDX-License-Identifier: Apache-2.0
"""The statements that settle a batch of requests: their locks, reads and writes.

:mod:`placement_rpc.db.queries.locked_reads` says in which order rows are locked. They are looked
up by uuid, so that the unique index already has them in order and no plan needs a sort. MariaDB
needs a hint: for many uuids it would read the whole table, in another order, and wait for the
locks of others.
"""

import typing

import sqlalchemy as sa

from placement_rpc.db import galera, models, sessions
from placement_rpc.db.queries import bulk, claims_at_once, events, inventories, locking, requests

_allocations = models.allocations
_consumers = models.consumers
_inventories = models.inventories
_providers = models.resource_providers


class NewConsumer(typing.NamedTuple):
    """A consumer to be inserted."""

    uuid: str
    project_id: str
    user_id: str
    generation: int
    consumer_type_id: int | None = None


class NewAllocation(typing.NamedTuple):
    """An allocation to be inserted; ``consumer_id`` is None for a new consumer."""

    consumer_id: int | None
    consumer_uuid: str
    provider_id: int
    class_id: int
    amount: int


class UsedAmount(typing.NamedTuple):
    """How much of an inventory is used from now on."""

    inventory_id: int
    used: int


class GenerationChange(typing.NamedTuple):
    """A provider's next generation, and the one that it must have until then."""

    provider_id: int
    expected: int
    new: int


_LOCK_CONSUMERS = bulk.OverLists(lambda among: sa.select(
    _consumers.c.id, _consumers.c.uuid, _consumers.c.generation, _consumers.c.project_id,
    _consumers.c.user_id, _consumers.c.created_at, _consumers.c.updated_at,
    _consumers.c.consumer_type_id,
).where(among(_consumers.c.uuid, "uuids")).order_by(_consumers.c.uuid).with_for_update().with_hint(
    _consumers, "FORCE INDEX (uq_consumers_uuid)", "mysql").execution_options(
        **{sessions.LOCKS_ROWS: True}))
_HELD = bulk.OverLists(lambda among: sa.select(
    _allocations.c.consumer_id, _allocations.c.resource_provider_id,
    _allocations.c.resource_class_id, _allocations.c.used,
    _providers.c.uuid.label("provider_uuid"),
).join_from(
    _allocations, _providers, _providers.c.id == _allocations.c.resource_provider_id,
).where(among(_allocations.c.consumer_id, "consumer_ids")))
_LOCK_PROVIDERS = bulk.OverLists(lambda among: sa.select(
    _providers.c.id, _providers.c.uuid, _providers.c.generation,
).where(among(_providers.c.uuid, "uuids")).order_by(_providers.c.uuid).with_for_update().with_hint(
    _providers, "FORCE INDEX (uq_resource_providers_uuid)", "mysql").execution_options(
        **{sessions.LOCKS_ROWS: True}))
_INVENTORIES = bulk.OverLists(lambda among: sa.select(
    *(_inventories.c[name] for name in inventories.COLUMNS),
).where(among(_inventories.c.resource_provider_id, "provider_ids")))
_INSERT_CONSUMERS = bulk.Insert(
    _consumers, "uuid", "project_id", "user_id", "generation", "consumer_type_id",
    returning=("uuid", "id"))
_CONSUMER_IDS = bulk.OverLists(lambda among: sa.select(_consumers.c.uuid, _consumers.c.id).where(
    among(_consumers.c.uuid, "uuids")))
_UPDATE_CONSUMER = sa.update(_consumers).where(_consumers.c.id == sa.bindparam("row_id"))
_DELETE_CONSUMERS = bulk.OverLists(
    lambda among: sa.delete(_consumers).where(among(_consumers.c.id, "ids")))
_DELETE_HELD = bulk.OverLists(
    lambda among: sa.delete(_allocations).where(among(_allocations.c.consumer_id, "ids")))
_INSERT_ALLOCATIONS = bulk.Insert(
    _allocations, "consumer_id", "resource_provider_id", "resource_class_id", "used")


def lock_consumers(tx, uuids):
    """Lock consumers.

    :param uuids: collection of uuids; those without a consumer are ignored
    :raises placement_rpc.db.api.Locked: if one of them stays locked
    :returns: list of rows of id, uuid, generation, project_id, user_id, created_at, updated_at,
        consumer_type_id
    """
    with locking.translated_errors():
        return _LOCK_CONSUMERS.execute(tx, {"uuids": sorted(uuids)}).all()


def consumer_ids(tx, uuids):
    """Return the row ids of the consumers that exist: dict of uuid to row id.

    :param uuids: list of uuids
    """
    return dict(tuple(row) for row in _CONSUMER_IDS.execute(tx, {"uuids": uuids}))


def held(tx, consumer_ids):
    """Return the allocations of consumers.

    :param consumer_ids: list of row ids
    :returns: list of rows of consumer_id, resource_provider_id, provider_uuid,
        resource_class_id, used
    """
    return _HELD.execute(tx, {"consumer_ids": consumer_ids}).all() if consumer_ids else []


def lock_providers(tx, uuids):
    """Lock providers.

    :param uuids: collection of uuids; those without a provider are ignored
    :raises placement_rpc.db.api.Locked: if one of them stays locked
    :returns: list of rows of id, uuid, generation
    """
    with locking.translated_errors():
        return _LOCK_PROVIDERS.execute(tx, {"uuids": sorted(uuids)}).all()


def touch(tx, consumers=(), providers=()):
    """Let changes of locked rows on other nodes of a Galera cluster conflict with the transaction.

    :param consumers: row ids, as are ``providers``; see :func:`placement_rpc.db.galera.touch`
    """
    galera.touch(tx, _consumers, consumers)
    galera.touch(tx, _providers, providers)


def inventories_of(tx, provider_ids):
    """Return the inventories of providers.

    :param provider_ids: list of row ids
    :returns: list of rows of :data:`placement_rpc.db.queries.inventories.COLUMNS`, in that order
    """
    return _INVENTORIES.execute(tx, {"provider_ids": provider_ids}).all()


def update_consumers(tx, rows):
    """Update consumers that exist.

    :param rows: dict of row id to dict of project_id, user_id, generation, consumer_type_id
    """
    at = bulk.now()
    tx.execute(_UPDATE_CONSUMER, [
        {**values, "row_id": row_id, "updated_at": at} for row_id, values in rows.items()])


def clear(tx, consumer_ids, gone):
    """Delete the allocations of consumers, and consumers that have none left.

    :param consumer_ids: list of row ids of the consumers whose allocations are deleted
    :param gone: list of row ids of those among them that are deleted too
    """
    if consumer_ids:
        _DELETE_HELD.execute(tx, {"ids": consumer_ids})
    if gone:
        _DELETE_CONSUMERS.execute(tx, {"ids": gone})


def write(tx, tables):
    """Write the changes of a batch of claims.

    :param tables: dict of ``consumers``, a list of :class:`NewConsumer`; ``allocations``, of
        :class:`NewAllocation`; ``used``, of :class:`UsedAmount`; ``generations``, of
        :class:`GenerationChange`; ``events``, of
        :class:`placement_rpc.db.queries.events.NewEvent`; and ``requests``, of
        :class:`placement_rpc.db.queries.requests.NewRequest`
    :returns: bool, whether all generations were as expected
    :raises StoreHeld: if the store is held
    :raises oslo_db.exception.DBDuplicateEntry: when another writer was faster
    """
    if tx.dialect.name != "postgresql":
        return _write_set_by_set(tx, tables)
    if tables["events"]:
        events.written(tx)
    return claims_at_once.write(tx, tables) == len(tables["generations"])


def _write_set_by_set(tx, tables):
    ids = _insert_consumers(tx, tables["consumers"]) if tables["consumers"] else {}
    if tables["allocations"]:
        _INSERT_ALLOCATIONS.execute(tx, [
            (id_ or ids[uuid], *row) for id_, uuid, *row in tables["allocations"]])
    if tables["used"]:
        bulk.set_numbers(tx, _inventories.c.used, dict(tables["used"]))
    moved = tables["generations"]
    if moved and not set_generations(tx, {id_: new for id_, _, new in moved},
                                     {id_: old for id_, old, _ in moved}):
        return False
    if tables["events"]:
        events.insert(tx, tables["events"])
    if tables["requests"]:
        requests.insert(tx, tables["requests"])
    return True


def _insert_consumers(tx, rows):
    """Insert consumers; return a dict of uuid to row id."""
    inserted = _INSERT_CONSUMERS.execute(tx, rows)
    if inserted:
        return dict(tuple(row) for row in inserted)
    return consumer_ids(tx, [row[0] for row in rows])


def set_generations(tx, values, expected):
    """Compare and swap the generations of many providers.

    :param values: dict of provider row id to new generation
    :param expected: dict of provider row id to the generation it must have
    :returns: bool, whether all were as expected
    """
    return bulk.set_numbers(tx, _providers.c.generation, values, expected) == len(values)
