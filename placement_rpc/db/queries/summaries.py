# SPDX-License-Identifier: Apache-2.0
"""Pages of providers and of consumers with all that belongs to them.

The order is that of the uuids, so that a page can begin after a row that was deleted. A page is a
few statements, whatever its size.
"""

import functools

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_aggregates, _links = models.aggregates, models.resource_provider_aggregates
_allocations = models.allocations
_classes = models.resource_classes
_consumers = models.consumers
_inventories = models.inventories
_nodes = models.compute_nodes
_providers = models.resource_providers
_traits, _has = models.traits, models.resource_provider_traits
_types = models.consumer_types
_parents, _roots = (_providers.alias(name) for name in ("parents", "roots"))

#: The columns of an inventory
VALUES = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio",
          "capacity", "used")

_PROVIDERS = sa.select(
    _providers.c.id, _providers.c.uuid, _providers.c.name, _providers.c.generation,
    _providers.c.updated_at, _parents.c.uuid.label("parent_uuid"),
    # The root of a root is itself.
    sa.func.coalesce(_roots.c.uuid, _providers.c.uuid).label("root_uuid"),
).select_from(
    _providers.outerjoin(_parents, _parents.c.id == _providers.c.parent_provider_id).outerjoin(
        _roots, _roots.c.id == _providers.c.root_provider_id)
).where(_providers.c.uuid > sa.bindparam("after")).order_by(_providers.c.uuid).limit(
    sa.bindparam("limit"))
_INVENTORIES = bulk.OverLists(lambda among: sa.select(
    _inventories.c.resource_provider_id, _classes.c.name.label("resource_class"),
    *(_inventories.c[name] for name in VALUES),
).join_from(_inventories, _classes).where(
    among(_inventories.c.resource_provider_id, "ids")).order_by(
        _inventories.c.resource_provider_id, _classes.c.id))
_TRAITS = bulk.OverLists(lambda among: sa.select(
    _has.c.resource_provider_id, _traits.c.name,
).join_from(_has, _traits).where(among(_has.c.resource_provider_id, "ids")).order_by(
    _has.c.resource_provider_id, _traits.c.name))
_AGGREGATES = bulk.OverLists(lambda among: sa.select(
    _links.c.resource_provider_id, _aggregates.c.uuid,
).join_from(_links, _aggregates).where(among(_links.c.resource_provider_id, "ids")).order_by(
    _links.c.resource_provider_id, _aggregates.c.uuid))
_HELD = bulk.OverLists(lambda among: sa.select(
    _allocations.c.consumer_id, _providers.c.uuid.label("provider_uuid"),
    _classes.c.name.label("resource_class"), _allocations.c.used,
).select_from(_allocations).join(
    _providers, _providers.c.id == _allocations.c.resource_provider_id,
).join(
    _classes, _classes.c.id == _allocations.c.resource_class_id,
).where(among(_allocations.c.consumer_id, "ids")).order_by(
    _allocations.c.consumer_id, _allocations.c.id))
# Consumers in the smallest range of :func:`_consumers_of_provider`, and more than any uuid.
_SMALLEST_RANGE = 1000
_BEYOND_UUIDS = "g"
_HAS_MORE = sa.select(_allocations.c.resource_class_id).where(
    _allocations.c.resource_provider_id == sa.bindparam("provider")).limit(1).offset(
        sa.bindparam("size"))
_END_OF_RANGE = sa.select(_consumers.c.uuid).where(
    _consumers.c.uuid > sa.bindparam("after")).order_by(_consumers.c.uuid).limit(1).offset(
        sa.bindparam("skipped"))


def providers(tx, after, limit):
    """Return the next providers in the order of their uuids.

    :param after: str, the uuid after which to begin; empty for the first
    :returns: list of rows of id, uuid, name, generation, updated_at, parent_uuid (None for a
        root) and root_uuid
    """
    return tx.execute(_PROVIDERS, {"after": after, "limit": limit}).all()


def inventories(tx, provider_ids):
    """Return rows of resource_provider_id, resource_class (its name) and :data:`VALUES`."""
    return _INVENTORIES.execute(tx, {"ids": provider_ids}).all()


def traits(tx, provider_ids):
    """Return rows of provider id and trait name, in the order of names."""
    return _TRAITS.execute(tx, {"ids": provider_ids}).all()


def aggregates(tx, provider_ids):
    """Return rows of provider id and aggregate uuid, in the order of uuids."""
    return _AGGREGATES.execute(tx, {"ids": provider_ids}).all()


def consumers(tx, after, limit, project_id=None, user_id=None, provider_id=None):
    """Return the next consumers in the order of their uuids; all conditions have to be met.

    :param after: as of :func:`providers`
    :param project_id: str, only consumers of this project
    :param user_id: str, only consumers of this user
    :param provider_id: int, only consumers that have allocations from this provider
    :returns: list of rows of id, uuid, generation, project_id, user_id, consumer_type,
        created_at and updated_at
    """
    values = {name: value for name, value in (
        ("project", project_id), ("user", user_id), ("provider", provider_id),
    ) if value is not None}
    if provider_id is not None:
        return _consumers_of_provider(tx, after, limit, values)
    return _page(tx, values, after, limit)


def _consumers_of_provider(tx, after, limit, values):
    """Return a page of the consumers of one provider.

    The allocations of a provider are in no order of uuids, so a page would cost as much as the
    provider has allocations. Most consumers may have some from a pool that many providers share:
    of such a provider ranges of all consumers are read in the order of the uuids, and each
    consumer's allocations are looked up. Each range is twice as long as the one before it. They
    end at one as long as the provider's allocations, so that they never cost much more than these.
    """
    found, size = [], max(_SMALLEST_RANGE, 10 * limit)
    while tx.execute(_HAS_MORE, {**values, "size": size}).first() is not None:
        last = tx.execute(_END_OF_RANGE, {"after": after, "skipped": size - 1}).scalar()
        found += _page(tx, values, after, limit - len(found), last or _BEYOND_UUIDS)
        if last is None or len(found) == limit:
            return found
        after, size = last, 2 * size
    return found + _page(tx, values, after, limit - len(found))


def _page(tx, values, after, limit, last=None):
    """Return consumers in the order of their uuids.

    :param values: dict of the names of conditions to what has to be met
    :param last: str, the last uuid of a range in which each consumer's allocations are looked up;
        None to read the provider's allocations first, if one is named
    """
    statement = _consumers_page(tx.dialect.name, tuple(values), last is not None)
    limits = {"after": after, "limit": limit, **({} if last is None else {"last": last})}
    return tx.execute(statement, {**values, **limits}).all()


@functools.lru_cache(maxsize=32)
def _consumers_page(dialect, names, is_range):
    """Return the statement of :func:`_page`; to build it takes longer than to run it.

    :param names: tuple of the names of its parameters
    """
    source = _consumers.outerjoin(_types, _types.c.id == _consumers.c.consumer_type_id)
    of_provider = _allocations.c.resource_provider_id == sa.bindparam("provider")
    if "provider" in names and not is_range:
        # With DISTINCT it is read first. Otherwise a server may look at every consumer in the
        # order of the uuids until enough of them are found.
        held = sa.select(_allocations.c.consumer_id).where(of_provider).distinct().subquery()
        source = source.join(held, held.c.consumer_id == _consumers.c.id)
    query = sa.select(
        _consumers.c.id, _consumers.c.uuid, _consumers.c.generation, _consumers.c.project_id,
        _consumers.c.user_id, _types.c.name.label("consumer_type"), _consumers.c.created_at,
        _consumers.c.updated_at).select_from(source).where(
            _consumers.c.uuid > sa.bindparam("after"))
    if is_range:
        # As a value, since a server may turn EXISTS into a join that reads all allocations of the
        # provider first.
        query = query.where(_consumers.c.uuid <= sa.bindparam("last"), sa.select(
            _allocations.c.consumer_id).where(
                _allocations.c.consumer_id == _consumers.c.id, of_provider,
            ).limit(1).correlate(_consumers).scalar_subquery().is_not(None))
    if "project" in names:
        query = query.where(*bulk.is_same_text(dialect, _consumers.c.project_id, "project"))
    if "user" in names:
        query = query.where(*bulk.is_same_text(dialect, _consumers.c.user_id, "user"))
    return query.order_by(_consumers.c.uuid).limit(sa.bindparam("limit"))


def held(tx, consumer_ids):
    """Return rows of consumer_id, provider_uuid, resource_class and used."""
    return _HELD.execute(tx, {"ids": consumer_ids}).all()


def node_hosts(tx):
    """Return the stored compute nodes of nova: rows of uuid, hypervisor_hostname and host."""
    return tx.execute(sa.select(
        _nodes.c.uuid, _nodes.c.hypervisor_hostname, _nodes.c.host).where(
            _nodes.c.host.is_not(None))).all()
