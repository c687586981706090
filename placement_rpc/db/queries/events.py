# SPDX-License-Identifier: Apache-2.0
"""The outbox: events that are written with their changes, and the progress of the relay.

Ids commit out of order, so nothing pages by them: the relay gives each event that it can see a
position, and positions have no gap.
"""

import collections
import datetime
import itertools
import typing
import uuid

import sqlalchemy as sa

from placement_rpc.db import api, models
from placement_rpc.db.queries import bulk, hold

_events = models.events
_leases = models.leases
_state = models.relay_state
_STATE_ID = 1

Row = collections.namedtuple(
    "Row", "id event_id event_type occurred_at payload position epoch")


class NewEvent(typing.NamedTuple):
    """An event to be inserted; ``payload`` and ``touched`` are JSON.

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
            sa.select(_state.c.epoch).where(_state.c.id == _STATE_ID).scalar_subquery().label(
                "epoch"))
# Ordered by position first, although none of these rows has one: ordered by the id alone, a server
# may read all events in the order of the primary key.
_WAITING = sa.select(*_COLUMNS).where(_events.c.position.is_(None)).order_by(
    _events.c.position, _events.c.id).limit(sa.bindparam("limit"))
_LEADING = sa.select(
    _leases.c.holder, _state.c.last_position, _state.c.published_position, _state.c.epoch,
).join_from(_state, _leases, sa.true()).where(
    _state.c.id == _STATE_ID, _leases.c.name == sa.bindparam("lease")).with_for_update()
_IDLE = sa.select(
    sa.select(_events.c.id).where(_events.c.position.is_(None)).order_by(
        _events.c.position, _events.c.id).limit(1).scalar_subquery().is_(None)
    & (_state.c.published_position == _state.c.last_position)).where(_state.c.id == _STATE_ID)
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


def acquire(tx, name, holder, seconds):
    """Take a lease, or renew it, for some seconds.

    :param name: str, the task
    :param holder: str, the process
    :returns: bool, whether the holder has it
    :raises oslo_db.exception.DBDuplicateEntry: when two processes take a new lease at once
    """
    now = bulk.now()
    until = now + datetime.timedelta(seconds=seconds)
    row = tx.execute(sa.select(_leases).where(
        _leases.c.name == name).with_for_update()).one_or_none()
    if row is None:
        tx.execute(sa.insert(_leases), {"name": name, "holder": holder, "expires_at": until})
        return True
    if row.holder != holder and row.expires_at > now:
        return False
    tx.execute(sa.update(_leases).where(_leases.c.name == name).values(
        holder=holder, expires_at=until))
    return True


def release(tx, name, holder):
    """Release a lease, if the holder still has it."""
    tx.execute(sa.delete(_leases).where(_leases.c.name == name, _leases.c.holder == holder))


def state(tx, lock=False):
    """Return the progress of the relay.

    :returns: row of last_position, published_position, epoch
    """
    query = sa.select(
        _state.c.last_position, _state.c.published_position, _state.c.epoch).where(
            _state.c.id == _STATE_ID)
    row = tx.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None and lock:
        tx.execute(sa.insert(_state), {
            "id": _STATE_ID, "last_position": 0, "published_position": 0,
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


def give_positions(tx, last, limit):
    """Give the next positions to events that have none.

    :param last: int, the last position that was given
    :returns: list of :class:`Row`, the events that got one, in order
    """
    waiting = tx.execute(_WAITING, {"limit": limit}).all()
    rows = [Row(*row[:-2], position, row.epoch)
            for position, row in enumerate(waiting, last + 1)]
    if rows:
        bulk.set_numbers(tx, _events.c.position, {row.id: row.position for row in rows})
    return rows


def after(tx, position, limit):
    """Return the events after a position, in order, as rows of the fields of :class:`Row`."""
    return tx.execute(_AFTER, {"after": position, "limit": limit}).all()


def waiting(tx):
    """Return events without a position, as :class:`Row` with the positions that they would get."""
    last = state(tx)
    rows = tx.execute(_WAITING, {"limit": 10 ** 9}).all()
    return [Row(*row[:-2], position, row.epoch) for position, row in enumerate(
        rows, (last.last_position if last else 0) + 1)]


def begin_epoch(tx):
    """Begin a new numbering: listeners see that positions are not those that they know.

    :returns: str, the epoch
    """
    epoch = str(uuid.uuid4())
    state(tx, lock=True)
    _set_state(tx, epoch=epoch)
    return epoch


def next_batch(tx, lease, holder, confirmed, limit, seen=0):
    """Record which events were confirmed, and read the next ones.

    No other process can take the lease while the transaction runs. It has few statements, since
    it runs many times a second, alongside claims.

    :param confirmed: tuple of the published position when the batch was read, and the last
        position of the batch; None for no batch. A replay that was requested since then is kept.
    :param seen: int, the highest position that the caller has read. If the store has not given it
        any more, it was restored from a backup, and a new epoch begins
    :returns: tuple of the position after which events were read and the list of rows; None when
        another process has the lease
    """
    row = tx.execute(_LEADING, {"lease": lease}).one_or_none()
    if row is None:
        # The first call of all, or the lease was released.
        state(tx, lock=True)
        row = tx.execute(_LEADING, {"lease": lease}).one_or_none()
    if row is None or row.holder != holder:
        return None
    last, published = row.last_position, row.published_position
    restored = last < seen
    # Stores of release 2026.2 have no epoch yet.
    if row.epoch is None or restored:
        begin_epoch(tx)
    if confirmed and confirmed[0] == published and not restored:
        published = confirmed[1]
    # Also if many events wait to be published: readers that follow the events by their positions,
    # as the candidate indexes do, read all events without a position each time.
    given = give_positions(tx, last, limit)
    rows = after(tx, published, limit) if published < last else given
    last += len(given)
    if (last, published) != row[1:3]:
        _set_state(tx, last_position=last, published_position=published)
    return published, rows


def give_waiting_positions(tx, lease, holder, limit):
    """Give positions to some events that have none, whether or not others are published.

    :returns: int, the number of events that got one; 0 when another process has the lease
    """
    row = tx.execute(_LEADING, {"lease": lease}).one_or_none()
    if row is None or row.holder != holder:
        return 0
    rows = give_positions(tx, row.last_position, limit)
    if rows:
        _set_state(tx, last_position=row.last_position + len(rows))
    return len(rows)


def is_idle(tx):
    """Return whether no event waits to be published; takes no locks."""
    return bool(tx.execute(_IDLE).scalar())


def _set_state(tx, **values):
    tx.execute(sa.update(_state).where(_state.c.id == _STATE_ID).values(
        **values, updated_at=bulk.now()))


def mark_published(tx, read_from, position):
    """Record the last position up to which all is confirmed; see :func:`next_batch`."""
    tx.execute(sa.update(_state).where(
        _state.c.id == _STATE_ID, _state.c.published_position == read_from).values(
            published_position=position, updated_at=bulk.now()))


def rewind(tx, position):
    """Have the relay publish all events after a position again."""
    _set_state(tx, published_position=position)


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


def prune(tx, before, limit=5000):
    """Delete published events from before a time, the first positions first, at most ``limit``.

    With the clocks of several machines, times do not rise with positions: all events after one
    that is kept are kept, so that no gap is left.

    :returns: int, how many were deleted
    """
    # Locked against a replay of the events that are being deleted.
    row = state(tx, lock=True)
    rows = tx.execute(sa.select(_events.c.id, _events.c.occurred_at).where(
        _events.c.position <= row.published_position,
    ).order_by(_events.c.position).limit(limit)).all()
    ids = [each.id for each in itertools.takewhile(lambda each: each.occurred_at < before, rows)]
    if ids:
        tx.execute(sa.delete(_events).where(_events.c.id.in_(ids)))
    return len(ids)
