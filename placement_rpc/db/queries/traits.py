# SPDX-License-Identifier: Apache-2.0
"""Traits, and which providers have them."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_traits = models.traits
_links = models.resource_provider_traits
_providers = models.resource_providers

_BY_NAME = bulk.OverLists(lambda among: sa.select(_traits.c.name, _traits.c.id).where(
    among(_traits.c.name, "names")))
_OF_PROVIDER = sa.select(_traits.c.name, _traits.c.id).join(_links).where(
    _links.c.resource_provider_id == sa.bindparam("provider_id")).order_by(_traits.c.name)
_WITH_PROVIDER = sa.select(
    _providers.c.uuid.label("provider_uuid"), _providers.c.generation, _providers.c.updated_at,
    _traits.c.id, _traits.c.name,
).select_from(_providers).outerjoin(
    _links, _links.c.resource_provider_id == _providers.c.id,
).outerjoin(_traits, _traits.c.id == _links.c.trait_id).where(
    _providers.c.uuid == sa.bindparam("uuid")).order_by(_traits.c.name)


def ids(tx, names):
    """Return the row ids of the traits that exist: dict of name to row id."""
    return dict(tuple(row) for row in _BY_NAME.execute(tx, {"names": sorted(names)}))


def of_provider(tx, provider_id):
    """Return the traits of a provider: dict of name to row id, in the order of names."""
    return dict(tuple(row) for row in tx.execute(_OF_PROVIDER, {"provider_id": provider_id}))


def with_provider(tx, uuid):
    """Return a provider and its traits, as they were at one moment.

    :returns: list of rows of provider_uuid, generation, updated_at (the provider's), id and name,
        in the order of names; one row whose id is None if it has no trait, and no row if there is
        no such provider
    """
    return tx.execute(_WITH_PROVIDER, {"uuid": uuid}).all()


def lock(tx, name):
    """Return the row of id and name of a trait, locked; None if there is none."""
    return tx.execute(sa.select(_traits.c.id, _traits.c.name).where(
        _traits.c.name == name).with_for_update()).one_or_none()


def page(tx, names=None, prefix=None, associated=None, marker=None, limit=None):
    """Return traits in the order of their names.

    :param names: collection of str, only those of these names; None for all
    :param prefix: str, only those whose names begin with it
    :param associated: bool, only those that some provider has, or that none has
    :param marker: str, the name after which to begin
    :param limit: int, how many at most
    :returns: list of rows of name and updated_at
    """
    query = sa.select(_traits.c.name, _traits.c.updated_at).order_by(_traits.c.name)
    if names is not None:
        query = query.where(_traits.c.name.in_(sorted(names)))
    if prefix is not None:
        # LIKE ignores the case of letters on SQLite.
        # MariaDB cannot compare a column of ASCII with other letters, with which no name begins.
        query = query.where(sa.func.substr(_traits.c.name, 1, len(prefix)) == prefix
                            if prefix.isascii() else sa.false())
    if associated is not None:
        used = sa.exists().where(_links.c.trait_id == _traits.c.id)
        query = query.where(used if associated else ~used)
    if marker is not None:
        query = query.where(_traits.c.name > marker)
    return tx.execute(query.limit(limit)).all()


def insert(tx, names):
    """Insert traits.

    :param names: list of str
    :raises oslo_db.exception.DBDuplicateEntry: when a name is taken
    """
    at = bulk.now()
    tx.execute(sa.insert(_traits), [
        {"name": name, "created_at": at, "updated_at": at} for name in names])


def insert_missing(tx, names):
    """Insert the traits that do not exist.

    :param names: collection of str
    """
    missing = sorted(set(names) - set(ids(tx, names)))
    if missing:
        insert(tx, missing)


def in_use(tx, trait_id):
    """Return whether a provider has a trait."""
    return tx.execute(sa.select(_links.c.trait_id).where(
        _links.c.trait_id == trait_id).limit(1)).first() is not None


def delete(tx, trait_id):
    """Delete a trait.

    :raises oslo_db.exception.DBReferenceError: when a provider has it
    """
    tx.execute(sa.delete(_traits).where(_traits.c.id == trait_id))


def link(tx, provider_id, trait_ids):
    """Give a provider traits.

    :raises oslo_db.exception.DBReferenceError: when a trait was deleted meanwhile
    """
    tx.execute(sa.insert(_links), [
        {"resource_provider_id": provider_id, "trait_id": trait_id} for trait_id in trait_ids])


def unlink(tx, provider_id, trait_ids):
    """Take traits from a provider."""
    tx.execute(sa.delete(_links).where(
        _links.c.resource_provider_id == provider_id, _links.c.trait_id.in_(trait_ids)))
