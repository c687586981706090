# SPDX-License-Identifier: Apache-2.0
"""Values in the output of cliff."""

import json

_FOR_PEOPLE = ("table", "value")


class Mapping(dict):
    """A mapping for a program; its text, which CSV has, is JSON too."""

    def __str__(self):
        return json.dumps(self, sort_keys=True)


def is_for_people(options):
    """Return whether the output is for a person, not for a program.

    :param options: the parsed arguments of a command
    """
    return options.formatter in _FOR_PEOPLE


def without_none(options, rows):
    """Return rows with empty text instead of None, if the output is for a person.

    A program gets None: null in JSON, and nothing in CSV.

    :param options: the parsed arguments of a command
    :param rows: list of rows
    :returns: list of rows
    """
    if not is_for_people(options):
        return rows
    return [["" if cell is None else cell for cell in row] for row in rows]
