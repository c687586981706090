# SPDX-License-Identifier: Apache-2.0
"""Statements of revisions that run on a store that is in use.

MariaDB commits each statement. Therefore all of them look for what an interrupted attempt has made
already, so that a revision can be run again.
"""

import contextlib

import sqlalchemy as sa
from alembic import op

#: Seconds to wait for a lock.
PATIENCE = 5


@contextlib.contextmanager
def patience():
    """Let each statement wait for a lock for at most :data:`PATIENCE` seconds."""
    run(postgresql=f"SET LOCAL lock_timeout = '{PATIENCE}s'",
        mysql=f"SET SESSION lock_wait_timeout = {PATIENCE}")
    yield
    # Not after an error: the migration ends then, and its connection is closed.
    run(mysql="SET SESSION lock_wait_timeout = DEFAULT")


def run(**statements):
    """Run the statements of this database; there may be none.

    :param statements: by dialect, a str or a sequence of str; those of ``mysql`` are MariaDB's too
    """
    dialect = op.get_bind().dialect.name
    found = statements.get("mysql" if dialect == "mariadb" else dialect, ())
    for statement in (found,) if isinstance(found, str) else found:
        op.execute(statement)


def create_table(name, *columns, **options):
    """Create a table, unless it is there; its indexes need :func:`create_index`."""
    op.create_table(name, *columns, if_not_exists=True, **options)


def create_index(name, table, columns):
    """Create an index, unless it is there."""
    if name not in {each["name"] for each in sa.inspect(op.get_bind()).get_indexes(table)}:
        op.create_index(name, table, columns)


def columns(found, table):
    """Return the names of the columns of a table, a set of str.

    :param found: :class:`sqlalchemy.engine.reflection.Inspector`
    """
    return {each["name"] for each in found.get_columns(table)}


def add_uuid(found, table, column):
    """Add a column for uuids; see :func:`add_column`."""
    add_column(found, table, column, "VARCHAR(36)",
               mysql="CHAR(36) CHARACTER SET ascii COLLATE ascii_bin")


def add_column(found, table, column, kind, mysql=None):
    """Add a nullable column without a default, unless it is there.

    MariaDB is told to refuse any way that changes the rows.

    :param found: :class:`sqlalchemy.engine.reflection.Inspector`
    :param kind: str, its type
    :param mysql: str, its type on MariaDB; None for the same
    """
    if column not in columns(found, table):
        statement = f"ALTER TABLE {table} ADD COLUMN {column} "
        run(sqlite=statement + kind, postgresql=statement + kind,
            mysql=f"{statement}{mysql or kind} NULL, ALGORITHM=INSTANT")
