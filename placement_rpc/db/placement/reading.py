# SPDX-License-Identifier: Apache-2.0
"""Reads the database of OpenStack Placement as streams, each in the order of one uuid.

The uuid is that of the provider, or of the consumer, to which a row belongs, and the first column;
rows of one uuid come in any order. Rows whose uuid is not written in the usual way, in lower case
with dashes, are apart from the others: the database cannot sort them where they belong.
"""

from collections.abc import Iterator
from typing import NamedTuple

import sqlalchemy as sa

from placement_rpc.db import streaming
from placement_rpc.db.placement import connection, oddities, schema

_aggregates = schema.placement_aggregates
_aggregate_links = schema.resource_provider_aggregates
_allocations = schema.allocations
_consumers = schema.consumers
_inventories = schema.inventories
_projects = schema.projects
_providers = schema.resource_providers
_trait_links = schema.resource_provider_traits
_users = schema.users


class Stream(NamedTuple):
    """Rows whose uuid is written in an unusual way, and all others in the order of their uuids."""

    unusual: list
    usual: Iterator


class Reader:
    """Reads one snapshot of Placement's database; one stream at a time.

    :param begun: of :func:`connection.snapshot`
    :param revision: str, the revision of its schema
    """

    def __init__(self, begun, revision):
        self._streams = streaming.Streams(begun)
        streaming.allow_lists(begun)
        self._dialect = begun.dialect.name
        self._has_types = schema.has_consumer_types(revision)
        #: :class:`oddities.Oddities` of the same snapshot
        self.oddities = oddities.Oddities(self._streams, self._dialect)

    # -- small tables ----------------------------------------------------------------------

    def resource_classes(self):
        """Return a list of tuples of id, name, created_at, updated_at."""
        return self._named(schema.resource_classes)

    def traits(self):
        """Return a list of tuples of id, name, created_at, updated_at."""
        return self._named(schema.traits)

    def consumer_types(self):
        """Return a list of tuples of id, name, created_at, updated_at."""
        return self._named(schema.consumer_types) if self._has_types else []

    def _named(self, table):
        return [tuple(row) for row in self._streams.all(sa.select(
            table.c.id, table.c.name, table.c.created_at, table.c.updated_at).order_by(
                table.c.id))]

    # -- streams ---------------------------------------------------------------------------

    def providers(self):
        """Read uuid, name, generation, ids of parent and root, and the uuids of these two.

        A uuid is None if there is no provider of the id. created_at and updated_at follow.
        """
        parent, root = _providers.alias("parent"), _providers.alias("root")
        return self._read(sa.select(
            _providers.c.uuid.label("key"), _providers.c.name, _providers.c.generation,
            _providers.c.parent_provider_id, _providers.c.root_provider_id,
            parent.c.uuid.label("parent"), root.c.uuid.label("root"), *streaming.times(_providers),
        ).select_from(_providers).outerjoin(
            parent, parent.c.id == _providers.c.parent_provider_id).outerjoin(
            root, root.c.id == _providers.c.root_provider_id), "providers")

    def inventories(self):
        """Read uuid of the provider, id of the class, total, reserved, min_unit, max_unit,
        step_size, allocation_ratio, used, created_at and updated_at.

        ``used`` is the sum of the allocations, None if there are none. If there are allocations
        without an inventory, the other values are None.
        """
        used = sa.select(
            _allocations.c.resource_provider_id, _allocations.c.resource_class_id,
            sa.cast(sa.func.sum(_allocations.c.used), sa.BigInteger).label("used"),
        ).where(_allocations.c.used > 0).group_by(
            _allocations.c.resource_provider_id, _allocations.c.resource_class_id).cte("used")
        same = sa.and_(_inventories.c.resource_provider_id == used.c.resource_provider_id,
                       _inventories.c.resource_class_id == used.c.resource_class_id)
        values = (_inventories.c.total, _inventories.c.reserved, _inventories.c.min_unit,
                  _inventories.c.max_unit, _inventories.c.step_size,
                  _inventories.c.allocation_ratio)
        with_inventory = sa.select(
            _providers.c.uuid.label("key"), _inventories.c.resource_class_id, *values,
            used.c.used, *streaming.times(_inventories),
        ).select_from(_inventories).join(
            _providers, _providers.c.id == _inventories.c.resource_provider_id,
        ).outerjoin(used, same)
        without = sa.select(
            _providers.c.uuid.label("key"), used.c.resource_class_id,
            *(sa.null().label(column.name) for column in values), used.c.used,
            sa.null().label("created_at"), sa.null().label("updated_at"),
        ).select_from(used).join(
            _providers, _providers.c.id == used.c.resource_provider_id,
        ).outerjoin(_inventories, same).where(_inventories.c.id.is_(None))
        return self._read(sa.union_all(with_inventory, without), "providers")

    def provider_traits(self):
        """Read uuid of the provider and id of the trait."""
        query = sa.select(
            _providers.c.uuid.label("key"), streaming.listed(_trait_links.c.trait_id),
        ).select_from(_trait_links).join(
            _providers, _providers.c.id == _trait_links.c.resource_provider_id,
        ).group_by(_providers.c.uuid)
        read = self._read(query, "providers")
        return Stream(list(_trait_ids(read.unusual)), _trait_ids(read.usual))

    def provider_aggregates(self):
        """Read uuids of the provider and of the aggregate, created_at and updated_at."""
        return self._read(sa.select(
            _providers.c.uuid.label("key"), _aggregates.c.uuid.label("aggregate"),
            *streaming.times(_aggregate_links),
        ).select_from(_aggregate_links).join(
            _providers, _providers.c.id == _aggregate_links.c.resource_provider_id,
        ).join(_aggregates, _aggregates.c.id == _aggregate_links.c.aggregate_id).where(
            _aggregates.c.uuid.is_not(None)), "providers")

    def consumers(self):
        """Read uuid, is_holder, project, user, id of the type, generation, created_at, updated_at.

        There are two sorts of rows: those of consumers, whose ``is_holder`` is 0, and one for each
        uuid that has allocations, whose ``is_holder`` is 1 and all else None.
        """
        columns = (
            _projects.c.external_id.label("project"), _users.c.external_id.label("user"),
            (_consumers.c.consumer_type_id if self._has_types else sa.null()).label("type_id"),
            _consumers.c.generation, *streaming.times(_consumers))
        sources = _consumers.outerjoin(
            _projects, _projects.c.id == _consumers.c.project_id).outerjoin(
            _users, _users.c.id == _consumers.c.user_id)
        if not self.oddities.has_odd_holders():
            held = sa.exists().where(_allocations.c.consumer_id == _consumers.c.uuid)
            read = self._read(sa.select(
                _consumers.c.uuid.label("key"), held.label("is_holder"), *columns,
            ).select_from(sources))
            return Stream([], _with_holders(read.usual))
        consumers = sa.select(
            _consumers.c.uuid.label("key"), sa.literal(0).label("is_holder"), *columns,
        ).select_from(sources)
        holders = self._usable(sa.select(
            _allocations.c.consumer_id.label("key")).distinct()).subquery()
        return self._read(sa.union_all(consumers, sa.select(
            holders.c.key, sa.literal(1), *[sa.null()] * 6)), "consumers", "allocations")

    def allocations(self):
        """Read uuids of the consumer and the provider, id of the class, used, created_at and
        updated_at."""
        columns = (_providers.c.uuid.label("provider"), _allocations.c.resource_class_id,
                   _allocations.c.used, *streaming.times(_allocations))
        key = _allocations.c.consumer_id.label("key")
        if self.oddities.unusual("allocations") or self.oddities.unusual("providers"):
            return self._read(self._usable(sa.select(key, *columns)), "allocations")
        read = self._read(self._usable(sa.select(key, streaming.listed(*columns))).group_by(
            _allocations.c.consumer_id))
        return Stream([], _each_allocation(read.usual))

    def _usable(self, query):
        """Return a query of the allocations that have an amount, a provider and a class."""
        query = query.select_from(_allocations).join(
            _providers, _providers.c.id == _allocations.c.resource_provider_id)
        if self.oddities.has_unusable_allocations():
            query = query.join(schema.resource_classes, schema.resource_classes.c.id ==
                               _allocations.c.resource_class_id).where(_allocations.c.used > 0)
        return query

    def _read(self, query, *tables):
        """Return the :class:`Stream` of a query.

        :param query: with the uuid as the column ``key``
        :param tables: those of :meth:`oddities.Oddities.unusual` that the uuid comes from
        """
        rows = query.subquery()
        all_, key, unusual = sa.select(rows), rows.c.key, []
        if any(self.oddities.unusual(table) for table in tables):
            is_unusual = oddities.is_unusual(key, self._dialect)
            unusual = [tuple(row) for row in self._streams.all(all_.where(is_unusual))]
            all_ = all_.where(sa.not_(is_unusual))
        return Stream(unusual, self._streams.stream(
            all_.order_by(streaming.in_order(key, self._dialect))))


def _trait_ids(read):
    """Yield uuid and id of a trait, given uuids and texts of ids."""
    for uuid, text in read:
        for id_, in streaming.unlisted(text):
            yield uuid, int(id_)


def _each_allocation(read):
    """Yield the rows of :meth:`Reader.allocations`, given uuids and texts of the others."""
    for uuid, text in read:
        for provider, class_id, used, created_at, updated_at in streaming.unlisted(text):
            yield (uuid, provider, int(class_id), int(used), connection.time_of(created_at),
                   connection.time_of(updated_at))


def _with_holders(read):
    """Yield the rows of :meth:`Reader.consumers`, given each consumer with ``is_holder``."""
    for uuid, is_holder, *others in read:
        yield uuid, 0, *others
        if is_holder:
            yield uuid, 1, *[None] * 6
