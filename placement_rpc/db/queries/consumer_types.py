# SPDX-License-Identifier: Apache-2.0
"""Types of consumers, which come into being when a consumer has them.

They are never deleted, except by an import while the store is held.
"""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_types = models.consumer_types
_BY_NAME = bulk.OverLists(lambda among: sa.select(_types.c.name, _types.c.id).where(
    among(_types.c.name, "names")))
_BY_ID = bulk.OverLists(lambda among: sa.select(_types.c.id, _types.c.name).where(
    among(_types.c.id, "ids")))


def names(tx, ids):
    """Return the names of types: dict of row id to name."""
    return dict(tuple(row) for row in _BY_ID.execute(tx, {"ids": sorted(ids)}))


def ids(tx, names):
    """Return the row ids of types: dict of name to row id. Those that do not exist are inserted.

    :param names: collection of str
    :raises oslo_db.exception.DBDuplicateEntry: when another writer inserts one of them
    """
    if not names:
        return {}
    found = _find(tx, names)
    missing = sorted(set(names) - found.keys())
    if missing:
        at = bulk.now()
        tx.execute(sa.insert(_types), [
            {"name": name, "created_at": at, "updated_at": at} for name in missing])
        found |= _find(tx, missing)
    return found


def _find(tx, names):
    return dict(tuple(row) for row in _BY_NAME.execute(tx, {"names": sorted(names)}))
