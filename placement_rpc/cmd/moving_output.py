# SPDX-License-Identifier: Apache-2.0
"""What the commands that move a cloud print: progress, findings, and counts by kind."""

import collections
import contextlib
import json
import sys

from placement_rpc.cmd import output
from placement_rpc.spool import Spool

_COLUMNS = ["what", "kind", "key", "done"]


@contextlib.contextmanager
def progress(sizes, remedy):
    """Show on a terminal how far the rows of each kind are read, and say it after an interrupt.

    :param sizes: callable that returns a dict of kind to about how many rows there are
    :param remedy: str, how an interrupted work goes on
    :returns: context manager that gives a callable of the kind and the number of rows to add
    """
    counts = collections.Counter()
    with output.interruptible(
            "placement-rpc-manage", lambda: _text_of(counts), remedy), output.progress(
            "all rows", lambda: sum(sizes().values())) as advance:

        def count(kind, number):
            counts[kind] += number
            advance(number, kind.replace("_", " "))

        yield count


def _text_of(counts):
    return ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in counts.items()) + (
        " are read" if counts else "nothing is read")


class Findings:
    """Findings of a store, of which there may be any number: they wait in a file to be printed.

    :param style: str, as for :func:`output.style_of`; CSV has the counts alone
    """

    def __init__(self, style):
        self._style = output.style_of(style)
        self._spool = Spool()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self._spool.close()

    def add(self, finding):
        """Keep a :class:`placement_rpc.moving.stores.Finding`."""
        self._spool.append((finding.what, finding.kind, "/".join(finding.key), finding.done))

    def show(self, rows, columns, **lists):
        """Print counts by kind and all findings.

        :param rows: list of dicts
        :param columns: list of str, the keys of the rows
        :param lists: further members of the JSON document: iterables of dicts
        """
        if self._style in ("table", "csv"):
            output.show(rows, columns, self._style)
        if self._style == "table":
            for what, kind, key, done in self._spool:
                print(f"{what}: {kind} {key}: {done}")
        findings = (dict(zip(_COLUMNS, each, strict=True)) for each in self._spool)
        document = {"kinds": rows, "findings": findings, **lists}
        if self._style == "json":
            _print_json(document)
        elif self._style == "yaml":
            _print_yaml(document)


def _print_json(lists):
    """Print a document of lists, each of which may be longer than what fits into memory."""
    separator = "{"
    for name, members in lists.items():
        print(f'{separator}\n  "{name}": [', end="")
        _print_members(members)
        separator = "\n  ],"
    print("\n  ]\n}")


def _print_yaml(lists):
    """Print what :func:`_print_json` does, as YAML."""
    for name, members in lists.items():
        is_empty = True
        for member in members:
            if is_empty:
                print(f"{name}:")
                is_empty = False
            print(output.yaml_of([member], sys.stdout), end="")
        if is_empty:
            print(f"{name}: []")


def _print_members(members):
    separator = "\n    "
    for each in members:
        sys.stdout.write(separator + json.dumps(each))
        separator = ",\n    "
