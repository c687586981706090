# SPDX-License-Identifier: Apache-2.0
"""Results of any length, read in parts, so that neither end holds all of one in memory."""

import sqlalchemy as sa

from placement_rpc.db import sessions

# Rows that are fetched at once.
_PART = 2000
# Bytes; MySQL cuts longer texts off.
_LONGEST_LIST = 2 ** 30
# Between the values of a row, and between rows; a time has a blank.
_FIELD, _RECORD = ";", ","


class Streams:
    """Executes queries on a connection, one after the other.

    A query closes the result of the one before it: the drivers of MySQL have one open result for
    each connection.

    :param connection: :class:`sqlalchemy.Connection`
    """

    def __init__(self, connection):
        sessions.keep_for_stream(connection)
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


def times(table: sa.FromClause) -> tuple[sa.ColumnElement, sa.ColumnElement]:
    """Return the columns of a table that say when a row was created, and when it was updated."""
    return table.c.created_at, table.c.updated_at


def in_order(uuid: sa.ColumnElement, dialect: str) -> sa.ColumnElement:
    """Return an expression that sorts uuids in lower case with dashes by code points.

    :param dialect: the kind of the database
    """
    # Of MySQL all collations do so, and an index of the column serves.
    return sa.collate(uuid, "C") if dialect == "postgresql" else uuid


def allow_lists(connection: sa.Connection) -> None:
    """Let a session of MySQL return texts of :func:`listed` of any length."""
    if connection.dialect.name in ("mysql", "mariadb"):
        connection.exec_driver_sql(f"SET SESSION group_concat_max_len = {_LONGEST_LIST}")


def listed(*columns: sa.ColumnElement) -> sa.ColumnElement:
    """Return an aggregate function: values as one text, which :func:`unlisted` reads.

    To transfer one long row takes a fraction of the time of many short ones. They are cut off
    on MySQL unless :func:`allow_lists` was called.

    :param columns: their values contain neither semicolons nor commas
    """
    texts = [sa.func.coalesce(sa.cast(column, sa.String(255)), "") for column in columns]
    record = texts[0]
    for text in texts[1:]:
        record = record + sa.literal(_FIELD) + text
    return sa.func.aggregate_strings(record, _RECORD)


def unlisted(text: str) -> list[list[str]]:
    """Return the values of each row of a text of :func:`listed`; an empty text for NULL."""
    return [record.split(_FIELD) for record in text.split(_RECORD)]
