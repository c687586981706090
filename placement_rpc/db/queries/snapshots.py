# SPDX-License-Identifier: Apache-2.0
"""Snapshots of all allocations: who takes part, and how far the one under way has come."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_allocations = models.allocations
_classes = models.resource_classes
_consumers = models.consumers
_providers = models.resource_providers
_state = models.snapshot_state
_STATE_ID = 1

_HELD = bulk.OverLists(lambda among: sa.select(
    _allocations.c.consumer_id, _providers.c.uuid.label("provider_uuid"),
    _providers.c.generation, _classes.c.name.label("resource_class"), _allocations.c.used,
).select_from(_allocations).join(
    _providers, _providers.c.id == _allocations.c.resource_provider_id,
).join(
    _classes, _classes.c.id == _allocations.c.resource_class_id,
).where(among(_allocations.c.consumer_id, "consumer_ids")).order_by(
    _allocations.c.consumer_id, _allocations.c.id))


def state(tx, lock=False):
    """:returns: row of snapshot_id, begun_at, ended_at, last_consumer, consumers; None for none"""
    query = sa.select(_state).where(_state.c.id == _STATE_ID)
    return tx.execute(query.with_for_update() if lock else query).one_or_none()


def begin(tx, snapshot_id, now, ended_at=None):
    """Note that a snapshot begins.

    :param ended_at: datetime, for one that is not taken but stands for the first period's start
    :raises oslo_db.exception.DBDuplicateEntry: when two begin the very first at once
    """
    values = {"snapshot_id": snapshot_id, "begun_at": now, "ended_at": ended_at,
              "last_consumer": "", "consumers": 0}
    if not tx.execute(sa.update(_state).where(_state.c.id == _STATE_ID).values(values)).rowcount:
        tx.execute(sa.insert(_state), {"id": _STATE_ID, **values})


def advance(tx, last_consumer, consumers):
    """Note how far it has come: up to which consumer, and how many there were."""
    tx.execute(sa.update(_state).where(_state.c.id == _STATE_ID).values(
        last_consumer=last_consumer, consumers=consumers))


def end(tx, now):
    """Note that it is whole."""
    tx.execute(sa.update(_state).where(_state.c.id == _STATE_ID).values(ended_at=now))


def lock_consumers(tx, after, limit):
    """Lock the next consumers, so that what happens to them comes before or after this.

    In the order in which claims lock them.

    :param after: str, the uuid after which to begin
    :returns: list of rows of id, uuid, project_id, user_id, generation
    """
    return tx.execute(sa.select(
        _consumers.c.id, _consumers.c.uuid, _consumers.c.project_id, _consumers.c.user_id,
        _consumers.c.generation,
    ).where(_consumers.c.uuid > after).order_by(_consumers.c.uuid).limit(
        limit).with_for_update().with_hint(
            # It would lock what it sorts, all of it.
            _consumers, "FORCE INDEX (uq_consumers_uuid)", "mysql")).all()


def held(tx, consumer_ids):
    """:returns: list of rows of consumer_id, provider_uuid, generation (the provider's),
    resource_class, used"""
    return _HELD.execute(tx, {"consumer_ids": list(consumer_ids)}).all()
