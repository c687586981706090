# SPDX-License-Identifier: Apache-2.0
"""Statements over many rows at once that differ between databases."""

import datetime

import sqlalchemy as sa


def now():
    """:returns: datetime in UTC without a zone, as the tables hold times"""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


def named(name):
    """A list parameter for ``in_``: one compiled statement serves lists of any length."""
    return sa.bindparam(name, expanding=True)


def set_numbers(tx, table, column, values, expected=None):
    """Set a whole-number column of many rows, each to its own value, in one statement.

    :param table: :class:`sqlalchemy.Table` with ``id`` and ``updated_at``
    :param column: str, name of the column
    :param values: dict of row id to new value
    :param expected: dict of row id to the value the row must still have, or None for no check
    :returns: int, how many rows were set; fewer than asked for when one was not as expected
    """
    if tx.dialect.name == "postgresql":
        statement = _from_arrays(table.name, column, expected is not None)
        parameters = {"ids": list(values), "new": list(values.values()), "now": now()}
        if expected is not None:
            parameters["old"] = [expected[key] for key in values]
        return tx.execute(statement, parameters).rowcount
    statement = sa.text(_from_cases(table.name, column, values, expected))
    return tx.execute(statement, {"now": now()}).rowcount


_statements = {}


def _from_arrays(table, column, checked):
    # One text whatever the number of rows, so that the server plans it once.
    key = (table, column, checked)
    if key not in _statements:
        arrays = "CAST(:ids AS bigint[]), CAST(:new AS bigint[])"
        names, check = "id, new", ""
        if checked:
            arrays += ", CAST(:old AS bigint[])"
            names, check = "id, new, old", f" AND t.{column} = v.old"
        _statements[key] = sa.text(
            f"UPDATE {table} AS t SET {column} = v.new, updated_at = :now "  # noqa: S608
            f"FROM unnest({arrays}) AS v({names}) WHERE t.id = v.id{check}")
    return _statements[key]


def _from_cases(table, column, values, expected):
    # Nothing but whole numbers from the database goes into this text.
    sql = (f"UPDATE {table} SET {column} = {_case(values)}, updated_at = :now "  # noqa: S608
           f"WHERE id IN ({', '.join(str(int(key)) for key in values)})")
    if expected is not None:
        sql += f" AND {column} = {_case({key: expected[key] for key in values})}"
    return sql


def _case(values):
    branches = " ".join(f"WHEN {int(key)} THEN {int(value)}" for key, value in values.items())
    return f"CASE id {branches} END"
