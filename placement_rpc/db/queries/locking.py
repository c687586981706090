# SPDX-License-Identifier: Apache-2.0
"""Row locks: wait for them for a short time, or lock what is free."""

import contextlib

import sqlalchemy as sa

from placement_rpc.db import api, errors, models
from placement_rpc.db.queries import bulk


@contextlib.contextmanager
def translated_errors():
    """Raise :class:`placement_rpc.db.api.Locked` if a statement of the block waits too long.

    On MariaDB the statement needs the execution option
    :data:`placement_rpc.db.sessions.LOCKS_ROWS`.

    :raises placement_rpc.db.api.Locked: if another transaction keeps one of the rows locked
    """
    try:
        yield
    except errors.DATABASE_ERRORS as error:
        # MariaDB limits the time of the whole statement, which is an error of the kind BUSY.
        if errors.kind(error) in (errors.Kind.LOCKED, errors.Kind.BUSY):
            raise api.Locked from error
        raise


class _Rows:
    """The rows of a table by uuid: which of them exist, and which of them can be locked."""

    def __init__(self, table):
        columns = table.c.id, table.c.uuid
        self._existing = bulk.OverLists(lambda among: sa.select(*columns).where(
            among(table.c.uuid, "uuids")))
        self._free = bulk.OverLists(lambda among: sa.select(*columns).where(
            among(table.c.uuid, "uuids")).order_by(table.c.uuid).with_for_update(
                skip_locked=True).with_hint(table, f"FORCE INDEX (uq_{table.name}_uuid)", "mysql"))

    def lock(self, tx, uuids):
        lists = {"uuids": sorted(uuids)}
        existing = {row.uuid for row in self._existing.execute(tx, lists)}
        free = {row.uuid: row.id for row in self._free.execute(tx, lists)}
        return free, existing - free.keys()


_CONSUMERS = _Rows(models.consumers)
_PROVIDERS = _Rows(models.resource_providers)


def lock_free_consumers(tx, uuids):
    """Lock the consumers that no other transaction has locked, without waiting.

    :param uuids: collection of uuids
    :returns: dict of uuid to row id of those that are locked now, and the set of the uuids of
        those that another transaction has locked
    """
    return _CONSUMERS.lock(tx, uuids) if uuids else ({}, set())


def lock_free_providers(tx, uuids):
    """As :func:`lock_free_consumers`, for providers."""
    return _PROVIDERS.lock(tx, uuids) if uuids else ({}, set())
