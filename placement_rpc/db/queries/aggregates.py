# SPDX-License-Identifier: Apache-2.0
"""Memberships of providers in aggregates."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_aggregates = models.aggregates
_links = models.resource_provider_aggregates
_providers = models.resource_providers
_WITH_PROVIDER = sa.select(
    _providers.c.uuid.label("provider_uuid"), _providers.c.generation, _aggregates.c.id,
    _aggregates.c.uuid,
).select_from(_providers).outerjoin(
    _links, _links.c.resource_provider_id == _providers.c.id,
).outerjoin(_aggregates, _aggregates.c.id == _links.c.aggregate_id).where(
    _providers.c.uuid == sa.bindparam("uuid")).order_by(_aggregates.c.uuid)


def of_provider(tx, provider_id):
    """Return the aggregates of a provider: dict of uuid to row id."""
    query = sa.select(_aggregates.c.uuid, _aggregates.c.id).join(_links).where(
        _links.c.resource_provider_id == provider_id).order_by(_aggregates.c.uuid)
    return dict(tx.execute(query).all())


def with_provider(tx, uuid):
    """Return a provider and its aggregates, as they were at one moment.

    :returns: list of rows of provider_uuid, generation, id and uuid; one row whose id is None if
        it has no aggregate, and no row if there is no such provider
    """
    return tx.execute(_WITH_PROVIDER, {"uuid": uuid}).all()


def ids(tx, uuids):
    """Return the row ids of aggregates; insert those that do not exist.

    :param uuids: collection of aggregate uuids
    :returns: dict of uuid to row id
    :raises oslo_db.exception.DBDuplicateEntry: when another writer inserts one at the same time
    """
    query = sa.select(_aggregates.c.uuid, _aggregates.c.id).where(
        _aggregates.c.uuid.in_(sorted(uuids)))
    known = dict(tx.execute(query).all())
    missing = sorted(set(uuids) - set(known))
    if missing:
        at = bulk.now()
        tx.execute(sa.insert(_aggregates), [
            {"uuid": uuid, "created_at": at, "updated_at": at} for uuid in missing])
        known = dict(tx.execute(query).all())
    return known


def link(tx, provider_id, aggregate_ids):
    """Add a provider to aggregates."""
    tx.execute(sa.insert(_links), [
        {"resource_provider_id": provider_id, "aggregate_id": aggregate_id}
        for aggregate_id in aggregate_ids])


def unlink(tx, provider_id, aggregate_ids):
    """Remove a provider from aggregates."""
    tx.execute(sa.delete(_links).where(
        _links.c.resource_provider_id == provider_id,
        _links.c.aggregate_id.in_(aggregate_ids)))
