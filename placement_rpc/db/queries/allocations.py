# SPDX-License-Identifier: Apache-2.0
"""Read queries for allocations."""

import sqlalchemy as sa

from placement_rpc.db import models

_allocations = models.allocations
_consumers = models.consumers
_providers = models.resource_providers
_ROWS = sa.select(
    _consumers.c.uuid.label("consumer_uuid"),
    _consumers.c.generation.label("consumer_generation"),
    _consumers.c.id.label("consumer_id"), _consumers.c.created_at.label("consumer_created_at"),
    _consumers.c.project_id, _consumers.c.user_id,
    models.consumer_types.c.name.label("consumer_type"),
    _providers.c.uuid.label("provider_uuid"),
    _providers.c.generation.label("provider_generation"),
    models.resource_classes.c.name.label("resource_class"), _allocations.c.used,
    _allocations.c.updated_at,
).select_from(_allocations).join(_consumers).join(
    _providers, _providers.c.id == _allocations.c.resource_provider_id,
).join(
    models.resource_classes, models.resource_classes.c.id == _allocations.c.resource_class_id,
).outerjoin(
    models.consumer_types, models.consumer_types.c.id == _consumers.c.consumer_type_id)
_OF_CONSUMER = _ROWS.where(_consumers.c.uuid == sa.bindparam("uuid")).order_by(
    _allocations.c.id)
_OF_PROVIDER = _ROWS.where(_providers.c.uuid == sa.bindparam("uuid")).order_by(
    _allocations.c.id)


def of_consumer(tx, uuid):
    """Return the allocations of a consumer.

    :returns: list of rows of consumer_uuid, consumer_generation, consumer_id,
        consumer_created_at, project_id, user_id, consumer_type, provider_uuid,
        provider_generation, resource_class, used, updated_at
    """
    return tx.execute(_OF_CONSUMER, {"uuid": uuid}).all()


def of_provider(tx, uuid):
    """Return the allocations from a provider: rows as of :func:`of_consumer`."""
    return tx.execute(_OF_PROVIDER, {"uuid": uuid}).all()
