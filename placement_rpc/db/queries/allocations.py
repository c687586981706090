# SPDX-License-Identifier: Apache-2.0
"""Read queries for allocations."""

import sqlalchemy as sa

from placement_rpc.db import models

_allocations = models.allocations
_consumers = models.consumers
_providers = models.resource_providers
_classes = models.resource_classes
_types = models.consumer_types
_POSITION = sa.select(models.relay_state.c.last_position).scalar_subquery()
_COLUMNS = (
    _allocations.c.id, _consumers.c.uuid.label("consumer_uuid"),
    _consumers.c.generation.label("consumer_generation"),
    _consumers.c.id.label("consumer_id"), _consumers.c.created_at.label("consumer_created_at"),
    _consumers.c.project_id, _consumers.c.user_id, _types.c.name.label("consumer_type"),
    _providers.c.uuid.label("provider_uuid"),
    _providers.c.generation.label("provider_generation"),
    _classes.c.name.label("resource_class"), _allocations.c.used, _allocations.c.updated_at)
_OF_CONSUMER = sa.select(*_COLUMNS).select_from(_allocations).join(_consumers).join(
    _providers, _providers.c.id == _allocations.c.resource_provider_id,
).join(_classes, _classes.c.id == _allocations.c.resource_class_id).outerjoin(
    _types, _types.c.id == _consumers.c.consumer_type_id,
).where(_consumers.c.uuid == sa.bindparam("uuid")).order_by(_allocations.c.id)
_WITH_PROVIDER = sa.select(_POSITION.label("position"), *_COLUMNS).select_from(
    _providers).outerjoin(
        _allocations, _allocations.c.resource_provider_id == _providers.c.id,
).outerjoin(_consumers, _consumers.c.id == _allocations.c.consumer_id).outerjoin(
    _classes, _classes.c.id == _allocations.c.resource_class_id,
).outerjoin(_types, _types.c.id == _consumers.c.consumer_type_id).where(
    _providers.c.uuid == sa.bindparam("uuid")).order_by(_allocations.c.id)


def of_consumer(tx, uuid):
    """Return the allocations of a consumer.

    :returns: list of rows of id, consumer_uuid, consumer_generation, consumer_id,
        consumer_created_at, project_id, user_id, consumer_type, provider_uuid,
        provider_generation, resource_class, used, updated_at
    """
    return tx.execute(_OF_CONSUMER, {"uuid": uuid}).all()


def with_provider(tx, uuid):
    """Return a provider and the allocations from it, as they were at one moment.

    :returns: list of rows as of :func:`of_consumer`, with position (that of the newest event;
        None if no event has one) in addition; one row whose id is None if nothing is allocated,
        and no row if there is no such provider
    """
    return tx.execute(_WITH_PROVIDER, {"uuid": uuid}).all()
