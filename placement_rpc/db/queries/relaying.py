# SPDX-License-Identifier: Apache-2.0
"""How the relay gives positions to events, and records which are published.

It does so under its lease, in a row that has the last position, the published one and their epoch.
"""

import functools
import typing
import uuid

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk, events

_events = models.events
_leases = models.leases
_state = models.relay_state


class PositionsLost(Exception):
    """The store has not given positions that it has given before: it has lost changes."""


class Batch(typing.NamedTuple):
    """The next events to publish.

    :param read_from: the position after which they were read
    :param rows: list of :class:`placement_rpc.db.queries.events.Row`
    :param last: the last position that the store has given
    :param epoch: of the positions
    """

    read_from: int
    rows: list[typing.Any]
    last: int
    epoch: str


_LEADING = sa.select(
    _leases.c.holder, _state.c.last_position, _state.c.published_position, _state.c.epoch,
).join_from(_state, _leases, sa.true()).where(
    _state.c.id == events.STATE_ID, _leases.c.name == sa.bindparam("lease")).with_for_update()
# The statistics of PostgreSQL may be older than the events that wait. If it expects few of them,
# it may read and sort all of them for each batch. With enable_sort off it reads only the next
# ones, in the order of ix_events_waiting. The settings end with the transaction.
_NO_SORT = sa.func.set_config("enable_sort", "off", sa.true())
# PostgreSQL 12 has no incremental sort, and refuses this setting.
_NO_INCREMENTAL_SORT = sa.func.set_config("enable_incremental_sort", "off", sa.true())
# Without these settings: it runs only while no batch waits to be marked.
_IDLE = sa.select(
    (_state.c.last_position >= sa.bindparam("given"))
    & sa.select(_events.c.id).where(_events.c.position.is_(None)).order_by(
        _events.c.position, _events.c.id).limit(1).scalar_subquery().is_(None)
    & (_state.c.published_position == _state.c.last_position)
).where(_state.c.id == events.STATE_ID)


def next_batch(tx, lease, holder, confirmed, limit, given=0, sent=0, under_way=None):
    """Record which events were confirmed, and read the next ones.

    No other process can take the lease while the transaction runs. It has few statements, since
    it runs many times a second, alongside claims.

    :param confirmed: tuple of the position after which a batch was read, and the last position of
        the batch; None for no batch. A replay that was requested since then is kept
    :param under_way: the same of a batch that is not confirmed yet, which the next one follows
    :param given: int, the highest position that was given, as far as the caller knows. If the
        store has not given it any more, it has lost changes, and a new epoch begins
    :param sent: int, the highest position that was published, or may have been
    :raises PositionsLost: if the store has lost changes that were published
    :returns: :class:`Batch`; None when another process has the lease
    """
    row = _leading(tx, lease)
    if row is None:
        # The first call of all, or the lease was released.
        events.state(tx, lock=True)
        row = _leading(tx, lease)
    if row is None or row.holder != holder:
        return None
    last, published, epoch = row.last_position, row.published_position, row.epoch
    _check_given(last, sent, "published")
    restored = last < given
    # Stores of release 2026.2 have no epoch yet.
    if epoch is None or restored:
        epoch = begin_epoch(tx)
    if confirmed and confirmed[0] == published and not restored:
        published = confirmed[1]
    # Also if many events wait to be published: readers that follow the events by their positions,
    # as the candidate indexes do, read all events without a position each time.
    new = give_positions(tx, last, limit)
    start = published
    if under_way and under_way[0] == published:
        start = under_way[1]
    rows = events.after(tx, start, limit) if start < last else new
    last += len(new)
    if (last, published) != (row.last_position, row.published_position):
        _set_state(tx, last_position=last, published_position=published)
    return Batch(start, rows, last, epoch)


def give_waiting_positions(tx, lease, holder, limit, given=0):
    """Give positions to some events that have none, whether or not others are published.

    :param given: as for :func:`next_batch`
    :raises PositionsLost: if the store has lost changes: only a comparison with what was published
        can tell whether positions may be given again
    :returns: int, the last position that was given; None if no event waits for one, or another
        process has the lease
    """
    row = _leading(tx, lease)
    if row is None or row.holder != holder:
        return None
    _check_given(row.last_position, given, "given")
    rows = give_positions(tx, row.last_position, limit)
    if not rows:
        return None
    _set_state(tx, last_position=rows[-1].position)
    return rows[-1].position


def _leading(tx, lease):
    """Lock the lease and the positions, and return them; None if there is no such lease.

    On PostgreSQL it also turns sorting off for the rest of the transaction.
    """
    query = _LEADING
    if tx.dialect.name == "postgresql":
        query = _leading_without_sort(tx.dialect.server_version_info >= (13,))
    return tx.execute(query, {"lease": lease}).one_or_none()


@functools.cache
def _leading_without_sort(has_incremental_sort):
    query = _LEADING.add_columns(_NO_SORT)
    return query.add_columns(_NO_INCREMENTAL_SORT) if has_incremental_sort else query


def _check_given(last, position, how):
    if last < position:
        raise PositionsLost(f"positions up to {position} were {how}, and the store has given "
                            f"positions up to {last} only")


def is_idle(tx, given=0):
    """Return whether no event waits to be published; takes no locks.

    :param given: as for :func:`next_batch`; a store that has lost changes is not idle
    """
    return bool(tx.execute(_IDLE, {"given": given}).scalar())


def give_positions(tx, last, limit):
    """Give the next positions to events that have none.

    :param last: int, the last position that was given
    :returns: list of :class:`placement_rpc.db.queries.events.Row`, the events that got one, in
        order
    """
    rows = events.next_positions(tx, last, limit)
    if rows:
        bulk.set_numbers(tx, _events.c.position, {row.id: row.position for row in rows})
    return rows


def begin_epoch(tx):
    """Begin a new numbering: listeners see that positions are not those that they know.

    :returns: str, the epoch
    """
    epoch = str(uuid.uuid4())
    events.state(tx, lock=True)
    _set_state(tx, epoch=epoch)
    return epoch


def continue_after(tx, agreed, position):
    """Begin a new epoch of positions, which continues after the last one that was published.

    Events with a position that was given to others get another one.

    :param agreed: int, the last position at which the store and what was published agree
    :param position: int, the last position that was published
    :returns: str, the epoch
    """
    tx.execute(sa.update(_events).where(_events.c.position > agreed).values(position=None))
    epoch = begin_epoch(tx)
    _set_state(tx, last_position=position, published_position=position)
    return epoch


def mark_published(tx, read_from, position):
    """Record the last position up to which all is confirmed; see :func:`next_batch`.

    A store that has lost the position is left as it is: it would give it to another event.
    """
    tx.execute(sa.update(_state).where(
        _state.c.id == events.STATE_ID, _state.c.published_position == read_from,
        _state.c.last_position >= position).values(
            published_position=position, updated_at=bulk.now()))


def rewind(tx, position):
    """Have the relay publish all events after a position again."""
    _set_state(tx, published_position=position)


def _set_state(tx, **values):
    tx.execute(sa.update(_state).where(_state.c.id == events.STATE_ID).values(
        **values, updated_at=bulk.now()))
