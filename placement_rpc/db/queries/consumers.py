# SPDX-License-Identifier: Apache-2.0
"""Consumers with all of their allocations."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_allocations = models.allocations
_consumers = models.consumers
_providers = models.resource_providers
_classes = models.resource_classes

_HOLDINGS = sa.select(
    _consumers.c.uuid.label("consumer_uuid"), _consumers.c.project_id, _consumers.c.user_id,
    _consumers.c.generation, _consumers.c.updated_at.label("changed_at"),
    _providers.c.uuid.label("provider_uuid"), _classes.c.name.label("resource_class"),
    _allocations.c.used,
).select_from(_consumers).join(
    _allocations, _allocations.c.consumer_id == _consumers.c.id,
).join(_providers, _providers.c.id == _allocations.c.resource_provider_id).join(
    _classes, _classes.c.id == _allocations.c.resource_class_id)
_here = _allocations.alias("here")
_OF_PROVIDER = _HOLDINGS.where(_consumers.c.id.in_(sa.select(_here.c.consumer_id).where(
    _here.c.resource_provider_id == sa.bindparam("provider_id"))))
_OWNER = sa.select(_consumers.c.project_id, _consumers.c.user_id).where(
    _consumers.c.uuid == sa.bindparam("uuid"))
_NAMED = bulk.OverLists(lambda among: _HOLDINGS.where(among(_consumers.c.uuid, "uuids")))


def owner(tx, uuid):
    """Return the row of project_id, user_id of a consumer; None if it has no allocations."""
    return tx.execute(_OWNER, {"uuid": uuid}).one_or_none()


def holding(tx, provider_id, uuids):
    """Return all allocations of consumers that have one from a provider, or that are given.

    :param provider_id: int, row id
    :param uuids: list of consumer uuids
    :returns: list of rows of consumer_uuid, project_id, user_id, generation, changed_at,
        provider_uuid, resource_class, used
    """
    rows = tx.execute(_OF_PROVIDER, {"provider_id": provider_id}).all()
    missing = set(uuids) - {row.consumer_uuid for row in rows}
    return rows + _NAMED.execute(tx, {"uuids": sorted(missing)}).all() if missing else rows
