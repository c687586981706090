# SPDX-License-Identifier: Apache-2.0
"""Read queries that build a candidate index, and those that bring it up to date.

The events are the feed of changes: each row says in ``touched`` what its transaction did to
providers. Ids are assigned before transactions commit, and so become visible out of order. The
feed is therefore read by positions, which are assigned after the commit, together with every
event that has no position yet.
"""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_aggregates = models.aggregates
_classes = models.resource_classes
_events = models.events
_inventories = models.inventories
_links = models.resource_provider_aggregates
_providers = models.resource_providers
_state = models.relay_state

# One statement, so that the last position and the events are of the same moment.
_SINCE = sa.union_all(
    sa.select(sa.literal(0).label("id"), _state.c.last_position.label("position"),
              sa.cast(sa.null(), _events.c.touched.type).label("touched")),
    sa.select(_events.c.id, _events.c.position, _events.c.touched).where(
        _events.c.position > sa.bindparam("after")),
    sa.select(_events.c.id, _events.c.position, _events.c.touched).where(
        _events.c.position.is_(None),
        sa.or_(_events.c.touched.is_(None), _events.c.touched != "")))

_PROVIDERS = sa.select(
    _providers.c.id, _providers.c.uuid, _providers.c.name, _providers.c.generation,
).where(_providers.c.id > sa.bindparam("after")).order_by(_providers.c.id).limit(
    sa.bindparam("limit"))
_VALUES = (_inventories.c.resource_class_id, _inventories.c.capacity, _inventories.c.used,
           _inventories.c.min_unit, _inventories.c.max_unit, _inventories.c.step_size)
_INVENTORIES = sa.select(_inventories.c.resource_provider_id, *_VALUES).where(
    _inventories.c.resource_provider_id.between(sa.bindparam("first"), sa.bindparam("last")))
_MEMBERS = sa.select(_aggregates.c.uuid, _links.c.resource_provider_id).join_from(
    _links, _aggregates, _links.c.aggregate_id == _aggregates.c.id).where(
        _links.c.resource_provider_id.between(sa.bindparam("first"), sa.bindparam("last")))
_NAMED = bulk.OverLists(lambda among: sa.select(
    _providers.c.id, _providers.c.uuid, _providers.c.name, _providers.c.generation, *_VALUES,
).join_from(
    _providers, _inventories, _inventories.c.resource_provider_id == _providers.c.id,
    isouter=True).where(among(_providers.c.uuid, "uuids")))
_MEMBERS_NAMED = bulk.OverLists(lambda among: sa.select(
    _aggregates.c.uuid, _links.c.resource_provider_id).join_from(
        _links, _aggregates, _links.c.aggregate_id == _aggregates.c.id).where(
            among(_links.c.resource_provider_id, "ids")))


def since(tx, position):
    """Read the events after a position, and those that have no position yet.

    :param position: int
    :returns: tuple of the last position that was assigned, and a list of rows of id, position and
        touched in the order of their ids
    """
    last, rows = 0, []
    for row in tx.execute(_SINCE, {"after": position}):
        if row[0]:
            rows.append(row)
        else:
            last = row[1]
    rows.sort(key=lambda row: row[0])
    return last, rows


def last_position(tx):
    """Return the last position that was assigned."""
    return tx.execute(sa.select(_state.c.last_position)).scalar() or 0


def providers(tx, after, limit):
    """Return rows of id, uuid, name and generation of the next providers in the order of ids."""
    return tx.execute(_PROVIDERS, {"after": after, "limit": limit}).all()


def inventories(tx, first, last):
    """Return the inventories of the providers from the first id to the last.

    :returns: list of rows of resource_provider_id, resource_class_id, capacity, used, min_unit,
        max_unit and step_size
    """
    return tx.execute(_INVENTORIES, {"first": first, "last": last}).all()


def members(tx, first, last):
    """Return rows of aggregate uuid and provider id, from the first provider id to the last."""
    return tx.execute(_MEMBERS, {"first": first, "last": last}).all()


def named(tx, uuids):
    """Return some providers with their inventories.

    :returns: list of rows of id, uuid, name, generation, resource_class_id, capacity, used,
        min_unit, max_unit and step_size: one for each inventory, and one with None for a provider
        without inventories
    """
    return _NAMED.execute(tx, {"uuids": list(uuids)}).all()


def members_named(tx, provider_ids):
    """Return rows of aggregate uuid and provider id of some providers."""
    return _MEMBERS_NAMED.execute(tx, {"ids": list(provider_ids)}).all()


def classes(tx):
    """Return a dict of the name of every resource class to its id."""
    return dict(tx.execute(sa.select(_classes.c.name, _classes.c.id)).all())
