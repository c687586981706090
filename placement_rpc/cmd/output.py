# SPDX-License-Identifier: Apache-2.0
"""Rows as a table, as JSON, CSV or YAML.

The library that draws is imported by the functions that draw: a program whose output goes to a
pipe does not load it.
"""

import contextlib
import csv
import json
import re
import sys

_UUID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_UUID_LENGTH = 36
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[+Z:\d-]*")
_FRACTION = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)\.\d+(?=$|[+Z-])")
# Characters that the frame adds to each column.
_FRAME = 3


def show(rows, columns, style, stream=None, empty="There is nothing to show."):
    """Print rows.

    A table is as wide as the terminal, but never narrower than its uuids and times: those are not
    broken.

    :param rows: list of dicts
    :param columns: list of str, the keys that a table and CSV show, and their order
    :param style: str, as for :func:`style_of`
    :param stream: text stream; None for standard output
    :param empty: str, the sentence in place of a table without rows: what would fill it
    """
    stream = stream or sys.stdout
    style = style_of(style, stream)
    if style == "table" and not rows:
        print(empty, file=stream)
        return
    {"table": _show_table, "json": _show_json, "csv": _show_csv, "yaml": _show_yaml}[style](
        rows, columns, stream)


def style_of(style, stream=None):
    """Return the format: for ``auto``, ``table`` on a terminal and ``json`` elsewhere.

    :param style: str, the value of ``--format``
    :param stream: as of :func:`show`
    """
    if style == "auto":
        return "table" if (stream or sys.stdout).isatty() else "json"
    return style


def _show_json(rows, _columns, stream):
    json.dump(rows, stream, indent=2)
    print(file=stream)


def _show_yaml(rows, _columns, stream):
    stream.write(yaml_of(rows, stream))


def yaml_of(value, stream, **options):
    """Return a value as YAML for a stream, which escapes what the stream's encoding lacks.

    :param options: of ``yaml.safe_dump``
    """
    import yaml

    # The stream itself would write a character that its encoding lacks as a backslash and a code,
    # which YAML reads as they are if the text is not in quotation marks.
    is_unicode = (getattr(stream, "encoding", None) or "utf").lower().startswith("utf")
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=is_unicode, **options)


def _show_csv(rows, columns, stream):
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = [row.get(column) for column in columns]
        writer.writerow([json.dumps(value) if isinstance(value, (list, dict, bool)) else value
                         for value in values])


def _show_table(rows, columns, stream):
    import rich.table

    from placement_rpc.cmd.console import Console

    table, whole, folded = rich.table.Table(), [], []
    for column in columns:
        values = [row.get(column) for row in rows if row.get(column) is not None]
        title, are_numbers = column.replace("_", " "), _are(values, _is_number)
        is_whole = are_numbers or _are_ids(values) or _are(values, _is_time)
        if is_whole:
            whole.append(max(len(_shown(each)) for each in (title, *values)))
        else:
            folded.append(max(map(len, title.split())))
        # Long values are folded, not cut off, so that they can be copied.
        table.add_column(title, overflow="fold", no_wrap=is_whole,
                         justify="right" if are_numbers else "left")
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    # The columns that are folded become equally narrow, down to the longest word above one. A
    # terminal that is narrower wraps the lines itself, which leaves the uuids whole when they are
    # copied.
    narrowest = sum(whole) + len(folded) * max(folded, default=0) + _FRAME * len(columns) + 1
    width = max(Console(file=stream).width, narrowest)
    Console(file=stream, width=width).print(table)


def _are(values, condition):
    """Return whether there are values, and all of them meet a condition."""
    return bool(values) and all(map(condition, values))


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _are_ids(values):
    """Return whether one value is a uuid and none is longer: keystone has other short ids."""
    return _are(values, lambda value: isinstance(value, str) and len(value) <= _UUID_LENGTH) and (
        any(map(_UUID.fullmatch, values)))


def _is_time(value):
    return isinstance(value, str) and _TIME.fullmatch(_shown(value)) is not None


def _shown(value):
    """Return the text of a value, a time in whole seconds."""
    return _FRACTION.sub(r"\1", str(value))


def _cell(value):
    """Return a value for a table, as text with a style that its type sets."""
    from rich import text

    if value is None:
        return ""
    if isinstance(value, bool):
        return text.Text("yes", "green") if value else text.Text("no", "red")
    return text.Text(_shown(value), "cyan" if _is_number(value) else "")


@contextlib.contextmanager
def progress(text, size=None):
    """Show a bar on a terminal, with the rate and the time left, and nothing elsewhere.

    Without a size there is no time left.

    :param text: str, what is done
    :param size: callable that returns the number of things to do; None if it is not known. It is
        called on a terminal only, since to count may take time
    :returns: context manager that gives a callable of the number of things that were done, and
        optionally of a text and of a size in place of the first ones
    """
    if not sys.stderr.isatty():
        yield lambda number, text=None, size=None: None
        return
    import rich.console
    import rich.progress

    columns = ["{task.description}", rich.progress.BarColumn(), rich.progress.MofNCompleteColumn(),
               "{task.fields[rate]}", rich.progress.TimeElapsedColumn(),
               rich.progress.TimeRemainingColumn()]
    with rich.progress.Progress(*columns, console=rich.console.Console(stderr=True),
                                transient=True) as shown:
        task = shown.add_task(text, total=size() or None if size else None, rate="")

        def advance(number, text=None, size=None):
            speed = shown.tasks[0].speed
            shown.update(task, advance=number, description=text, total=size,
                         rate=f"{speed:,.0f}/s" if speed else "")

        yield advance


@contextlib.contextmanager
def interruptible(program, done, remedy):
    """Say on standard error, if the user interrupts a block, what is done and how to go on.

    :param program: str, the name at the beginning of the line
    :param done: callable that returns what is done, as text
    :param remedy: str, how the work goes on
    """
    try:
        yield
    except KeyboardInterrupt:
        print(f"{program}: interrupted: {done()}; {remedy}", file=sys.stderr)
        raise


def bar(part, whole, width=20):
    """Return a bar that shows a share, as text with rich's markup."""
    share = min(1, part / whole) if whole else 0
    filled = round(share * width)
    colour = "red" if share > 0.95 else "yellow" if share > 0.8 else "green"
    return f"[{colour}]{'█' * filled}[/{colour}]{'·' * (width - filled)} {share:4.0%}"
