# SPDX-License-Identifier: Apache-2.0
"""Values in the output of cliff."""

import json
import sys
import textwrap

import yaml
from cliff import utils

_FOR_PEOPLE = ("table", "value")
# Columns of a table that is not on a terminal, and those that the frame adds to each of its own.
_WIDTH, _FRAME = 100, 3


class Mapping(dict):
    """A mapping for a program; its text, which CSV has, is JSON too."""

    def __str__(self):
        return json.dumps(self, sort_keys=True)


# cliff writes YAML with the safe dumper, which refuses classes that it does not know.
yaml.SafeDumper.add_representer(Mapping, yaml.SafeDumper.represent_dict)


def is_for_people(options):
    """Return whether the output is for a person, not for a program.

    :param options: the parsed arguments of a command
    """
    return options.formatter in _FOR_PEOPLE


def fitted(columns, rows):
    """Return rows whose text is wrapped so that their table is as wide as the terminal, or 100.

    cliff would break short words and the titles too, and leaves a table in a pipe as it is. The
    widest columns of text become narrower, but not narrower than their titles.

    :param columns: list of str
    :param rows: list of lists
    :returns: list of lists
    """
    left = (sys.stdout.isatty() and utils.terminal_width()) or _WIDTH
    left -= _FRAME * len(columns) + 1
    whole = list(zip(columns, *rows, strict=True))
    widths = [max(len(str(cell)) for cell in column) for column in whole]
    floors = [len(column[0]) if all(isinstance(cell, str) for cell in column) else width
              for width, column in zip(widths, whole, strict=True)]
    while sum(widths) > left and widths != floors:
        widest = max((at for at in range(len(widths)) if widths[at] > floors[at]),
                     key=widths.__getitem__)
        widths[widest] -= 1
    return [[textwrap.fill(cell, width) if isinstance(cell, str) else cell
             for cell, width in zip(row, widths, strict=True)] for row in rows]


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
