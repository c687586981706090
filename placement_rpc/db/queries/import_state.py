# SPDX-License-Identifier: Apache-2.0
"""The progress of the import of another store's data."""

import sqlalchemy as sa

from placement_rpc.db import galera, models
from placement_rpc.db.queries import bulk, events

_state = models.import_state
_events = models.events
_ID = 1
# Also events that were pruned had positions. In one statement, since the relay gives others theirs
# meanwhile.
_EVER_WRITTEN = sa.select(
    sa.func.coalesce(sa.select(models.relay_state.c.last_position).scalar_subquery(), 0)
    + sa.select(sa.func.count()).where(_events.c.position.is_(None)).scalar_subquery())
# Types of events to name in an error.
_SOME = 5


def get(tx, lock=False):
    """Return the row of the import, with all its columns; None if none has begun."""
    query = sa.select(_state).where(_state.c.id == _ID)
    return tx.execute(query.with_for_update() if lock else query).one_or_none()


def begin(tx, source, pass_id):
    """Record that the first pass begins.

    :param source: str, the database that is read, without its password
    :raises oslo_db.exception.DBDuplicateEntry: when two imports begin at once
    """
    now = bulk.now()
    tx.execute(sa.insert(_state), {
        "id": _ID, "source": source, "begun_at": now, "pass_begun_at": now, "passes": 0,
        "is_interrupted": False, "pass_id": pass_id, "last_event_before": events.last_id(tx),
        "events_before": tx.execute(_EVER_WRITTEN).scalar()})


def begin_pass(tx, source, pass_id):
    """Record that a further pass begins, so that an earlier one that still runs ends."""
    tx.execute(_update(source=source, pass_id=pass_id, pass_begun_at=bulk.now()))


def begin_batch(tx, pass_id):
    """Record that a pass changes rows, which no event announces before its end.

    The row is locked, so that batches of two passes follow each other.

    :returns: bool, whether the pass may go on; False if a later one has begun
    """
    may_go_on = tx.execute(_update(is_interrupted=True).where(
        _state.c.pass_id == pass_id, _state.c.finished_at.is_(None))).rowcount == 1
    # It may be interrupted already, and the row would not be written.
    galera.touch(tx, _state, {_ID}, "pass_begun_at")
    return may_go_on


def end_pass(tx, pass_id):
    """Record that a pass is complete.

    :returns: bool, as of :func:`begin_batch`
    """
    return tx.execute(_update(
        is_interrupted=False, passes=_state.c.passes + 1,
    ).where(_state.c.pass_id == pass_id, _state.c.finished_at.is_(None))).rowcount == 1


def finish(tx):
    """Record that the import is finished; return the time of it, as it is stored."""
    at = bulk.now()
    tx.execute(_update(finished_at=at))
    return at


def _update(**values):
    return sa.update(_state).where(_state.c.id == _ID).values(**values)


def count_event(tx):
    """Record that the import writes an event itself."""
    tx.execute(_update(events_before=_state.c.events_before + 1))


def uncounted_events(tx, counted):
    """Return how many events other processes have written, also if they were pruned since.

    :param counted: int, those before the import and of the import; None if they are not known
    """
    return 0 if counted is None else tx.execute(_EVER_WRITTEN).scalar() - counted


def other_events(tx, after, event_type):
    """Return stored events that the import did not write: their types, and how many there are.

    :param after: int, the id of the last event before the import
    :param event_type: str, that of the events of the import
    :returns: list of tuples of type and number
    """
    return tx.execute(sa.select(_events.c.event_type, sa.func.count()).where(
        _events.c.id > after, _events.c.event_type != event_type).group_by(
            _events.c.event_type).order_by(_events.c.event_type).limit(_SOME)).all()


def contents(tx, predefined):
    """Return what the store holds that an import would have to delete.

    :param predefined: collection of the names of the custom resource classes that each store has
    :returns: list of str, the names of the kinds of which there is a row
    """
    kinds = {
        "resource providers": sa.select(models.resource_providers.c.id),
        "consumers": sa.select(models.consumers.c.id),
        "compute nodes": sa.select(models.compute_nodes.c.id),
        "custom resource classes": _custom(models.resource_classes).where(
            models.resource_classes.c.name.not_in(sorted(predefined))),
        "custom traits": _custom(models.traits)}
    return [kind for kind, query in kinds.items() if tx.execute(query.limit(1)).first()]


def _custom(table):
    return sa.select(table.c.id).where(table.c.name.startswith("CUSTOM_", autoescape=True))
