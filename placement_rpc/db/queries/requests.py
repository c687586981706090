# SPDX-License-Identifier: Apache-2.0
"""Stored outcomes of requests, which answer a repeated request."""

import typing

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk, hold

_requests = models.requests
_hold = models.store_hold
_STORED = (_requests.c.request_id, _requests.c.method, _requests.c.fingerprint,
           _requests.c.outcome)
_FIND = bulk.OverLists(lambda among: sa.select(*_STORED).where(
    among(_requests.c.request_id, "request_ids")))
_PRUNE_AT_ONCE = 5000


def _of_change(locks):
    """Return the statement of :func:`of_change`.

    :param locks: bool, whether it locks the row of the hold
    """
    held = hold.ROW.with_only_columns(
        sa.literal("").label("request_id"), sa.literal("").label("method"),
        sa.literal("").label("fingerprint"), _hold.c.reason.label("outcome"),
        _hold.c.held_since.is_not(None).label("is_held"))
    return bulk.OverLists(lambda among: sa.union_all(
        sa.select(*_STORED, sa.null().label("is_held")).where(
            among(_requests.c.request_id, "request_ids")),
        held.with_for_update(read=True) if locks else held))


_OF_CHANGE, _OF_CHANGE_WITH_LOCK = _of_change(locks=False), _of_change(locks=True)


class NewRequest(typing.NamedTuple):
    """The outcome of a request, to be stored; ``outcome`` is JSON."""

    request_id: str
    method: str
    fingerprint: str
    outcome: str


_INSERT = bulk.Insert(_requests, *NewRequest._fields)


def find(tx, request_ids):
    """Return stored outcomes: dict of request id to row of the fields of :class:`NewRequest`."""
    rows = _FIND.execute(tx, {"request_ids": list(request_ids)}).all()
    return {row.request_id: row for row in rows}


def of_change(tx, request_ids):
    """As :func:`find`, in the transaction that is to settle those that have no outcome yet.

    :raises StoreHeld: if there are any, and the store is held
    """
    statement = _OF_CHANGE_WITH_LOCK if hold.is_locked_by(tx) else _OF_CHANGE
    found, held = {}, None
    for row in statement.execute(tx, {"request_ids": list(request_ids)}):
        if row.is_held is None:
            found[row.request_id] = row
        else:
            held = row
    check_accepted(tx, request_ids, found, (held.outcome or "") if held.is_held else None)
    return found


def check_accepted(tx, request_ids, found, reason):
    """Check that the requests that have no outcome yet may be settled in a transaction.

    :param found: dict of the ids of those that have one
    :param reason: str, why the store is held; None if it is not
    :raises StoreHeld: if there are any, and the store is held
    """
    if reason is not None and len(found) < len(request_ids):
        raise hold.refusal(reason)
    hold.checked(tx)


def insert(tx, rows):
    """Store outcomes.

    :param rows: list of :class:`NewRequest`
    :raises oslo_db.exception.DBDuplicateEntry: when another writer stored one of these requests
    """
    _INSERT.execute(tx, rows)


def prune(tx, before):
    """Delete outcomes from before a time, the oldest first, at most 5000 to keep it short.

    :param before: datetime in UTC
    :returns: int, how many were deleted
    """
    oldest = sa.select(_requests.c.request_id).where(
        _requests.c.created_at < before).order_by(_requests.c.created_at).limit(_PRUNE_AT_ONCE)
    ids = tx.execute(oldest).scalars().all()
    if ids:
        tx.execute(sa.delete(_requests).where(_requests.c.request_id.in_(ids)))
    return len(ids)
