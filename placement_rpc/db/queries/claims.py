# SPDX-License-Identifier: Apache-2.0
"""The statements that settle a batch of claims: what they need to know, and what they change.

The order is the same in every transaction: consumers are locked before providers, both in the
order of their ids, so that two transactions wait for each other in one direction only. What
hangs on a locked row is read by a statement of its own after the lock was had: in the same
statement a server may answer with what was true before it waited.
"""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_allocations = models.allocations
_consumers = models.consumers
_inventories = models.inventories
_providers = models.resource_providers

_LOCK_CONSUMERS = sa.select(
    _consumers.c.id, _consumers.c.uuid, _consumers.c.generation, _consumers.c.project_id,
    _consumers.c.user_id,
).where(_consumers.c.uuid.in_(bulk.named("uuids"))).order_by(
    _consumers.c.id).with_for_update()
_HELD = sa.select(
    _allocations.c.consumer_id, _allocations.c.resource_provider_id,
    _allocations.c.resource_class_id, _allocations.c.used,
).where(_allocations.c.consumer_id.in_(bulk.named("consumer_ids")))
_LOCK_PROVIDERS = sa.select(
    _providers.c.id, _providers.c.uuid, _providers.c.generation,
).where(_providers.c.uuid.in_(bulk.named("uuids"))).order_by(
    _providers.c.id).with_for_update()
_LOCK_MORE_PROVIDERS = sa.select(
    _providers.c.id, _providers.c.uuid, _providers.c.generation,
).where(sa.or_(
    _providers.c.uuid.in_(bulk.named("uuids")), _providers.c.id.in_(bulk.named("ids")),
)).order_by(_providers.c.id).with_for_update()
_INVENTORIES = sa.select(
    _inventories.c.id, _inventories.c.resource_provider_id, _inventories.c.resource_class_id,
    _inventories.c.min_unit, _inventories.c.max_unit, _inventories.c.step_size,
    _inventories.c.capacity, _inventories.c.used,
).where(_inventories.c.resource_provider_id.in_(bulk.named("provider_ids")))
_INSERT_CONSUMERS = sa.insert(_consumers)
_CONSUMER_IDS = sa.select(_consumers.c.uuid, _consumers.c.id).where(
    _consumers.c.uuid.in_(bulk.named("uuids")))
_UPDATE_CONSUMER = sa.update(_consumers).where(_consumers.c.id == sa.bindparam("row_id"))
_DELETE_CONSUMERS = sa.delete(_consumers).where(_consumers.c.id.in_(bulk.named("ids")))
_DELETE_HELD = sa.delete(_allocations).where(
    _allocations.c.consumer_id.in_(bulk.named("consumer_ids")))
_INSERT_ALLOCATIONS = sa.insert(_allocations)


def lock_consumers(tx, uuids):
    """:returns: list of rows of id, uuid, generation, project_id, user_id of those that exist"""
    return tx.execute(_LOCK_CONSUMERS, {"uuids": sorted(uuids)}).all()


def held(tx, consumer_ids):
    """:returns: list of rows of consumer_id, resource_provider_id, resource_class_id, used"""
    return tx.execute(_HELD, {"consumer_ids": consumer_ids}).all() if consumer_ids else []


def lock_providers(tx, uuids, ids):
    """Lock the providers that are named or that are known by id.

    :returns: list of rows of id, uuid, generation, in the order of their ids
    """
    if not ids:
        return tx.execute(_LOCK_PROVIDERS, {"uuids": sorted(uuids)}).all()
    return tx.execute(
        _LOCK_MORE_PROVIDERS, {"uuids": sorted(uuids), "ids": sorted(ids)}).all()


def inventories_of(tx, provider_ids):
    """:returns: list of rows of what the rules need to know of each inventory"""
    return tx.execute(_INVENTORIES, {"provider_ids": provider_ids}).all()


def insert_consumers(tx, rows):
    """Insert consumers.

    :param rows: list of dicts of uuid, project_id, user_id, generation
    :returns: dict of uuid to row id
    :raises oslo_db.exception.DBDuplicateEntry: when another writer was faster
    """
    at = bulk.now()
    rows = [{**row, "created_at": at, "updated_at": at} for row in rows]
    if tx.dialect.insert_returning:
        statement = _INSERT_CONSUMERS.returning(_consumers.c.uuid, _consumers.c.id)
        return dict(tx.execute(statement, rows).all())
    tx.execute(_INSERT_CONSUMERS, rows)
    return dict(tx.execute(_CONSUMER_IDS, {"uuids": [row["uuid"] for row in rows]}).all())


def update_consumers(tx, rows):
    """:param rows: dict of row id to dict of project_id, user_id, generation"""
    at = bulk.now()
    tx.execute(_UPDATE_CONSUMER, [
        {**values, "row_id": row_id, "updated_at": at} for row_id, values in rows.items()])


def delete_consumers(tx, ids):
    """:param ids: list of row ids of consumers that hold nothing any more"""
    tx.execute(_DELETE_CONSUMERS, {"ids": ids})


def replace_allocations(tx, consumer_ids, rows):
    """Delete what the consumers hold and insert what they hold now.

    :param consumer_ids: list of row ids of consumers that held something
    :param rows: list of tuples of consumer id, provider id, class id, amount
    """
    if consumer_ids:
        tx.execute(_DELETE_HELD, {"consumer_ids": consumer_ids})
    if rows:
        at = bulk.now()
        tx.execute(_INSERT_ALLOCATIONS, [
            {"consumer_id": consumer, "resource_provider_id": provider,
             "resource_class_id": resource_class, "used": amount,
             "created_at": at, "updated_at": at}
            for consumer, provider, resource_class, amount in rows])


def set_used(tx, values):
    """:param values: dict of inventory row id to the amount now used"""
    bulk.set_numbers(tx, _inventories, "used", values)


def set_generations(tx, values, expected):
    """Compare and swap of many providers' generations.

    :param values: dict of provider row id to new generation
    :param expected: dict of provider row id to the generation it must have
    :returns: bool, whether all were as expected
    """
    return bulk.set_numbers(
        tx, _providers, "generation", values, expected) == len(values)
