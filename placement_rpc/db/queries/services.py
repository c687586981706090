# SPDX-License-Identifier: Apache-2.0
"""Heartbeats of the processes of the service."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_services = models.services


def beat(tx, identity, versions, started):
    """Write a heartbeat; insert the process's row if there is none.

    :param identity: dict of binary, host, worker
    :param versions: dict of version, rpc_version, pin, oldest_caller
    :param started: bool, whether the process has just started
    """
    at = bulk.now()
    times = {"last_seen_at": at, **({"started_at": at} if started else {})}
    where = [_services.c[name] == value for name, value in identity.items()]
    done = tx.execute(sa.update(_services).where(*where).values(**versions, **times))
    if not done.rowcount:
        tx.execute(sa.insert(_services), {
            **identity, **versions, "started_at": at, "last_seen_at": at})


def remove(tx, identity):
    """Delete the row of a process that stops."""
    tx.execute(sa.delete(_services).where(
        *(_services.c[name] == value for name, value in identity.items())))


def forget(tx, binary, host, before):
    """Delete the rows of a program on a host that were last written before a time."""
    tx.execute(sa.delete(_services).where(
        _services.c.binary == binary, _services.c.host == host,
        _services.c.last_seen_at < before))


def everyone(tx):
    """Return the rows of all processes, with all columns."""
    return tx.execute(sa.select(_services).order_by(
        _services.c.binary, _services.c.host, _services.c.worker)).all()
