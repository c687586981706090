# SPDX-License-Identifier: Apache-2.0
"""Leases: tasks that one process does at a time, for as long as it says that it is there."""

import datetime

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_leases = models.leases


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
