# SPDX-License-Identifier: Apache-2.0
"""Finds rows of OpenStack Placement's database that refer to nothing, or are written unusually."""

import sqlalchemy as sa

from placement_rpc.db.placement import schema

_aggregates = schema.placement_aggregates
_aggregate_links = schema.resource_provider_aggregates
_allocations = schema.allocations
_classes = schema.resource_classes
_consumers = schema.consumers
_inventories = schema.inventories
_providers = schema.resource_providers
_trait_links = schema.resource_provider_traits
_traits = schema.traits

_USUAL = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_UUIDS = {"providers": _providers.c.uuid, "consumers": _consumers.c.uuid,
          "allocations": _allocations.c.consumer_id, "aggregates": _aggregates.c.uuid}


def is_unusual(uuid, dialect):
    """Return the condition that a uuid is not written in lower case with dashes.

    :param uuid: column
    :param dialect: str, the kind of the database
    """
    usual = uuid.regexp_match(_USUAL)
    if dialect in ("mysql", "mariadb"):
        # Its collations ignore case.
        usual = sa.and_(usual, sa.cast(uuid, sa.LargeBinary) == sa.cast(
            sa.func.lower(uuid), sa.LargeBinary))
    return sa.not_(usual)


class Oddities:
    """Queries of one snapshot.

    :param streams: :class:`streaming.Streams`
    :param dialect: str, the kind of the database
    """

    def __init__(self, streams, dialect):
        self._streams, self._dialect = streams, dialect
        self._known = {}

    def unusual(self, table):
        """Return the uuids that are not written in lower case with dashes, a list of str.

        :param table: ``providers``, ``consumers``, ``aggregates``, or ``allocations`` for the
            uuids of their consumers
        """
        column = _UUIDS[table]
        return self._once(table, lambda: [row[0] for row in self._streams.all(sa.select(
            column).distinct().where(is_unusual(column, self._dialect)))])

    def has_unusable_allocations(self):
        """Return whether allocations have no amount, or no provider or class exists for them."""
        return self._once("unusable", lambda: self._streams.scalar(
            _unusable(sa.literal(1)).limit(1)) is not None)

    def has_odd_holders(self):
        """Return whether allocations are unusable, or consumers missing or unusual."""
        return self._once("holders", lambda: bool(
            self.has_unusable_allocations() or self.unusual("consumers")
            or self.unusual("allocations")) or self._streams.scalar(
                sa.select(sa.literal(1)).select_from(_allocations).outerjoin(
                    _consumers, _consumers.c.uuid == _allocations.c.consumer_id).where(
                    _consumers.c.id.is_(None)).limit(1)) is not None)

    def has_broken_trees(self):
        """Return whether a parent or a root is missing or wrong, or parents form a loop."""
        return self._once("broken", lambda: self._streams.scalar(_disagreeing()) > 0 or bool(
            self._streams.scalar(_unreachable())))

    def ambiguous_names(self):
        """Return the names of providers that others differ from only in blanks at their end.

        MariaDB takes them for the same name.

        :returns: set of str, without blanks at their end
        """
        return self._once("names", self._ambiguous_names)

    def _ambiguous_names(self):
        name = _providers.c.name
        if self._streams.scalar(sa.select(sa.literal(1)).where(
                name.like("% ")).limit(1)) is None:
            return set()
        stripped = sa.func.rtrim(name)
        return {row[0] for row in self._streams.all(sa.select(stripped).where(
            name.is_not(None)).group_by(stripped).having(sa.func.count() > 1))}

    def _once(self, name, read):
        if name not in self._known:
            self._known[name] = read()
        return self._known[name]

    def parents(self):
        """Return a list of tuples of a provider's id, its uuid, and its parent's id."""
        return [tuple(row) for row in self._streams.all(sa.select(
            _providers.c.id, _providers.c.uuid, _providers.c.parent_provider_id))]

    # -- rows without what they refer to ---------------------------------------------------

    def inventories_of_nothing(self):
        """Yield provider's id and uuid, class's id and name, and total, of inventories.

        uuid or name is None if there is no provider or class of the id.
        """
        return self._streams.stream(sa.select(
            _inventories.c.resource_provider_id, _providers.c.uuid,
            _inventories.c.resource_class_id, _classes.c.name, _inventories.c.total,
        ).select_from(_inventories).outerjoin(
            _providers, _providers.c.id == _inventories.c.resource_provider_id).outerjoin(
            _classes, _classes.c.id == _inventories.c.resource_class_id).where(
            sa.or_(_providers.c.id.is_(None), _classes.c.id.is_(None))).order_by(
                _inventories.c.id))

    def unusable_allocations(self):
        """Yield consumer's uuid, provider's id and uuid, class's id and name, and amount.

        uuid or name is None if there is no provider or class of the id.
        """
        return self._streams.stream(_unusable(
            _allocations.c.consumer_id, _allocations.c.resource_provider_id, _providers.c.uuid,
            _allocations.c.resource_class_id, _classes.c.name, _allocations.c.used).order_by(
                _allocations.c.id))

    def traits_of_nothing(self):
        """Yield provider's id and uuid, trait's id and name; uuid or name is None."""
        return self._streams.stream(sa.select(
            _trait_links.c.resource_provider_id, _providers.c.uuid, _trait_links.c.trait_id,
            _traits.c.name).select_from(_trait_links).outerjoin(
            _providers, _providers.c.id == _trait_links.c.resource_provider_id).outerjoin(
            _traits, _traits.c.id == _trait_links.c.trait_id).where(
            sa.or_(_providers.c.id.is_(None), _traits.c.id.is_(None))))

    def aggregates_of_nothing(self):
        """Yield provider's id and uuid, aggregate's id and uuid; one of the uuids is None."""
        return self._streams.stream(sa.select(
            _aggregate_links.c.resource_provider_id, _providers.c.uuid,
            _aggregate_links.c.aggregate_id, _aggregates.c.uuid,
        ).select_from(_aggregate_links).outerjoin(
            _providers, _providers.c.id == _aggregate_links.c.resource_provider_id).outerjoin(
            _aggregates, _aggregates.c.id == _aggregate_links.c.aggregate_id).where(
            sa.or_(_providers.c.id.is_(None), _aggregates.c.uuid.is_(None))))

    def unused(self):
        """Return how many projects, users and aggregates nothing refers to: a dict."""
        return {name: self._streams.scalar(sa.select(sa.func.count()).select_from(table).where(
            sa.not_(sa.exists().where(reference == table.c.id))))
            for name, table, reference in (
                ("projects", schema.projects, _consumers.c.project_id),
                ("users", schema.users, _consumers.c.user_id),
                ("aggregates", _aggregates, _aggregate_links.c.aggregate_id))}


def _unusable(*columns):
    return sa.select(*columns).select_from(_allocations).outerjoin(
        _providers, _providers.c.id == _allocations.c.resource_provider_id).outerjoin(
        _classes, _classes.c.id == _allocations.c.resource_class_id).where(sa.or_(
            _providers.c.id.is_(None), _classes.c.id.is_(None), _allocations.c.used < 1))


def _disagreeing():
    """Return a query of how many providers have a root that is not that of their parent."""
    parent = _providers.alias("parent")
    agrees = sa.case(
        (_providers.c.parent_provider_id.is_(None),
         _providers.c.root_provider_id == _providers.c.id),
        else_=_providers.c.root_provider_id == parent.c.root_provider_id)
    return sa.select(sa.func.count()).select_from(_providers).outerjoin(
        parent, parent.c.id == _providers.c.parent_provider_id).where(
        sa.func.coalesce(sa.case((agrees, 1), else_=0), 0) == 0)


def _unreachable():
    """Return a query of how many providers are not below a root: those of loops."""
    below = sa.select(_providers.c.id).where(
        _providers.c.parent_provider_id.is_(None)).cte("below", recursive=True)
    below = below.union_all(sa.select(_providers.c.id).join(
        below, _providers.c.parent_provider_id == below.c.id))
    return sa.select(
        sa.select(sa.func.count()).select_from(_providers).scalar_subquery()
        - sa.select(sa.func.count()).select_from(below).scalar_subquery())
