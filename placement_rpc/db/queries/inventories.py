# SPDX-License-Identifier: Apache-2.0
"""Inventories of providers."""

import collections

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

_COLUMNS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio",
            "capacity")

#: An inventory with its class's name; ``id`` is None for one that is not stored yet.
Row = collections.namedtuple(
    "Row", ("id", "resource_provider_id", "resource_class_id", "resource_class", "used",
            *_COLUMNS))

_OF_PROVIDERS = bulk.OverLists(lambda among: sa.select(
    _inventories.c.id, _inventories.c.resource_provider_id, _inventories.c.resource_class_id,
    _classes.c.name, _inventories.c.used, *(_inventories.c[name] for name in _COLUMNS),
).join_from(_inventories, _classes).where(
    among(_inventories.c.resource_provider_id, "provider_ids")))
_INSERT = bulk.Insert(
    _inventories, "resource_provider_id", "resource_class_id", "used", *_COLUMNS)
_UPDATE = bulk.Update(_inventories, *_COLUMNS)
_DELETE = sa.delete(_inventories).where(_inventories.c.id == sa.bindparam("row_id"))


def of_provider(tx, provider_id):
    """:returns: list of rows, the columns of an inventory with its class's name"""
    return tx.execute(_OF_PROVIDER, {"provider_id": provider_id}).all()


def of_providers(tx, provider_ids):
    """:returns: list of :class:`Row`"""
    return [Row(*row) for row in _OF_PROVIDERS.execute(tx, {"provider_ids": provider_ids})]


def insert(tx, rows):
    """:param rows: list of :class:`Row`; their ids are not used"""
    _INSERT.execute(tx, [
        (row.resource_provider_id, row.resource_class_id, row.used, *row[-len(_COLUMNS):])
        for row in rows])


def update(tx, rows):
    """Write everything of inventories but what is used of them; :param rows: list of
    :class:`Row`"""
    _UPDATE.execute(tx, [(row.id, *row[-len(_COLUMNS):]) for row in rows])


def delete(tx, row_ids):
    """:param row_ids: list of row ids"""
    # One by one: of many MariaDB would read the whole table, and wait for rows of others.
    tx.execute(_DELETE, [{"row_id": row_id} for row_id in row_ids])
