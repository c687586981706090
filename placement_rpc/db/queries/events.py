# SPDX-License-Identifier: Apache-2.0
"""The outbox: events that are written with their changes, and what can be read of them.

Ids commit out of order, so nothing pages by them: the relay gives each event that it can see a
position (:mod:`placement_rpc.db.queries.relaying`), and positions have no gap.
"""

import collections
import datetime
import itertools
import typing
import uuid

import sqlalchemy as sa

from placement_rpc.db import api, galera, models
from placement_rpc.db.queries import bulk, hold

_events = models.events
_state = models.relay_state
#: The id of the only row of the relay's progress.
STATE_ID = 1

Row = collections.namedtuple(
    "Row", "id event_id event_type occurred_at payload position epoch")


class Comparison(typing.NamedTuple):
    """What the stream has, compared with the store.

    Events are :class:`placement_rpc.notifications.event.Event`.

    :param lost: the events that the store does not have
    :param moved: the events that the store has, and not at the position of the stream, which it
        has not given or has given to another event
    :param agreed: the last position at which both agree
    :param last: the last position of the stream, 0 if it has no event
    :param state: of the store when it was compared, as of :func:`state`
    """

    lost: list[typing.Any]
    moved: list[typing.Any]
    agreed: int
    last: int
    state: typing.Any

    @property
    def differs(self) -> bool:
        """Whether there is anything to reconcile."""
        return bool(self.lost or self.moved)


class NewEvent(typing.NamedTuple):
    """An event as it is inserted; ``payload`` and ``touched`` are JSON.

    ``released_consumer`` is the uuid of the consumer of a deletion of allocations.
    """

    event_id: str
    event_type: str
    occurred_at: datetime.datetime
    payload: str
    touched: str | None
    released_consumer: str | None = None


_INSERT = bulk.Insert(_events, *NewEvent._fields)
_INSERT_AND_SEE = bulk.Insert(_events, *NewEvent._fields, returning=(hold.IS_SET,))
_COLUMNS = (_events.c.id, _events.c.event_id, _events.c.event_type, _events.c.occurred_at,
            _events.c.payload, _events.c.position,
            sa.select(_state.c.epoch).where(_state.c.id == STATE_ID).scalar_subquery().label(
                "epoch"))
# None of these rows has a position. They are ordered by it all the same, so that a server uses an
# index of the position and the id; ordered by the id alone, it may read all events in the order of
# the primary key.
_WAITING = sa.select(*_COLUMNS).where(_events.c.position.is_(None)).order_by(
    _events.c.position, _events.c.id).limit(sa.bindparam("limit"))
_IDS_AT = bulk.OverLists(lambda among: sa.select(
    _events.c.position, _events.c.event_id).where(among(_events.c.position, "positions")))
_POSITIONS_OF = bulk.OverLists(lambda among: sa.select(
    _events.c.event_id, _events.c.position).where(among(_events.c.event_id, "ids")))
_AFTER = sa.select(*_COLUMNS).where(_events.c.position > sa.bindparam("after")).order_by(
    _events.c.position).limit(sa.bindparam("limit"))

# The type is a part of the text of the statement: an index of deletions only can then be used.
_IS_DELETION = sa.and_(
    _events.c.event_type == sa.literal_column("'allocation.delete'"),
    _events.c.occurred_at >= sa.bindparam("time", type_=_events.c.occurred_at.type))
_RELEASED = bulk.OverLists(lambda among: sa.select(_events.c.released_consumer).where(
    _IS_DELETION, among(_events.c.released_consumer, "consumers")))
_RELEASED_UNNAMED = sa.select(_events.c.payload).where(
    _IS_DELETION, _events.c.released_consumer.is_(None))


def insert(tx, rows):
    """Write events, in the order in which they occurred for each provider.

    :param rows: list of :class:`NewEvent`
    :raises StoreHeld: if the store is held
    """
    if tx.dialect.name == "postgresql":
        if any(is_held for is_held, in _INSERT_AND_SEE.execute(tx, rows)):
            raise hold.refusal(hold.state(tx).reason)
    else:
        hold.check(tx)
        _INSERT.execute(tx, rows)
    written(tx)


def insert_while_held(tx, rows):
    """As :func:`insert`, for the one that holds the store."""
    _INSERT.execute(tx, rows)
    written(tx)


def written(tx):
    """Record that a transaction writes events, for :meth:`Database.after_events`."""
    tx.info[api.EVENTS_WRITTEN] = True


def state(tx, lock=False):
    """Return the progress of the relay.

    :returns: row of last_position, published_position, epoch
    """
    query = sa.select(
        _state.c.last_position, _state.c.published_position, _state.c.epoch).where(
            _state.c.id == STATE_ID)
    row = tx.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None and lock:
        tx.execute(sa.insert(_state), {
            "id": STATE_ID, "last_position": 0, "published_position": 0,
            "epoch": str(uuid.uuid4()), "updated_at": bulk.now()})
        row = tx.execute(query).one()
    return row


def last_id(tx):
    """Return the highest id of an event; 0 if there is none."""
    return tx.execute(sa.select(sa.func.max(_events.c.id))).scalar() or 0


def last_position(tx):
    """Return the position that the newest event with a position has; 0 if there is none."""
    row = state(tx)
    return row.last_position if row else 0


def bounds(tx):
    """Return the first and the last position as a tuple; the first is None without events."""
    last = last_position(tx)
    return tx.execute(sa.select(sa.func.min(_events.c.position))).scalar(), last


def after(tx, position, limit):
    """Return the events after a position, in order, as rows of the fields of :class:`Row`."""
    return tx.execute(_AFTER, {"after": position, "limit": limit}).all()


def next_positions(tx, last, limit):
    """Return events without a position, as :class:`Row` with the positions that they would get.

    :param last: int, the last position that was given
    """
    rows = tx.execute(_WAITING, {"limit": limit}).all()
    return [Row(*row[:-2], position, row.epoch) for position, row in enumerate(rows, last + 1)]


def waiting(tx):
    """Return all events without a position; see :func:`next_positions`."""
    return next_positions(tx, last_position(tx), 10 ** 9)


def ids_at(tx, positions):
    """Return the ids of the events that have positions: dict of position to event id.

    :param positions: collection of int
    """
    return dict(tuple(row) for row in _IDS_AT.execute(
        tx, {"positions": sorted(positions)})) if positions else {}


def positions_of(tx, ids):
    """Return the positions of the events that are stored: dict of event id to int, or to None.

    :param ids: collection of event ids
    """
    return dict(tuple(row) for row in _POSITIONS_OF.execute(
        tx, {"ids": sorted(ids)})) if ids else {}


def newest_time(tx, position):
    """Return when the last event up to a position occurred; None if no such event is stored."""
    return tx.execute(sa.select(_events.c.occurred_at).where(
        _events.c.position <= position).order_by(_events.c.position.desc()).limit(1)).scalar()


def status(tx):
    """Return the state of the outbox.

    :returns: dict of unpositioned, last_position, published_position, oldest_kept (a position),
        oldest_unsent (a datetime), events, epoch
    """
    # Read before the positions, so that an event which gets one in between is counted as waiting.
    waiting = tx.execute(sa.select(sa.func.count(), sa.func.min(_events.c.occurred_at)).where(
        _events.c.position.is_(None))).one()
    row = state(tx)
    published = row.published_position if row else 0
    unsent = tx.execute(sa.select(sa.func.min(_events.c.occurred_at)).where(
        _events.c.position > published)).scalar()
    return {
        "unpositioned": waiting[0],
        "last_position": row.last_position if row else 0,
        "published_position": published,
        "epoch": row.epoch if row else None,
        "oldest_kept": tx.execute(sa.select(sa.func.min(_events.c.position))).scalar(),
        "oldest_unsent": min(filter(None, (unsent, waiting[1])), default=None),
        "events": tx.execute(sa.select(sa.func.count()).select_from(_events)).scalar(),
    }


def lag(tx):
    """Return the lag of the relay, by two short queries for any number of events.

    :returns: tuple of the number of unpublished events, and the datetime of the oldest of them;
        None if there is none
    """
    row = state(tx)
    last, published = (row.last_position, row.published_position) if row else (0, 0)
    waiting, oldest = tx.execute(sa.select(
        sa.func.count(), sa.func.min(_events.c.occurred_at)).where(
            _events.c.position.is_(None))).one()
    if last > published:
        first = tx.execute(sa.select(_events.c.occurred_at).where(
            _events.c.position > published).order_by(_events.c.position).limit(1)).scalar()
        oldest = min(filter(None, (first, oldest)), default=None)
    return waiting + last - published, oldest


def waiting_payloads(tx, limit):
    """Return the payloads of the oldest unpublished events, a list of str."""
    published = (state(tx) or (0, 0))[1]
    return list(tx.execute(sa.select(_events.c.payload).where(sa.or_(
        _events.c.position.is_(None), _events.c.position > published,
    )).order_by(_events.c.id).limit(limit)).scalars())


def released_since(tx, consumers, time):
    """Return which consumers had their allocations deleted since a time.

    Deletions that a process of an older release wrote are found by their payloads.

    :param consumers: collection of uuids
    :param time: datetime in UTC
    :returns: set of uuids
    """
    found = set(_RELEASED.execute(tx, {"consumers": sorted(consumers), "time": time}).scalars())
    payloads = tx.execute(_RELEASED_UNNAMED, {"time": time}).scalars().all()
    return found | {uuid for uuid in consumers if any(uuid in payload for payload in payloads)}


def position_at(tx, time):
    """Return the position before the first event that occurred at or after a time."""
    found = tx.execute(sa.select(sa.func.min(_events.c.position)).where(
        _events.c.occurred_at >= time, _events.c.position.is_not(None))).scalar()
    return found - 1 if found is not None else (state(tx) or [0])[0]


def count_between(tx, after, last):
    """Return how many events are stored after a position, up to another one."""
    return tx.execute(sa.select(sa.func.count()).where(
        _events.c.position > after, _events.c.position <= last)).scalar()


def _is_followed_by_old(tx, after, last, before, now):
    """Return whether an event from before a time is the next one whose time is not in the future.

    :param after: the position after which to look, up to ``last``
    """
    found = _events.c.position > after, _events.c.position <= last
    old = tx.execute(sa.select(sa.func.min(_events.c.position)).where(
        *found, _events.c.occurred_at < before)).scalar()
    if old is None:
        return False
    return tx.execute(sa.select(_events.c.position).where(
        *found, _events.c.position < old, _events.c.occurred_at <= now).limit(1)).first() is None


def prune(tx, before, limit=5000):
    """Delete published events from before a time, the first positions first, at most ``limit``.

    With the clocks of several machines, times do not rise with positions: all events after one
    that is kept are kept, so that no gap is left. A time in the future is a wrong clock's: such an
    event is as old as those that follow it.

    :returns: int, how many were deleted
    """
    now = bulk.now_of(tx)
    # Locked against a replay of the events that are being deleted.
    row = state(tx, lock=True)
    rows = tx.execute(sa.select(_events.c.id, _events.c.occurred_at, _events.c.position).where(
        _events.c.position <= row.published_position,
    ).order_by(_events.c.position).limit(limit)).all()
    old = list(itertools.takewhile(
        lambda each: each.occurred_at < before or each.occurred_at > now, rows))
    if len(old) < limit or old[-1].occurred_at < before or not _is_followed_by_old(
            tx, old[-1].position, row.published_position, before, now):
        while old and old[-1].occurred_at >= before:
            old.pop()
    ids = [each.id for each in old]
    if ids:
        tx.execute(sa.delete(_events).where(_events.c.id.in_(ids)))
        # A replay on another node of a Galera cluster does not see the lock.
        galera.touch(tx, _state, {STATE_ID})
    return len(ids)
