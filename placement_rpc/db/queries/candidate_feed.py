# SPDX-License-Identifier: Apache-2.0
"""Read queries that build a candidate index, and those that bring it up to date.

The events are the feed of changes: each row says in ``touched`` what its transaction did to
providers. Ids are assigned before transactions commit, and so become visible out of order. The
feed is therefore read by positions, which are assigned after the commit, together with every
event that has no position yet.
"""

import functools

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk, feed

_aggregates = models.aggregates
_classes = models.resource_classes
_events = models.events
_inventories = models.inventories
_links = models.resource_provider_aggregates
_providers = models.resource_providers
_state = models.relay_state
_trait_links = models.resource_provider_traits
_traits = models.traits

#: The columns of an inventory that an index has.
VALUES = ("capacity", "used", "min_unit", "max_unit", "step_size", "reserved")

_CHANGE = (*feed.KEYS, _events.c.touched)
_SINCE = sa.union_all(
    feed.head(_events.c.touched),
    sa.select(*_CHANGE).where(_events.c.position >= sa.bindparam("position")),
    sa.select(*_CHANGE).where(
        _events.c.position.is_(None),
        sa.or_(_events.c.touched.is_(None), _events.c.touched != "")))

_PROVIDER = (_providers.c.id, _providers.c.uuid, _providers.c.name, _providers.c.generation,
             _providers.c.parent_provider_id.label("parent_id"),
             # A root has none, as has each provider that a conductor of an older release created.
             sa.func.coalesce(_providers.c.root_provider_id, _providers.c.id).label("root_id"))
_PROVIDERS = sa.select(*_PROVIDER).where(
    _providers.c.id > sa.bindparam("after")).order_by(_providers.c.id).limit(
    sa.bindparam("limit"))
_NAMED = bulk.OverLists(lambda among: sa.select(*_PROVIDER).where(
    among(_providers.c.uuid, "uuids")))


def _belonging(query, provider_id):
    """Return a query of what belongs to providers: of a range of them, and of some of them."""
    return (query.where(provider_id.between(sa.bindparam("first"), sa.bindparam("last"))),
            bulk.OverLists(lambda among: query.where(among(provider_id, "ids"))))


_INVENTORIES, _INVENTORIES_OF = _belonging(sa.select(
    _inventories.c.resource_provider_id, _inventories.c.resource_class_id,
    *(_inventories.c[name] for name in VALUES)), _inventories.c.resource_provider_id)
_MEMBERS, _MEMBERS_OF = _belonging(sa.select(
    _links.c.resource_provider_id, _aggregates.c.uuid).join_from(
        _links, _aggregates, _links.c.aggregate_id == _aggregates.c.id),
    _links.c.resource_provider_id)
_TRAITS, _TRAITS_OF = _belonging(sa.select(
    _trait_links.c.resource_provider_id, _traits.c.name).join_from(
        _trait_links, _traits, _trait_links.c.trait_id == _traits.c.id),
    _trait_links.c.resource_provider_id)


def _joined(*columns):
    """Return whole numbers of all rows as one text with commas, in any order of rows.

    Text of many rows costs a fraction of the rows themselves, in the server and here.
    """
    texts = [sa.cast(column, sa.String) for column in columns]
    return sa.func.aggregate_strings(functools.reduce(
        lambda one, other: one + "," + other, texts), ",")


_INVENTORY_TEXTS = sa.select(
    _inventories.c.resource_class_id, sa.func.count().label("rows"), _joined(
        _inventories.c.resource_provider_id, *(_inventories.c[name] for name in VALUES))).where(
    _inventories.c.resource_provider_id.between(sa.bindparam("first"), sa.bindparam("last"))
    ).group_by(_inventories.c.resource_class_id)


def _sets(provider_id, number):
    """Return a query of sets of whole numbers, each with all providers that have it.

    The numbers of a set come in any order, so that a set may come several times.
    """
    each = sa.select(
        provider_id.label("provider_id"), sa.func.count().label("size"),
        _joined(number).label("numbers")).where(
        provider_id.between(sa.bindparam("first"), sa.bindparam("last"))).group_by(
        provider_id).subquery()
    return sa.select(each.c.size, each.c.numbers, sa.func.count().label("providers"),
                     _joined(each.c.provider_id)).group_by(each.c.size, each.c.numbers)


_TRAIT_SETS = _sets(_trait_links.c.resource_provider_id, _trait_links.c.trait_id)
_AGGREGATE_SETS = _sets(_links.c.resource_provider_id, _links.c.aggregate_id)


def since(tx, position):
    """Read the event at a position, those after it, and those that have no position yet.

    :param position: int
    :returns: :class:`placement_rpc.db.queries.feed.Since`, whose events have ``touched``
    """
    return feed.since(tx, _SINCE, {"position": position})


def last_position(tx):
    """Return the last position that was assigned."""
    return tx.execute(sa.select(_state.c.last_position)).scalar() or 0


def providers(tx, after, limit):
    """Return the next providers in the order of their ids.

    :returns: list of rows of id, uuid, name, generation, parent_id (None for a root) and root_id
    """
    return tx.execute(_PROVIDERS, {"after": after, "limit": limit}).all()


def inventories(tx, first, last):
    """Return the inventories of the providers from the first id to the last.

    :returns: list of rows of resource_provider_id, resource_class_id and :data:`VALUES`
    """
    return tx.execute(_INVENTORIES, {"first": first, "last": last}).all()


def members(tx, first, last):
    """Return rows of provider id and aggregate uuid, from the first provider id to the last."""
    return tx.execute(_MEMBERS, {"first": first, "last": last}).all()


def trait_links(tx, first, last):
    """Return rows of provider id and trait name, from the first provider id to the last."""
    return tx.execute(_TRAITS, {"first": first, "last": last}).all()


def inventory_texts(tx, first, last):
    """Return the inventories of a range of providers as texts.

    :returns: list of rows of class id, number of inventories, and a text with commas of provider
        id and :data:`VALUES` of each
    """
    return tx.execute(_INVENTORY_TEXTS, {"first": first, "last": last}).all()


def trait_sets(tx, first, last):
    """Return the sets of traits that a range of providers has.

    :returns: list of rows of number of traits, a text with commas of their ids, number of
        providers, and a text with commas of their ids; a set may come several times
    """
    return tx.execute(_TRAIT_SETS, {"first": first, "last": last}).all()


def aggregate_sets(tx, first, last):
    """Return the sets of aggregates of providers, as :func:`trait_sets` those of traits."""
    return tx.execute(_AGGREGATE_SETS, {"first": first, "last": last}).all()


def named(tx, uuids):
    """Return some providers, as :func:`providers` does."""
    return _NAMED.execute(tx, {"uuids": list(uuids)}).all()


def inventories_of(tx, provider_ids):
    """Return the inventories of some providers, as :func:`inventories` does."""
    return _INVENTORIES_OF.execute(tx, {"ids": list(provider_ids)}).all()


def members_of(tx, provider_ids):
    """Return rows of provider id and aggregate uuid of some providers."""
    return _MEMBERS_OF.execute(tx, {"ids": list(provider_ids)}).all()


def trait_links_of(tx, provider_ids):
    """Return rows of provider id and trait name of some providers."""
    return _TRAITS_OF.execute(tx, {"ids": list(provider_ids)}).all()


def classes(tx):
    """Return a dict of the name of every resource class to its id."""
    return dict(tx.execute(sa.select(_classes.c.name, _classes.c.id)).all())


def traits(tx):
    """Return a dict of the id of every trait to its name."""
    return dict(tx.execute(sa.select(_traits.c.id, _traits.c.name)).all())


def aggregates(tx):
    """Return a dict of the id of every aggregate to its uuid."""
    return dict(tx.execute(sa.select(_aggregates.c.id, _aggregates.c.uuid)).all())
