# SPDX-License-Identifier: Apache-2.0
"""Resource providers."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_providers = models.resource_providers
_links = models.resource_provider_aggregates
_COLUMNS = (_providers.c.id, _providers.c.uuid, _providers.c.name, _providers.c.generation)

_GET = sa.select(*_COLUMNS).where(_providers.c.uuid == sa.bindparam("uuid"))
_LOCK = _GET.with_for_update()


def insert(tx, uuid, name):
    """Insert a provider at generation 0.

    :raises oslo_db.exception.DBDuplicateEntry: when the uuid or the name is taken
    """
    at = bulk.now()
    tx.execute(sa.insert(_providers), {
        "uuid": uuid, "name": name, "generation": 0, "created_at": at, "updated_at": at})


def get(tx, uuid):
    """Return a provider: row of id, uuid, name, generation; None if there is none."""
    return tx.execute(_GET, {"uuid": uuid}).one_or_none()


def lock(tx, uuid):
    """Return a provider as :func:`get` does, locked until the transaction ends."""
    return tx.execute(_LOCK, {"uuid": uuid}).one_or_none()


def named(tx, name):
    """Return the provider of a name: row of id, uuid, name, generation; None if there is none."""
    return tx.execute(
        sa.select(*_COLUMNS).where(_providers.c.name == name)).one_or_none()


def raise_generation(tx, provider_id, generation):
    """Compare and swap: raise a generation by one, if it still is ``generation``.

    :returns: bool, whether it was
    """
    return bulk.set_numbers(
        tx, _providers.c.generation, {provider_id: generation + 1},
        expected={provider_id: generation}) == 1


def rename(tx, provider_id, name):
    """Rename a provider.

    :raises oslo_db.exception.DBDuplicateEntry: when the name is taken
    """
    tx.execute(sa.update(_providers).where(_providers.c.id == provider_id).values(name=name))


def has_allocations(tx, provider_id):
    """Return whether there are allocations from a provider."""
    table = models.allocations
    return tx.execute(sa.select(table.c.id).where(
        table.c.resource_provider_id == provider_id).limit(1)).first() is not None


def delete(tx, provider_id):
    """Delete a provider with its inventories and its links to aggregates.

    :raises oslo_db.exception.DBReferenceError: when it has allocations
    """
    for table in (models.inventories, _links):
        tx.execute(sa.delete(table).where(table.c.resource_provider_id == provider_id))
    tx.execute(sa.delete(_providers).where(_providers.c.id == provider_id))


def page(tx, name=None, member_of=None, marker=None, limit=None):
    """Return providers in the order of their ids.

    :param name: str, only the provider of this name
    :param member_of: list of lists of aggregate uuids: only providers that are in at least one
        aggregate of each list
    :param marker: str, uuid of the provider after which to begin
    :param limit: int, how many at most
    :returns: list of rows of id, uuid, name, generation
    """
    query = sa.select(*_COLUMNS).order_by(_providers.c.id)
    if name is not None:
        query = query.where(_providers.c.name == name)
    if marker is not None:
        query = query.where(_providers.c.id > sa.select(_providers.c.id).where(
            _providers.c.uuid == marker).scalar_subquery())
    query = query.where(*(in_aggregates(_providers.c.id, uuids) for uuids in member_of or ()))
    return tx.execute(query.limit(limit)).all()


def in_aggregates(provider_id, uuids):
    """Return the condition that a provider is in one of the aggregates.

    :param provider_id: column
    :param uuids: list of aggregate uuids
    """
    return sa.exists().where(
        _links.c.resource_provider_id == provider_id,
        _links.c.aggregate_id == models.aggregates.c.id,
        models.aggregates.c.uuid.in_(uuids))
