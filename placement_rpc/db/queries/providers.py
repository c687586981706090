# SPDX-License-Identifier: Apache-2.0
"""Resource providers."""

import functools
from typing import Any, NamedTuple

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_providers = models.resource_providers
_links, _has = models.resource_provider_aggregates, models.resource_provider_traits
_traits = models.traits
_POSITION = sa.select(models.relay_state.c.last_position).scalar_subquery()
_parents, _roots = (_providers.alias(name) for name in ("parents", "roots"))
_COLUMNS = (
    _providers.c.id, _providers.c.uuid, _providers.c.name, _providers.c.generation,
    _providers.c.updated_at, _parents.c.id.label("parent_id"),
    _parents.c.uuid.label("parent_uuid"),
    # The root of a root is itself.
    sa.func.coalesce(_roots.c.id, _providers.c.id).label("root_id"),
    sa.func.coalesce(_roots.c.uuid, _providers.c.uuid).label("root_uuid"))
_SELECT = sa.select(*_COLUMNS).select_from(
    _providers.outerjoin(_parents, _parents.c.id == _providers.c.parent_provider_id).outerjoin(
        _roots, _roots.c.id == _providers.c.root_provider_id))

_GET = _SELECT.where(_providers.c.uuid == sa.bindparam("uuid"))
# Without the joins: the parent and the root are not to be locked.
_LOCK = sa.select(_providers.c.id).where(
    _providers.c.uuid == sa.bindparam("uuid")).with_for_update()


def insert(tx, uuid, name, parent_id=None, root_id=None):
    """Insert a provider at generation 0.

    :param parent_id: int, row id of its parent; None for a root
    :param root_id: int, row id of the root of its parent's tree; None for a root
    :raises oslo_db.exception.DBDuplicateEntry: when the uuid or the name is taken
    """
    at = bulk.now()
    tx.execute(sa.insert(_providers), {
        "uuid": uuid, "name": name, "generation": 0, "created_at": at, "updated_at": at,
        "parent_provider_id": parent_id, "root_provider_id": root_id})


def get(tx, uuid):
    """Return a provider.

    :returns: row of id, uuid, name, generation, updated_at, parent_id, parent_uuid, root_id and
        root_uuid; None if there is none
    """
    return tx.execute(_GET, {"uuid": uuid}).one_or_none()


def lock(tx, uuid):
    """Return a provider as :func:`get` does, locked until the transaction ends."""
    # Read by a statement of its own, after the lock was granted.
    return get(tx, uuid) if tx.execute(_LOCK, {"uuid": uuid}).first() else None


def named(tx, name):
    """Return the row id of the provider of a name; None if there is none."""
    return tx.execute(
        sa.select(_providers.c.id).where(_providers.c.name == name)).scalar()


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
    """Delete a provider with its inventories, and its links to aggregates and traits.

    :raises oslo_db.exception.DBReferenceError: when it has allocations or children
    """
    for table in (models.inventories, _links, models.resource_provider_traits):
        tx.execute(sa.delete(table).where(table.c.resource_provider_id == provider_id))
    tx.execute(sa.delete(_providers).where(_providers.c.id == provider_id))


class Page(NamedTuple):
    """Providers, and the position of the last event, which they are sure to include.

    ``has_traits`` says whether the row ids of the traits are those of their names.
    """

    position: int
    has_traits: bool
    rows: list[Any]


def page(tx, name=None, uuid=None, member_of=None, not_member_of=None, in_tree=None,
         required=None, forbidden=None, traits=None, among=None, after=None, limit=None):
    """Return providers in the order of their ids; all conditions have to be met.

    :param name: str, only the provider of this name
    :param uuid: str, only the provider of this uuid
    :param member_of: list of lists of aggregate uuids: only providers that are in at least one
        aggregate of each list
    :param not_member_of: list of aggregate uuids: only providers that are in none of them
    :param in_tree: str, uuid of a provider: only providers of its tree
    :param required: list of lists of row ids of traits: only providers that have at least one of
        each list
    :param forbidden: list of row ids of traits: only providers that have none of them
    :param traits: list of tuples of the row id and the name of each of these traits
    :param among: list of uuids: only providers that are among these
    :param after: int, row id after which to begin
    :param limit: int, how many at most
    :returns: :class:`Page` of rows as of :func:`get`
    """
    values = {name: value for name, value in (
        ("name", name), ("uuid", uuid), ("among", among), ("in_tree", in_tree),
        ("after", after), ("not_member_of", not_member_of or None),
        ("forbidden", forbidden or None), ("traits", traits or None),
        ("limit", limit)) if value is not None}
    values |= {f"member_of_{number}": uuids for number, uuids in enumerate(member_of or ())}
    values |= {f"required_{number}": ids for number, ids in enumerate(required or ())}
    rows = tx.execute(_page(tx.dialect.name, tuple(values)), values).all()
    return Page(rows[0].position or 0, rows[0].traits == len(traits or ()),
                [] if rows[0].id is None else rows)


@functools.lru_cache(maxsize=256)
def _page(dialect, names):
    """Return the statement of a page; to build it takes longer than to run it.

    :param dialect: str, the kind of the database
    :param names: tuple of the names of its parameters
    """
    query = _SELECT.order_by(_providers.c.id)
    traits = sa.literal_column("0")
    for name in names:
        if name == "limit":
            query = query.limit(sa.bindparam(name))
        elif name == "name":
            query = query.where(*bulk.is_same_text(dialect, _providers.c.name, name))
        elif name == "traits":
            traits = sa.select(sa.func.count()).select_from(_traits).where(
                sa.tuple_(_traits.c.id, _traits.c.name).in_(_several(name))).scalar_subquery()
        else:
            query = query.where(_CONDITIONS[name.rstrip("_0123456789")](name))
    found = query.subquery()
    # One row without a provider if there are none.
    once = sa.select(_POSITION.label("position"), traits.label("traits")).subquery()
    return sa.select(*found.c, once.c.position, once.c.traits).select_from(
        once.outerjoin(found, sa.true())).order_by(found.c.id)


def _several(name):
    return sa.bindparam(name, expanding=True)


def _in_tree(name):
    """Return the condition that a provider is in the tree of another."""
    member = _providers.alias()
    root = sa.select(sa.func.coalesce(member.c.root_provider_id, member.c.id)).where(
        member.c.uuid == sa.bindparam(name)).scalar_subquery()
    return sa.or_(_providers.c.id == root, _providers.c.root_provider_id == root)


def _with_trait(name):
    """Return the condition that a provider has one of the traits.

    Here and for aggregates SQLite begins with the providers that have it; with EXISTS it would
    look at all providers.
    """
    return _providers.c.id.in_(sa.select(_has.c.resource_provider_id).where(
        _has.c.trait_id.in_(_several(name))))


def _without_trait(name):
    return ~sa.exists().where(
        _has.c.resource_provider_id == _providers.c.id, _has.c.trait_id.in_(_several(name)))


def _in_aggregate(name):
    return _providers.c.id.in_(sa.select(_links.c.resource_provider_id).where(
        _links.c.aggregate_id == models.aggregates.c.id,
        models.aggregates.c.uuid.in_(_several(name))))


def _in_no_aggregate(name):
    return ~sa.exists().where(
        _links.c.resource_provider_id == _providers.c.id,
        _links.c.aggregate_id == models.aggregates.c.id,
        models.aggregates.c.uuid.in_(_several(name)))


# Parameter to a function of its name that returns the condition.
_CONDITIONS = {
    "uuid": lambda name: _providers.c.uuid == sa.bindparam(name),
    "among": lambda name: _providers.c.uuid.in_(_several(name)),
    "in_tree": _in_tree,
    "after": lambda name: _providers.c.id > sa.bindparam(name),
    "member_of": _in_aggregate,
    "not_member_of": _in_no_aggregate,
    "required": _with_trait,
    "forbidden": _without_trait,
}
