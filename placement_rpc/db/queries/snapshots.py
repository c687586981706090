# SPDX-License-Identifier: Apache-2.0
"""Snapshots of all allocations: their rows, and the progress of the current one."""

import sqlalchemy as sa

from placement_rpc.db import galera, models
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
    """Return the state of the current or last snapshot; None if there was none.

    :returns: row of snapshot_id, begun_at, ended_at, last_consumer, consumers
    """
    query = sa.select(_state).where(_state.c.id == _STATE_ID)
    return tx.execute(query.with_for_update() if lock else query).one_or_none()


def begin(tx, snapshot_id, now, ended_at=None):
    """Record that a snapshot begins.

    :param ended_at: datetime, for one that is not taken but marks the start of the first period
    :raises oslo_db.exception.DBDuplicateEntry: when two processes begin the first one at once
    """
    values = {"snapshot_id": snapshot_id, "begun_at": now, "ended_at": ended_at,
              "last_consumer": "", "consumers": 0}
    if not tx.execute(sa.update(_state).where(_state.c.id == _STATE_ID).values(values)).rowcount:
        tx.execute(sa.insert(_state), {"id": _STATE_ID, **values})


def advance(tx, last_consumer, consumers):
    """Record the progress: the last consumer's uuid, and the number of consumers so far."""
    tx.execute(sa.update(_state).where(_state.c.id == _STATE_ID).values(
        last_consumer=last_consumer, consumers=consumers))


def end(tx, now):
    """Record that the snapshot is complete."""
    tx.execute(sa.update(_state).where(_state.c.id == _STATE_ID).values(ended_at=now))


def lock_consumers(tx, after, limit):
    """Lock the next consumers, so that each change of one is either before or after this.

    The order is the one in which claims lock them.

    :param after: str, the uuid after which to begin
    :returns: list of rows of id, uuid, project_id, user_id, generation, consumer_type
    """
    name = sa.select(models.consumer_types.c.name).where(
        models.consumer_types.c.id == _consumers.c.consumer_type_id).scalar_subquery()
    rows = tx.execute(sa.select(
        _consumers.c.id, _consumers.c.uuid, _consumers.c.project_id, _consumers.c.user_id,
        _consumers.c.generation, name.label("consumer_type"),
    ).where(_consumers.c.uuid > after).order_by(_consumers.c.uuid).limit(
        limit).with_for_update().with_hint(
            # Without the index it would sort all rows, and lock them.
            _consumers, "FORCE INDEX (uq_consumers_uuid)", "mysql")).all()
    galera.touch(tx, _consumers, {row.id for row in rows})
    return rows


def held(tx, consumer_ids):
    """Return the allocations of consumers.

    :returns: list of rows of consumer_id, provider_uuid, generation (the provider's),
        resource_class, used
    """
    return _HELD.execute(tx, {"consumer_ids": list(consumer_ids)}).all()
