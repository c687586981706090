# SPDX-License-Identifier: Apache-2.0
"""Which providers have room for a request."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import providers

_inventories = models.inventories
_providers = models.resource_providers
_RULES = ("capacity", "used", "min_unit", "max_unit", "step_size")
_COLUMNS = (_providers.c.id, _providers.c.uuid, _providers.c.name, _providers.c.generation)


def with_room(tx, wanted, limit=None, start=None, end=None):
    """Providers that have room for every amount, in the order of their ids.

    Providers are walked in order, and for each its inventories are looked up in turn until one
    has no room: with a limit the walk ends at the first providers that fit. As joins it would
    be left to the planner, and PostgreSQL, which takes the four conditions for unrelated, goes
    through all inventories of a class first (25 ms instead of 1 at 10,000 providers).

    :param wanted: ``amounts``, dict of class id to amount; ``member_of``, list of lists of
        aggregate uuids: in one of each list; ``not_member_of``, list of aggregate uuids: in none
    :param limit: int, how many at the most
    :param start: int, the first provider id that is looked at
    :param end: int, the first that is not
    :returns: list of rows of id, uuid, name, generation, and for each class id
        ``capacity_ID`` and ``used_ID``
    """
    return tx.execute(statement(wanted, limit, start, end)).all()


def statement(wanted, limit=None, start=None, end=None):
    """The query of :func:`with_room`, for running and for explaining."""
    query = sa.select(*_COLUMNS, *(
        _value(class_id, name).label(f"{name}_{class_id}")
        for class_id in sorted(wanted.amounts) for name in ("capacity", "used")))
    for class_id, amount in sorted(wanted.amounts.items()):
        query = query.where(_room(class_id, amount) == 1)
    query = query.where(
        *(providers.in_aggregates(_providers.c.id, uuids) for uuids in wanted.member_of))
    if wanted.not_member_of:
        query = query.where(~providers.in_aggregates(_providers.c.id, wanted.not_member_of))
    if start is not None:
        query = query.where(_providers.c.id >= start)
    if end is not None:
        query = query.where(_providers.c.id < end)
    return query.order_by(_providers.c.id).limit(limit)


def ends(tx):
    """:returns: tuple of the lowest and the highest provider id; 0 and 0 where there is none"""
    low, high = tx.execute(sa.select(
        sa.select(sa.func.min(_providers.c.id)).scalar_subquery(),
        sa.select(sa.func.max(_providers.c.id)).scalar_subquery())).one()
    return low or 0, high or 0


def inventories_of(tx, provider_ids, class_ids):
    """What some providers have of some classes.

    :returns: dict of tuple of provider id and class id to dict of capacity, used,
        min_unit, max_unit, step_size
    """
    rows = tx.execute(sa.select(
        _inventories.c.resource_provider_id, _inventories.c.resource_class_id,
        *(_inventories.c[name] for name in _RULES)).where(
            _inventories.c.resource_provider_id.in_(list(provider_ids)),
            _inventories.c.resource_class_id.in_(list(class_ids))))
    return {(row[0], row[1]): dict(zip(_RULES, row[2:], strict=True)) for row in rows}


def _room(class_id, amount):
    """1 where the provider of the outer query has so much of the class free."""
    return sa.select(sa.literal_column("1")).where(
        _inventories.c.resource_provider_id == _providers.c.id,
        _inventories.c.resource_class_id == class_id,
        _inventories.c.capacity - _inventories.c.used >= amount,
        _inventories.c.min_unit <= amount, _inventories.c.max_unit >= amount,
        sa.literal(amount) % _inventories.c.step_size == 0).scalar_subquery()


def _value(class_id, name):
    """A column of the inventory that the provider of the outer query has of the class."""
    return sa.select(_inventories.c[name]).where(
        _inventories.c.resource_provider_id == _providers.c.id,
        _inventories.c.resource_class_id == class_id).scalar_subquery()
