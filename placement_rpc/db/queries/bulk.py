# SPDX-License-Identifier: Apache-2.0
"""Statements over many rows at once that differ between databases."""

import datetime
import functools

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from placement_rpc.db.queries.records import Records

_TIMES = ("created_at", "updated_at")


def now():
    """Return the time as the tables hold it: a datetime in UTC without a zone."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


def now_of(tx):
    """Return the time of the database, as :func:`now`: it is the same for all its processes."""
    clock = {"postgresql": "clock_timestamp() AT TIME ZONE 'UTC'", "mysql": "UTC_TIMESTAMP(6)",
             "mariadb": "UTC_TIMESTAMP(6)"}.get(tx.dialect.name)
    return tx.execute(sa.select(sa.literal_column(clock))).scalar() if clock else now()


class OverLists:
    """A statement whose conditions name lists of values.

    PostgreSQL gets each list as one array: the text of the statement is the same for any length,
    so that the server plans it once. The other databases get a parameter per value.

    :param build: callable that makes the statement, given a function that makes the condition
        "this column is among the values of the list of that name"
    """

    def __init__(self, build):
        self._with_arrays = build(_among_array)
        self._with_values = build(_among_values)

    def execute(self, tx, lists):
        """Run the statement.

        :param lists: dict of name to list of values
        """
        if tx.dialect.name == "postgresql":
            return tx.execute(self._with_arrays, lists)
        return tx.execute(self._with_values, lists)


def _among_array(column, name):
    return column == sa.any_(sa.bindparam(name, type_=postgresql.ARRAY(column.type)))


def _among_values(column, name):
    return column.in_(sa.bindparam(name, expanding=True))


def is_same_text(dialect, column, name):
    """Return conditions that a text is equal to a parameter, letter by letter.

    On MariaDB texts are equal that differ in blanks at their end, and with most collations in case
    or in accents. The index is used for the first condition.

    :param dialect: str, the kind of the database
    :param name: str, of the parameter
    """
    same = (column == sa.bindparam(name),)
    if dialect not in ("mysql", "mariadb"):
        return same
    return (*same, sa.cast(column, sa.LargeBinary) == sa.bindparam(name, type_=column.type))


def insert_from(table, source, values, order_by=None):
    """Return an INSERT of rows that a SELECT gives.

    :param table: :class:`sqlalchemy.Table`; ``created_at`` and ``updated_at`` are set to the
        parameter ``now`` where the table has them and they are not given
    :param source: FROM clause of the SELECT
    :param values: dict of column name to expression
    :param order_by: expression in the order of which the rows get their ids; None for any order
    """
    times = {name: sa.bindparam("now", type_=table.c[name].type)
             for name in _TIMES if name in table.c and name not in values}
    # Row by row, even in a pipeline, costs the server several times as much.
    return sa.insert(table).from_select([*values.keys(), *times], sa.select(
        *values.values(), *times.values()).select_from(source).order_by(order_by))


class Insert:
    """Inserts many rows in one round trip.

    :param table: :class:`sqlalchemy.Table`
    :param columns: str, the columns that are given; ``created_at`` and ``updated_at`` are set
        where the table has them and they are not given
    :param returning: tuple of what to return: str for a column, or an expression
    """

    def __init__(self, table, *columns, returning=()):
        self._columns = columns
        self._times = [name for name in _TIMES if name in table.c and name not in columns]
        self._returning = bool(returning)
        returned = [table.c[each] if isinstance(each, str) else each for each in returning]
        self._plain = sa.insert(table)
        self._plain_returning = self._plain.returning(*returned)
        self._records = Records("rows", {name: table.c[name] for name in columns})
        given = self._records.given
        self._from_records = insert_from(table, given, given.c)
        if returned:
            self._from_records = self._from_records.returning(*returned)

    def execute(self, tx, rows):
        """Insert rows.

        :param rows: list of tuples of the columns' values
        :returns: list of rows of the columns to return; empty if there are none, or if the
            database does not return columns of an INSERT
        :raises oslo_db.exception.DBDuplicateEntry: when a row has a key that is taken
        """
        if tx.dialect.name == "postgresql":
            done = tx.execute(self._from_records, {
                "rows": self._records.encode(rows), **({"now": now()} if self._times else {})})
            return done.all() if self._returning else []
        times = dict.fromkeys(self._times, now())
        dicts = [{**dict(zip(self._columns, row, strict=True)), **times} for row in rows]
        if self._returning and tx.dialect.insert_returning:
            return tx.execute(self._plain_returning, dicts).all()
        tx.execute(self._plain, dicts)
        return []


class Update:
    """Updates many rows, each with its own values; on PostgreSQL in one round trip.

    :param table: :class:`sqlalchemy.Table` with ``id``
    :param columns: str, the columns that are given
    :param stamps: bool, whether ``updated_at`` is set to the present time
    """

    def __init__(self, table, *columns, stamps=True):
        self._columns, self._stamps = ("id", *columns), stamps
        self._records = Records("rows", {name: table.c[name] for name in self._columns})
        given = self._records.given.c
        stamp = {"updated_at": sa.bindparam(
            "now", type_=table.c.updated_at.type)} if stamps else {}
        self._from_records = sa.update(table).where(_is_row(table, given)).values(
            {**{name: given[name] for name in columns}, **stamp})
        self._plain = sa.update(table).where(table.c.id == sa.bindparam("new_id")).values(
            {**{name: sa.bindparam(f"new_{name}") for name in columns}, **stamp})

    def execute(self, tx, rows):
        """Update rows.

        :param rows: list of tuples of the id and the columns' values
        """
        stamp = {"now": now()} if self._stamps else {}
        if tx.dialect.name == "postgresql":
            tx.execute(self._from_records, {"rows": self._records.encode(rows), **stamp})
            return
        tx.execute(self._plain, [
            {**stamp, **{f"new_{name}": value for name, value in zip(
                self._columns, row, strict=True)}} for row in rows])


def _is_row(table, given):
    """Return the condition that a row of the table is the one of the given ``id``.

    PostgreSQL expects 100 rows from JSON, and would read all of a table with some thousand rows
    rather than look up so many. It expects 1 row in 200 to be within limits that it knows nothing
    about: those of ``id`` itself make it look up each row by the index.
    """
    largest = sa.literal_column(str(2 ** 63 - 1))
    return sa.and_(table.c.id == given.id, given.id.between(sa.literal_column("0"), largest))


def number_records(parameter, column, checked=False):
    """Return the records of :func:`numbers_from`: ``id``, ``old`` if it is checked, ``new``."""
    old = {"old": column} if checked else {}
    return Records(parameter, {"id": column.table.c.id, **old, "new": column})


def numbers_from(given, column):
    """Return an UPDATE of one whole-number column, each row to its own value.

    :param given: columns of the FROM clause of :func:`number_records`; with ``old`` among them
        a row is set only if it still has that value
    :param column: :class:`sqlalchemy.Column` of a table with ``id``; ``updated_at`` is set to the
        parameter ``now`` where the table has it
    """
    table = column.table
    values = {column.name: given.new}
    if "updated_at" in table.c:
        values["updated_at"] = sa.bindparam("now", type_=table.c.updated_at.type)
    statement = sa.update(table).where(_is_row(table, given)).values(values)
    return statement.where(column == given.old) if "old" in given else statement


def set_numbers(tx, column, values, expected=None):
    """Set a whole-number column of many rows, each to its own value, in one statement.

    :param column: :class:`sqlalchemy.Column` of a table with ``id``; ``updated_at`` is set where
        the table has it
    :param values: dict of row id to new value
    :param expected: dict of row id to the value the row must still have, or None for no check
    :returns: int, how many rows were set; fewer than asked for when one was not as expected
    """
    parameters = {"now": now()} if "updated_at" in column.table.c else {}
    if tx.dialect.name == "postgresql":
        records, statement = _from_records(column, expected is not None)
        rows = values.items() if expected is None else (
            (key, expected[key], value) for key, value in values.items())
        parameters["rows"] = records.encode(rows)
        return tx.execute(statement, parameters).rowcount
    statement = sa.text(_from_cases(column, values, expected))
    return tx.execute(statement, parameters).rowcount


@functools.cache
def _from_records(column, checked):
    records = number_records("rows", column, checked)
    return records, numbers_from(records.given.c, column)


def _from_cases(column, values, expected):
    # The text holds whole numbers from the database and names from the models, nothing else.
    table, name = column.table, column.name
    stamp = ", updated_at = :now" if "updated_at" in table.c else ""
    sql = (f"UPDATE {table.name} SET {name} = {_case(values)}{stamp} "  # noqa: S608
           f"WHERE id IN ({', '.join(str(int(key)) for key in values)})")
    if expected is not None:
        sql += f" AND {name} = {_case({key: expected[key] for key in values})}"
    return sql


def _case(values):
    branches = " ".join(f"WHEN {int(key)} THEN {int(value)}" for key, value in values.items())
    return f"CASE id {branches} END"
