# SPDX-License-Identifier: Apache-2.0
"""Inventories of one provider."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_inventories = models.inventories
_classes = models.resource_classes
_OF_PROVIDER = sa.select(
    _inventories.c.id, _inventories.c.resource_class_id,
    _classes.c.name.label("resource_class"),
    _inventories.c.total, _inventories.c.reserved, _inventories.c.min_unit,
    _inventories.c.max_unit, _inventories.c.step_size, _inventories.c.allocation_ratio,
    _inventories.c.capacity, _inventories.c.used,
).join_from(_inventories, _classes).where(
    _inventories.c.resource_provider_id == sa.bindparam("provider_id"),
).order_by(_inventories.c.resource_class_id)
_INSERT = sa.insert(_inventories)
_UPDATE = sa.update(_inventories).where(_inventories.c.id == sa.bindparam("row_id"))


def of_provider(tx, provider_id):
    """:returns: list of rows, the columns of an inventory with its class's name"""
    return tx.execute(_OF_PROVIDER, {"provider_id": provider_id}).all()


def insert(tx, provider_id, rows):
    """:param rows: list of dicts of column values, without used and times"""
    at = bulk.now()
    fixed = {"resource_provider_id": provider_id, "used": 0, "created_at": at,
             "updated_at": at}
    tx.execute(_INSERT, [{**row, **fixed} for row in rows])


def update(tx, rows):
    """:param rows: dict of row id to dict of column values"""
    at = bulk.now()
    tx.execute(_UPDATE, [
        {**values, "row_id": row_id, "updated_at": at} for row_id, values in rows.items()])


def delete(tx, row_ids):
    """:param row_ids: list of row ids"""
    tx.execute(sa.delete(_inventories).where(_inventories.c.id.in_(row_ids)))
