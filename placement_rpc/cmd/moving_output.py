# SPDX-License-Identifier: Apache-2.0
"""What the commands that move a cloud print: progress, findings, and counts by kind."""

import contextlib
import json
import sys

import rich.console
import rich.progress

from placement_rpc.cmd import output
from placement_rpc.spool import Spool

_COLUMNS = ["what", "kind", "key", "done"]


@contextlib.contextmanager
def progress(sizes):
    """Show on a terminal how far the rows of each kind are read, and nothing elsewhere.

    :param sizes: callable that returns a dict of kind to about how many rows there are
    :returns: context manager that gives a callable of the kind and the number of rows to add
    """
    console = rich.console.Console(stderr=True)
    if not console.is_terminal:
        yield lambda kind, number: None
        return
    with rich.progress.Progress(
            "{task.description}", rich.progress.BarColumn(), rich.progress.MofNCompleteColumn(),
            rich.progress.TimeElapsedColumn(), rich.progress.TimeRemainingColumn(),
            console=console, transient=True) as bar:
        total = bar.add_task("all rows", total=sum(sizes().values()) or None)

        def advance(kind, number):
            bar.update(total, description=kind.replace("_", " "), advance=number)

        yield advance


def style_of(style):
    """Return ``table`` or ``json``: for ``auto``, that of the standard output."""
    if style == "auto":
        return "table" if sys.stdout.isatty() else "json"
    return style


class Findings:
    """Findings of a store, of which there may be any number: they wait in a file to be printed.

    :param style: str, ``table``, ``json``, or ``auto`` as for :func:`output.show`
    """

    def __init__(self, style):
        self._style = style_of(style)
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
        if self._style == "table":
            output.show(rows, columns, "table")
            for what, kind, key, done in self._spool:
                print(f"{what}: {kind} {key}: {done}")
            return
        print('{\n  "kinds": [', end="")
        _print_members(rows)
        for name, members in {"findings": (
                dict(zip(_COLUMNS, each, strict=True)) for each in self._spool), **lists}.items():
            print(f'\n  ],\n  "{name}": [', end="")
            _print_members(members)
        print("\n  ]\n}")


def _print_members(members):
    separator = "\n    "
    for each in members:
        sys.stdout.write(separator + json.dumps(each))
        separator = ",\n    "
