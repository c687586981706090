# SPDX-License-Identifier: Apache-2.0
"""Reads the store as streams, each in the order of one uuid, to compare it with another one.

The uuid is that of the provider, or of the consumer, to which a row belongs, and the first column;
rows of one uuid come in any order.
"""

import sqlalchemy as sa

from placement_rpc.db import models, streaming

_aggregates = models.aggregates
_aggregate_links = models.resource_provider_aggregates
_allocations = models.allocations
_consumers = models.consumers
_inventories = models.inventories
_providers = models.resource_providers
_trait_links = models.resource_provider_traits

_TABLES = {"providers": _providers, "inventories": _inventories, "provider_traits": _trait_links,
           "provider_aggregates": _aggregate_links, "consumers": _consumers,
           "allocations": _allocations}


class Reader:
    """Reads one snapshot of the store; one stream at a time.

    :param connection: of ``Database.reader(snapshot=True)``
    """

    def __init__(self, connection):
        self._streams = streaming.Streams(connection)
        self._dialect = connection.dialect.name
        streaming.allow_lists(connection)

    def resource_classes(self):
        """Return a list of tuples of id, name, created_at, updated_at."""
        return self._named(models.resource_classes)

    def traits(self):
        """Return a list of tuples of id, name, created_at, updated_at."""
        return self._named(models.traits)

    def consumer_types(self):
        """Return a list of tuples of id, name, created_at, updated_at."""
        return self._named(models.consumer_types)

    def _named(self, table):
        return [tuple(row) for row in self._streams.all(sa.select(
            table.c.id, table.c.name, table.c.created_at, table.c.updated_at))]

    def providers(self):
        """Yield uuid, name, generation, uuids of parent (None for a root) and root, created_at and
        updated_at."""
        parent, root = _providers.alias("parent"), _providers.alias("root")
        return self._read(_providers.c.uuid, sa.select(
            _providers.c.uuid, _providers.c.name, _providers.c.generation, parent.c.uuid,
            sa.func.coalesce(root.c.uuid, _providers.c.uuid), *streaming.times(_providers),
        ).select_from(_providers).outerjoin(
            parent, parent.c.id == _providers.c.parent_provider_id).outerjoin(
            root, root.c.id == _providers.c.root_provider_id))

    def inventories(self):
        """Yield provider's uuid, class's id, total, reserved, min_unit, max_unit, step_size,
        allocation_ratio, created_at and updated_at."""
        return self._read(_providers.c.uuid, sa.select(
            _providers.c.uuid, _inventories.c.resource_class_id, _inventories.c.total,
            _inventories.c.reserved, _inventories.c.min_unit, _inventories.c.max_unit,
            _inventories.c.step_size, _inventories.c.allocation_ratio,
            *streaming.times(_inventories),
        ).select_from(_inventories).join(
            _providers, _providers.c.id == _inventories.c.resource_provider_id))

    def provider_traits(self):
        """Yield provider's uuid and trait's id."""
        for uuid, text in self._read(_providers.c.uuid, sa.select(
                _providers.c.uuid, streaming.listed(_trait_links.c.trait_id),
        ).select_from(_trait_links).join(
                _providers, _providers.c.id == _trait_links.c.resource_provider_id,
        ).group_by(_providers.c.uuid)):
            for id_, in streaming.unlisted(text):
                yield uuid, int(id_)

    def provider_aggregates(self):
        """Yield uuids of provider and aggregate."""
        return self._read(_providers.c.uuid, sa.select(
            _providers.c.uuid, _aggregates.c.uuid).select_from(_aggregate_links).join(
            _providers, _providers.c.id == _aggregate_links.c.resource_provider_id).join(
            _aggregates, _aggregates.c.id == _aggregate_links.c.aggregate_id))

    def consumers(self):
        """Yield uuid, project, user, type's id, generation, created_at and updated_at."""
        return self._read(_consumers.c.uuid, sa.select(
            _consumers.c.uuid, _consumers.c.project_id, _consumers.c.user_id,
            _consumers.c.consumer_type_id, _consumers.c.generation, *streaming.times(_consumers)))

    def allocations(self):
        """Yield uuids of consumer and provider, class's id, used, created_at and updated_at."""
        return self._read(_consumers.c.uuid, sa.select(
            _consumers.c.uuid, _providers.c.uuid, _allocations.c.resource_class_id,
            _allocations.c.used, *streaming.times(_allocations),
        ).select_from(_allocations).join(
            _consumers, _consumers.c.id == _allocations.c.consumer_id).join(
            _providers, _providers.c.id == _allocations.c.resource_provider_id))

    def sizes(self):
        """Return a dict of those kinds that may have many rows to the number of theirs."""
        return {name: self._streams.scalar(sa.select(sa.func.count()).select_from(table))
                for name, table in _TABLES.items()}

    def _read(self, uuid, query):
        return self._streams.stream(query.order_by(streaming.in_order(uuid, self._dialect)))
