# SPDX-License-Identifier: Apache-2.0
"""Inventories of providers."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_inventories = models.inventories
_classes = models.resource_classes
_providers = models.resource_providers
_COLUMNS = (
    _inventories.c.id, _inventories.c.resource_class_id,
    _classes.c.name.label("resource_class"),
    _inventories.c.total, _inventories.c.reserved, _inventories.c.min_unit,
    _inventories.c.max_unit, _inventories.c.step_size, _inventories.c.allocation_ratio,
    _inventories.c.capacity, _inventories.c.used, _inventories.c.updated_at)
_OF_PROVIDER = sa.select(*_COLUMNS).join_from(_inventories, _classes).where(
    _inventories.c.resource_provider_id == sa.bindparam("provider_id"),
).order_by(_inventories.c.resource_class_id)
_WITH_PROVIDER = sa.select(
    _providers.c.uuid.label("provider_uuid"), _providers.c.generation, *_COLUMNS,
).select_from(_providers).outerjoin(
    _inventories, _inventories.c.resource_provider_id == _providers.c.id,
).outerjoin(_classes, _classes.c.id == _inventories.c.resource_class_id).where(
    _providers.c.uuid == sa.bindparam("uuid")).order_by(_inventories.c.resource_class_id)

# What a caller sets, with the capacity that follows from it.
_RULES = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio",
          "capacity")
#: The columns of a whole inventory.
COLUMNS = ("id", "resource_provider_id", "resource_class_id", "used", *_RULES)

_INSERT = bulk.Insert(_inventories, *COLUMNS[1:])
_UPDATE = bulk.Update(_inventories, *_RULES)
_DELETE = sa.delete(_inventories).where(_inventories.c.id == sa.bindparam("row_id"))


def of_provider(tx, provider_id):
    """Return the inventories of a provider in the order of their class ids.

    :returns: list of rows of id, resource_class_id, resource_class (its name), total, reserved,
        min_unit, max_unit, step_size, allocation_ratio, capacity, used, updated_at
    """
    return tx.execute(_OF_PROVIDER, {"provider_id": provider_id}).all()


def with_provider(tx, uuid):
    """Return a provider and its inventories, as they were at one moment.

    :returns: list of rows as of :func:`of_provider`, with provider_uuid and generation in
        addition; one row whose id is None if it has no inventory, and no row if there is no such
        provider
    """
    return tx.execute(_WITH_PROVIDER, {"uuid": uuid}).all()


def insert(tx, entries):
    """Insert inventories.

    :param entries: list of objects with an attribute for each of :data:`COLUMNS`; ``id`` is
        not used
    """
    _INSERT.execute(tx, [
        tuple(getattr(entry, name) for name in COLUMNS[1:]) for entry in entries])


def update(tx, entries):
    """Update everything of inventories but ``used``.

    :param entries: list of objects with an attribute for each of :data:`COLUMNS`
    """
    _UPDATE.execute(tx, [
        tuple(getattr(entry, name) for name in ("id", *_RULES)) for entry in entries])


def delete(tx, row_ids):
    """Delete inventories.

    :param row_ids: list of row ids
    """
    # One by one: for many ids MariaDB reads the whole table and waits for the locks of others.
    tx.execute(_DELETE, [{"row_id": row_id} for row_id in row_ids])
