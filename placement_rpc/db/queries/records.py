# SPDX-License-Identifier: Apache-2.0
"""Rows that a statement on PostgreSQL is given as one parameter: JSON records.

The text of the statement is the same for any number of rows, so that the server plans it once, and
rows of any number of tables travel in one round trip. The types of the fields are those of the
models' columns.
"""

import datetime
import json

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"),
    default=datetime.datetime.isoformat).encode
_PLACE = "place"


class Records:
    """A set of rows of one shape.

    :param parameter: str, the name of the statement's parameter that holds the rows
    :param fields: dict of field name to :class:`sqlalchemy.Column` that has the field's type
    :param ordered: bool, whether the rows have a further field ``place``, their number: a join
        does not keep the order of its rows
    """

    def __init__(self, parameter, fields, ordered=False):
        self._names = (*fields, *([_PLACE] if ordered else []))
        self._ordered = ordered
        types = {name: column.type for name, column in fields.items()}
        if ordered:
            types[_PLACE] = sa.Integer()
        given = sa.cast(sa.bindparam(parameter, type_=sa.Text), postgresql.JSON)
        #: the rows as a FROM clause: ``json_to_recordset(:parameter) AS given(field type, ...)``
        self.given = sa.func.json_to_recordset(given).table_valued(
            *(sa.column(name, type_) for name, type_ in types.items()),
        ).render_derived(f"given_{parameter}", with_types=True)

    def encode(self, rows):
        """Return the parameter's value.

        :param rows: iterable of tuples of the fields' values: str, int, float, datetime, None
        :returns: str
        """
        names = self._names
        if self._ordered:
            rows = [(*row, place) for place, row in enumerate(rows)]
        return _encode([dict(zip(names, row, strict=True)) for row in rows])
