# SPDX-License-Identifier: Apache-2.0
"""Which version the schema of a database has, and whether this release can use it.

Each command asks this first, so it is answered without Alembic, which takes as long to load as
SQLAlchemy. The revisions of each branch are numbered: those of *expand* from ``0001`` on, those of
*contract* from ``c001`` on. See :mod:`placement_rpc.db.migration` for what they do.
"""

import functools
import importlib.resources
import re

import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.db.migrations import versions

EXPAND, CONTRACT = "expand", "contract"
_NAMES = {EXPAND: re.compile(r"\d{4}"), CONTRACT: re.compile(r"c\d{3}")}
# Alembic's own table.
_APPLIED = sa.table("alembic_version", sa.column("version_num"))


@functools.cache
def newest(branch=EXPAND):
    """Return the last revision of a branch, a str; that of *expand* is the schema's version."""
    return _last(branch, (each.name for each in importlib.resources.files(versions).iterdir()))


def current(database):
    """Return the database's version in the expand branch, a str; None for an empty database.

    It may be one of a later release, which this one does not know. If only a later release's
    contraction is recorded, the newest that this one knows was applied.
    """
    applied = heads(database)
    found = _last(EXPAND, applied)
    if not found and (_last(CONTRACT, applied) or "") > newest(CONTRACT):
        return newest()
    if not found and applied:
        # The first revision of contract needs one of expand, which Alembic does not record then.
        from placement_rpc.db import migration
        return migration.expanded_by(applied)
    return found


def is_contracted(database):
    """Return whether all of the contract branch was applied."""
    return (_last(CONTRACT, heads(database)) or "") >= newest(CONTRACT)


def is_later(applied):
    """Return whether a release after this one has applied revisions.

    :param applied: list of str, as of :func:`heads`
    """
    return any((_last(branch, applied) or "") > newest(branch) for branch in _NAMES)


def check(database):
    """Check that the schema is the one that this release needs, or a later one.

    :raises SchemaOutdated: when it is an older one
    """
    found = current(database)
    if (found or "") < newest():
        raise exception.SchemaOutdated(current=found or "nothing", needed=newest())


def _last(branch, names):
    return max((found.group() for found in map(_NAMES[branch].match, names) if found),
               default=None)


def heads(database):
    """Return the last applied revision of each branch, as a list of str."""
    with database.reader() as connection:
        return heads_in(connection)


def heads_in(connection):
    """As :func:`heads`, within a transaction."""
    # Statements about the schema do not wait on a Galera cluster; this one does.
    connection.exec_driver_sql("SELECT 1")
    if not sa.inspect(connection).has_table(_APPLIED.name):
        return []
    return connection.scalars(sa.select(_APPLIED.c.version_num)).all()
