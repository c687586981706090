# SPDX-License-Identifier: Apache-2.0
"""Attempts at commands, to detect those during which processes end."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_attempts = models.command_attempts


def count_attempt(tx, command_id):
    """Record that a command is about to be attempted.

    :param command_id: str
    :returns: int, the number of attempts including this one
    """
    made = tx.execute(sa.select(_attempts.c.attempts).where(
        _attempts.c.command_id == command_id).with_for_update()).scalar()
    if made is None:
        tx.execute(sa.insert(_attempts), {
            "command_id": command_id, "attempts": 1, "tried_at": bulk.now()})
        return 1
    tx.execute(sa.update(_attempts).where(_attempts.c.command_id == command_id).values(
        attempts=made + 1, tried_at=bulk.now()))
    return made + 1


def forget_attempts(tx, command_id):
    """Delete the record of attempts at a command."""
    tx.execute(sa.delete(_attempts).where(_attempts.c.command_id == command_id))


def prune(tx, before, limit=5000):
    """Delete commands that were not attempted since a time, at most ``limit`` of them.

    :returns: int, how many were deleted
    """
    ids = tx.execute(sa.select(_attempts.c.command_id).where(
        _attempts.c.tried_at < before).limit(limit)).scalars().all()
    if ids:
        tx.execute(sa.delete(_attempts).where(_attempts.c.command_id.in_(ids)))
    return len(ids)
