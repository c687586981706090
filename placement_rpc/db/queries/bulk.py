# SPDX-License-Identifier: Apache-2.0
"""Statements over many rows at once that differ between databases."""

import datetime
import functools

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

#: Between texts that are given as one. Never part of JSON, in which it is escaped, or of an id; a
#: name may have it.
SEPARATOR = "\x1e"


def now():
    """:returns: datetime in UTC without a zone, as the tables hold times"""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


class OverLists:
    """A statement whose conditions name lists of values.

    PostgreSQL gets each list as one array: the text of the statement is the same whatever the
    length, so that the server plans it once. The other databases get a parameter per value.

    :param build: callable that makes the statement, given a function that makes the condition
        "this column is among the values of the list of that name"
    """

    def __init__(self, build):
        self._with_arrays = build(_among_array)
        self._with_values = build(_among_values)

    def execute(self, tx, lists):
        """Run it.

        :param lists: dict of name to list of values
        """
        if tx.dialect.name == "postgresql":
            return tx.execute(self._with_arrays, lists)
        return tx.execute(self._with_values, lists)


def _among_array(column, name):
    return column == sa.any_(sa.bindparam(name, type_=postgresql.ARRAY(column.type)))


def _among_values(column, name):
    return column.in_(sa.bindparam(name, expanding=True))


class Insert:
    """Inserts many rows in one round trip.

    :param table: :class:`sqlalchemy.Table`
    :param columns: str, the columns that are given; ``created_at`` and ``updated_at`` are set
        where the table has them
    :param returning: tuple of str, columns to return
    """

    def __init__(self, table, *columns, returning=()):
        self._table = table
        self._columns = columns
        self._times = [name for name in ("created_at", "updated_at") if name in table.c]
        self._returning = [table.c[name] for name in returning]
        self._plain = sa.insert(table)
        self._from_arrays = self._insert_from(self._array)
        self._from_texts = self._insert_from(self._joined)

    def _insert_from(self, source):
        # Row by row, even in a pipeline, costs the server several times as much.
        arrays = sa.func.unnest(*map(source, self._columns)).table_valued(
            *self._columns).render_derived("given")
        rows = sa.select(*(arrays.c[name] for name in self._columns), *(
            sa.bindparam("now", type_=self._table.c[name].type) for name in self._times))
        return self._plain.from_select([*self._columns, *self._times], rows)

    def _array(self, name):
        return sa.bindparam(name, type_=postgresql.ARRAY(self._table.c[name].type))

    def _joined(self, name):
        if not self._is_text(name):
            return self._array(name)
        return sa.func.string_to_array(sa.bindparam(name, type_=sa.Text), SEPARATOR)

    def _is_text(self, name):
        return isinstance(self._table.c[name].type, sa.String)

    def execute(self, tx, rows):
        """Insert rows.

        :param rows: list of tuples of the columns' values
        :returns: list of rows of the columns to return; empty where none are
        :raises oslo_db.exception.DBDuplicateEntry:
        """
        if tx.dialect.name == "postgresql":
            statement, parameters = self._of_columns(rows)
            done = tx.execute(
                statement.returning(*self._returning) if self._returning else statement,
                {**parameters, "now": now()})
            return done.all() if self._returning else []
        at = now()
        times = dict.fromkeys(self._times, at)
        dicts = [{**dict(zip(self._columns, row, strict=True)), **times} for row in rows]
        if self._returning and tx.dialect.insert_returning:
            return tx.execute(self._plain.returning(*self._returning), dicts).all()
        tx.execute(self._plain, dicts)
        return []

    def _of_columns(self, rows):
        """:returns: the statement for PostgreSQL, and its parameters: a value for each column"""
        columns = dict(zip(self._columns, zip(*rows, strict=True), strict=True))
        texts = {name: _join(values) for name, values in columns.items() if self._is_text(name)}
        if None in texts.values():
            return self._from_arrays, {name: list(values) for name, values in columns.items()}
        return self._from_texts, {
            name: texts.get(name) or list(values) for name, values in columns.items()}


class Update:
    """Updates many rows, each with its own values; on PostgreSQL in one round trip.

    :param table: :class:`sqlalchemy.Table` with ``id`` and ``updated_at``
    :param columns: str, the columns that are given
    """

    def __init__(self, table, *columns):
        self._columns = ("id", *columns)
        given = sa.func.unnest(*(
            sa.bindparam(f"new_{name}", type_=postgresql.ARRAY(table.c[name].type))
            for name in self._columns)).table_valued(*self._columns).render_derived("given")
        at = sa.bindparam("now", type_=table.c.updated_at.type)
        self._from_arrays = sa.update(table).where(table.c.id == given.c.id).values(
            {**{name: given.c[name] for name in columns}, "updated_at": at})
        self._plain = sa.update(table).where(table.c.id == sa.bindparam("new_id")).values(
            {**{name: sa.bindparam(f"new_{name}") for name in columns}, "updated_at": at})

    def execute(self, tx, rows):
        """:param rows: list of tuples of the id and the columns' values"""
        if tx.dialect.name == "postgresql":
            tx.execute(self._from_arrays, {"now": now(), **{
                f"new_{name}": list(values) for name, values in zip(
                    self._columns, zip(*rows, strict=True), strict=True)}})
            return
        at = now()
        tx.execute(self._plain, [
            {"now": at, **{f"new_{name}": value for name, value in zip(
                self._columns, row, strict=True)}} for row in rows])


def _join(values):
    """Texts as one, which costs the driver a hundredth of writing them down as an array.

    :returns: str; None where they could not be told apart again
    """
    if None in values:
        return None
    joined = SEPARATOR.join(values)
    return joined if joined and joined.count(SEPARATOR) == len(values) - 1 else None


def set_numbers(tx, table, column, values, expected=None):
    """Set a whole-number column of many rows, each to its own value, in one statement.

    :param table: :class:`sqlalchemy.Table` with ``id``; ``updated_at`` is set where it has one
    :param column: str, name of the column
    :param values: dict of row id to new value
    :param expected: dict of row id to the value the row must still have, or None for no check
    :returns: int, how many rows were set; fewer than asked for when one was not as expected
    """
    stamp = ", updated_at = :now" if "updated_at" in table.c else ""
    parameters = {"now": now()} if stamp else {}
    if tx.dialect.name == "postgresql":
        statement = _from_arrays(table.name, column, expected is not None, stamp)
        parameters |= {"ids": list(values), "new": list(values.values())}
        if expected is not None:
            parameters["old"] = [expected[key] for key in values]
        return tx.execute(statement, parameters).rowcount
    statement = sa.text(_from_cases(table.name, column, values, expected, stamp))
    return tx.execute(statement, parameters).rowcount


@functools.cache
def _from_arrays(table, column, checked, stamp):
    # One text whatever the number of rows, so that the server plans it once.
    arrays = "CAST(:ids AS bigint[]), CAST(:new AS bigint[])"
    names, check = "id, new", ""
    if checked:
        arrays += ", CAST(:old AS bigint[])"
        names, check = "id, new, old", f" AND t.{column} = v.old"
    return sa.text(
        f"UPDATE {table} AS t SET {column} = v.new{stamp} "  # noqa: S608
        f"FROM unnest({arrays}) AS v({names}) WHERE t.id = v.id{check}")


def _from_cases(table, column, values, expected, stamp):
    # Nothing but whole numbers from the database goes into this text.
    sql = (f"UPDATE {table} SET {column} = {_case(values)}{stamp} "  # noqa: S608
           f"WHERE id IN ({', '.join(str(int(key)) for key in values)})")
    if expected is not None:
        sql += f" AND {column} = {_case({key: expected[key] for key in values})}"
    return sql


def _case(values):
    branches = " ".join(f"WHEN {int(key)} THEN {int(value)}" for key, value in values.items())
    return f"CASE id {branches} END"
