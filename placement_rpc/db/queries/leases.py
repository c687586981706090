# SPDX-License-Identifier: Apache-2.0
"""Leases: tasks that one process does at a time, for as long as it says that it is there."""

import datetime
import time

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_leases = models.leases
# A lease that was not renewed for so many times its length counts as expired, even if its
# ``expires_at`` is later.
_SILENT = 10


class Watch:
    """What a process has seen of a lease of others.

    A holder whose clock was ahead leaves a lease that ends long after the process has ended.
    """

    def __init__(self):
        self._seen, self._since = None, 0.0

    def is_silent(self, row, seconds):
        """Return whether a lease has stayed as it is for that long, by the clock of this process.

        :param row: its row
        :param seconds: the length of the lease
        """
        if (seen := (row.holder, row.expires_at)) != self._seen:
            self._seen, self._since = seen, time.monotonic()
        return time.monotonic() - self._since > _SILENT * seconds


def acquire(tx, name, holder, seconds, watch=None):
    """Take a lease, or renew it, for some seconds.

    :param name: str, the task
    :param holder: str, the process
    :param watch: :class:`Watch` that the process keeps for this lease; None to believe the time
        at which a lease ends
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
    if row.holder != holder and row.expires_at > now and not (
            watch and watch.is_silent(row, seconds)):
        return False
    tx.execute(sa.update(_leases).where(_leases.c.name == name).values(
        holder=holder, expires_at=until))
    return True


def release(tx, name, holder):
    """Release a lease, if the holder still has it."""
    tx.execute(sa.delete(_leases).where(_leases.c.name == name, _leases.c.holder == holder))
