# SPDX-License-Identifier: Apache-2.0
"""Tables and colours for a terminal, JSON for a pipe."""

import contextlib
import json
import sys

import rich.console
import rich.markup
import rich.progress
import rich.table


def show(rows, columns, style, stream=None):
    """Print rows.

    :param rows: list of dicts
    :param columns: list of str, the keys to show and their order
    :param style: str, ``table``, ``json``, or ``auto`` for a table on a terminal and JSON
        elsewhere
    :param stream: text stream; None for standard output
    """
    stream = stream or sys.stdout
    if style == "auto":
        style = "table" if stream.isatty() else "json"
    if style == "json":
        json.dump(rows, stream, indent=2)
        print(file=stream)
        return
    # Long values are folded, not cut off, so that they can be copied.
    table = rich.table.Table(*(
        rich.table.Column(column.replace("_", " "), overflow="fold") for column in columns))
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    rich.console.Console(file=stream).print(table)


def _cell(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "[green]yes[/green]" if value else "[red]no[/red]"
    return rich.markup.escape(str(value))


@contextlib.contextmanager
def counter(text):
    """Show a running count on a terminal, and nothing elsewhere.

    :param text: str, what is counted
    :returns: context manager that gives a callable of the number to add
    """
    console = rich.console.Console(stderr=True)
    if not console.is_terminal:
        yield lambda number: None
        return
    with rich.progress.Progress(
            rich.progress.SpinnerColumn(), "{task.description}", "{task.completed}",
            rich.progress.TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task(text, total=None)
        yield lambda number: progress.advance(task, number)


def bar(part, whole, width=20):
    """Return a bar that shows a share, as text with rich's markup."""
    share = min(1, part / whole) if whole else 0
    filled = round(share * width)
    colour = "red" if share > 0.95 else "yellow" if share > 0.8 else "green"
    return f"[{colour}]{'█' * filled}[/{colour}]{'·' * (width - filled)} {share:4.0%}"
