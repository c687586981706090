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

_types = models.consumer_types
_TYPED = sa.outerjoin(_consumers, _types, _types.c.id == _consumers.c.consumer_type_id)
_CLASS_SUMS = sa.select(
    _types.c.name.label("consumer_type"), models.resource_classes.c.name,
    sa.func.sum(_allocations.c.used).label("used"),
).select_from(_TYPED.join(_allocations, _allocations.c.consumer_id == _consumers.c.id).join(
    models.resource_classes, models.resource_classes.c.id == _allocations.c.resource_class_id),
).group_by(_types.c.name, models.resource_classes.c.name)
# A consumer is deleted with its last allocation: each of them counts.
_COUNTS = sa.select(
    _types.c.name.label("consumer_type"), sa.func.count().label("consumers"),
).select_from(_TYPED).group_by(_types.c.name)


def sums(tx, project_id, user_id=None, type_of=None):
    """Return how much the consumers of a project have of each class, by their types.

    :param user_id: str, only the consumers of this user; None for all
    :param type_of: tuple of one name, only the consumers of this type, None for those without
        one; None for all
    :returns: list of rows of consumer_type, name of the class, used; the type is None for
        consumers without one
    """
    return _of_project(tx, _CLASS_SUMS, project_id, user_id, type_of)


def counts(tx, project_id, user_id=None, type_of=None):
    """Return how many consumers a project has: list of rows of consumer_type, consumers.

    The parameters are those of :func:`sums`.
    """
    return _of_project(tx, _COUNTS, project_id, user_id, type_of)


def _of_project(tx, query, project_id, user_id, type_of):
    query = query.where(_consumers.c.project_id == project_id)
    if user_id is not None:
        query = query.where(_consumers.c.user_id == user_id)
    if type_of is not None:
        # The names of types are ASCII, and MariaDB cannot compare them with other letters.
        name, = type_of
        query = query.where(sa.false() if name is not None and not name.isascii()
                            else _types.c.name == name)
    return tx.execute(query).all()


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
