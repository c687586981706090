# SPDX-License-Identifier: Apache-2.0
"""Outcomes of requests, by which a repeated one is recognised."""

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
    """:returns: dict of request id to row of request_id, method, fingerprint, outcome"""
    rows = _FIND.execute(tx, {"request_ids": list(request_ids)}).all()
    return {row.request_id: row for row in rows}


def insert(tx, rows):
    """Keep outcomes.

    :param rows: list of :class:`NewRequest`
    :raises oslo_db.exception.DBDuplicateEntry: when one was settled by another writer
    """
    _INSERT.execute(tx, rows)


def prune(tx, before):
    """Delete some of the outcomes that are older than ``before``, a datetime in UTC.

    :returns: int, how many were deleted; fewer than there were, so that no transaction of
        this kind is long
    """
    oldest = sa.select(_requests.c.request_id).where(
        _requests.c.created_at < before).order_by(_requests.c.created_at).limit(_PRUNE_AT_ONCE)
    ids = tx.execute(oldest).scalars().all()
    if ids:
        tx.execute(sa.delete(_requests).where(_requests.c.request_id.in_(ids)))
    return len(ids)
