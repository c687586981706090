# SPDX-License-Identifier: Apache-2.0
"""What the consumers of a project use, and the events that change it."""

import functools

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk, feed
from placement_rpc.objects import catalog
from placement_rpc.objects.catalog import Effect

_allocations = models.allocations
_classes = models.resource_classes
_consumers = models.consumers
_events = models.events
_types = models.consumer_types

#: Events that are read at most: as many after a position, and as many that have none yet.
MOST = 200

# What changes used amounts or the names of classes, or all. The types are a part of the text of
# the statement.
_MATTERS = _events.c.event_type.in_([
    sa.literal_column(f"'{name}'") for name, event in catalog.EVENTS.items()
    if event.effect in (Effect.USED, Effect.CLASSES, Effect.EVERYTHING)])
_NEW = (*feed.KEYS, _events.c.event_type, sa.case((_MATTERS, _events.c.payload)).label("payload"))
# As many as are needed to see that there are more than MOST.
_WAITING = sa.select(*_NEW).where(_events.c.position.is_(None), _MATTERS).limit(
    MOST + 1).subquery()
_SINCE = sa.union_all(
    feed.head(_events.c.event_type, _events.c.payload),
    sa.select(*_NEW).where(_events.c.position.between(
        sa.bindparam("first"), sa.bindparam("last"))),
    sa.select(*_WAITING.c))


def since(tx, position):
    """Read the event at a position, the first ones after it, and those without a position.

    :param position: int
    :returns: :class:`placement_rpc.db.queries.feed.Since`, whose events have ``event_type`` and
        ``payload``, None if it changes no usages. Of either kind there are more if there are more
        than :data:`MOST`
    """
    return feed.since(tx, _SINCE, {"first": position, "last": position + MOST})


def of_project(tx, project_id, user_id=None, type_of=None):
    """Return what the consumers of a project use of each class, and how many there are.

    All is of the same moment.

    :param user_id: str, only the consumers of this user; None for all
    :param type_of: tuple of one name, only the consumers of this type, None for those without
        one; None for all
    :returns: list of rows of the type (None for consumers without one), the name of the class
        (None for the number of consumers), and the amount or the number
    """
    values = {"project": project_id}
    if user_id is not None:
        values["user"] = user_id
    if type_of is not None and type_of[0] is not None:
        if not type_of[0].isascii():
            # The names of types are ASCII, and MariaDB cannot compare them with other letters.
            return []
        values["type"] = type_of[0]
    statement = _of_project(tx.dialect.name, tuple(values), type_of == (None,))
    return [(row[0], row[1], int(row[2])) for row in tx.execute(statement, values)]


@functools.lru_cache(maxsize=32)
def _of_project(dialect, names, is_untyped):
    """Return the statement; to build it takes longer than to run it.

    :param names: tuple of the names of its parameters
    """
    wanted = [*bulk.is_same_text(dialect, _consumers.c.project_id, "project")]
    if "user" in names:
        wanted += bulk.is_same_text(dialect, _consumers.c.user_id, "user")
    if "type" in names:
        wanted.append(_consumers.c.consumer_type_id == sa.select(_types.c.id).where(
            _types.c.name == sa.bindparam("type")).scalar_subquery())
    if is_untyped:
        wanted.append(_consumers.c.consumer_type_id.is_(None))
    # A consumer is deleted with its last allocation: each of them counts.
    counts = sa.select(
        _consumers.c.consumer_type_id, sa.cast(sa.null(), sa.Integer).label("class_id"),
        sa.func.count().label("amount")).where(*wanted).group_by(_consumers.c.consumer_type_id)
    sums = sa.select(
        _consumers.c.consumer_type_id, _allocations.c.resource_class_id,
        sa.func.sum(_allocations.c.used)).join_from(
            _consumers, _allocations, _allocations.c.consumer_id == _consumers.c.id).where(
                *wanted).group_by(
                    _consumers.c.consumer_type_id, _allocations.c.resource_class_id)
    both = sa.union_all(counts, sums).subquery()
    return sa.select(_types.c.name, _classes.c.name, both.c.amount).select_from(
        both.outerjoin(_types, _types.c.id == both.c.consumer_type_id).outerjoin(
            _classes, _classes.c.id == both.c.class_id))
