# SPDX-License-Identifier: Apache-2.0
"""The statements that a service in this process sends to its database."""

import contextlib

import sqlalchemy as sa


@contextlib.contextmanager
def recorded(database):
    """Record statements, for a block; a context manager whose value is a list of str.

    :param database: :class:`placement_rpc.db.api.Database`
    """
    found = []

    def see(_connection, _cursor, statement, *_rest):
        found.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", see)
    try:
        yield found
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", see)


def reads(found):
    """Return how many of some statements only read."""
    return sum(statement.startswith("SELECT") for statement in found)
