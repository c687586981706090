# SPDX-License-Identifier: Apache-2.0
"""Stored outcomes of requests, which answer a repeated request."""

import typing

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_requests = models.requests
_FIND = bulk.OverLists(lambda among: sa.select(
    _requests.c.request_id, _requests.c.method, _requests.c.fingerprint, _requests.c.outcome,
).where(among(_requests.c.request_id, "request_ids")))
_PRUNE_AT_ONCE = 5000


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
