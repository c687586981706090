# SPDX-License-Identifier: Apache-2.0
"""Cells of what cliff prints."""

import json

_FOR_PEOPLE = ("table", "value")


class Mapping(dict):
    """A mapping for a program: where its text is printed, as in CSV, that is JSON too."""

    def __str__(self):
        return json.dumps(self, sort_keys=True)


def without_none(options, rows):
    """Rows with empty cells where there is no value, for a person.

    A program gets them as they are: null in JSON, and nothing in CSV.

    :param options: the parsed arguments of a command of cliff's
    :param rows: list of rows
    :returns: list of rows
    """
    if options.formatter not in _FOR_PEOPLE:
        return rows
    return [["" if cell is None else cell for cell in row] for row in rows]
