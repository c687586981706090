# SPDX-License-Identifier: Apache-2.0
"""Results of any length, read in parts, so that neither end holds all of one in memory."""

import sqlalchemy as sa

# Rows that are fetched at once.
_PART = 2000


class Streams:
    """Executes queries on a connection, one after the other.

    A query closes the result of the one before it: the drivers of MySQL have one open result for
    each connection.

    :param connection: :class:`sqlalchemy.Connection`
    """

    def __init__(self, connection):
        self._connection = connection
        self._result = None

    def stream(self, query, parameters=None):
        """Yield the rows of a query as they are read.

        :param parameters: dict of the query's parameters
        """
        self.close()
        result = self._connection.execute(
            query, parameters or {}, execution_options={"yield_per": _PART})
        self._result = result
        for part in result.partitions():
            yield from part

    def all(self, query):
        """Return all rows of a query, a list."""
        self.close()
        return self._connection.execute(query).all()

    def scalar(self, query):
        """Return the first column of the first row of a query."""
        self.close()
        return self._connection.execute(query).scalar()

    def close(self):
        """Close the open result. A stream that was not read to its end ends with an error."""
        if self._result is not None:
            self._result.close()
            self._result = None


def in_order(column: sa.ColumnElement, dialect: str) -> sa.ColumnElement:
    """Return an expression that sorts a column of text by code points.

    :param dialect: the kind of the database
    """
    if dialect == "postgresql":
        return sa.collate(column, "C")
    if dialect in ("mysql", "mariadb"):
        return sa.cast(column, sa.LargeBinary)
    return column
