# SPDX-License-Identifier: Apache-2.0
"""How many rows OpenStack Placement's tables have."""

import sqlalchemy as sa

from placement_rpc.db.placement import schema

_TABLES = {
    "resource_classes": schema.resource_classes, "traits": schema.traits,
    "consumer_types": schema.consumer_types, "providers": schema.resource_providers,
    "inventories": schema.inventories, "provider_traits": schema.resource_provider_traits,
    "provider_aggregates": schema.resource_provider_aggregates, "consumers": schema.consumers,
    "allocations": schema.allocations}


def sizes(connection, revision):
    """Return a dict of the name of each kind of rows to about how many there are.

    :param connection: of :func:`placement_rpc.db.placement.connection.snapshot`
    :param revision: str, of the schema
    """
    return {kind: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar()
            for kind, table in _TABLES.items()
            if kind != "consumer_types" or schema.has_consumer_types(revision)}
