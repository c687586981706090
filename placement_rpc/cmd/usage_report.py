# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc usage-report``: resource-hours, computed from the events alone."""

import collections
import contextlib
import csv
import dataclasses
import datetime
import json
import sys

import rich.console
import rich.markup
import rich.progress
import rich.table

from placement_rpc import exception
from placement_rpc.notifications.usage import UsageAccount

FORMATS = ("auto", "table", "csv", "json")
_COLUMNS = ("project_id", "user_id", "resource_class", "provider_uuid", "resource_hours", "held")
# The assumed maximum difference between the clocks of conductors.
_SKEW = datetime.timedelta(minutes=1)
# Seconds within which a stream delivers the first message after a time, if there is one.
_PATIENCE = 5


def moment(text):
    """Return the datetime in UTC of a text in ISO 8601; local time without a zone.

    :raises ValueError: if it is not a time
    """
    try:
        return datetime.datetime.fromisoformat(text).astimezone(datetime.UTC)
    except OverflowError:
        raise ValueError(f"{text} is not a time in UTC") from None


def add_arguments(parser):
    parser.add_argument("--from", dest="begin", type=moment, required=True, metavar="TIME",
                        help="beginning of the period, ISO 8601; local time without a zone")
    parser.add_argument("--to", dest="end", type=moment, metavar="TIME",
                        help="end of the period (default: now)")
    parser.add_argument("--project", metavar="ID", help="report only this project")
    parser.add_argument("--resource-class", metavar="CLASS", help="report only this class")
    parser.add_argument("--allow-incomplete", action="store_true",
                        help="report even if required events are missing")


def from_stream(reader, options, look_back):
    """Report from the stream.

    :param reader: callable that makes a
        :class:`placement_rpc.notifications.stream.StreamReader`, of its ``start`` and ``on_gap``
    :param look_back: float, seconds before the period within which a snapshot can be expected; 0
        if there are no snapshots
    :returns: int, the exit code
    """
    options.end = end_of(options)
    tail = reader().tail()
    account = UsageAccount(options.begin, options.end)
    if tail is not None:
        account = _from_snapshot(reader, options, tail, look_back)
        if not account.complete:
            account = _from_first(reader, options, tail)
    if account.as_of is None:
        print("placement-rpc: the stream is empty", file=sys.stderr)
    elif account.as_of < account.end:
        print(f"placement-rpc: the last event is of {account.as_of}; later changes are not in the "
              "report unless they have been published", file=sys.stderr)
    return report(account, options)


def _from_snapshot(reader, options, tail, look_back):
    """Return the account, complete if there is a snapshot from before the period."""
    account = UsageAccount(options.begin, options.end)
    if look_back:
        start = options.begin - datetime.timedelta(seconds=look_back)
        found = reader(start, on_gap=_ignore_gap)
        with contextlib.suppress(exception.ServiceUnavailable):
            # The reader times out if nothing was published after that time.
            for event in _until(account, found, tail, _PATIENCE):
                account.apply(event)
                if account.hopeless:
                    break
    return account


def _from_first(reader, options, tail):
    """Return the account of all events in the stream."""
    account = UsageAccount(options.begin, options.end)
    late = False
    for event in _until(account, reader(1, on_gap=_ignore_gap), tail):
        late = late or (account.position is not None and event.position < account.position)
        account.apply(event)
    if late and not account.complete:
        # Events were published again after newer ones: apply all of them in order of position.
        found = {event.position: event for event in _until(
            account, reader(1, on_gap=_ignore_gap), tail)}
        account = UsageAccount(options.begin, options.end)
        for position in sorted(found):
            account.apply(found[position])
    return account


def _ignore_gap(_expected, _found):
    """Ignore a gap: the account determines whether it matters."""


def _until(account, reader, tail, patience=30):
    """Yield the events up to the end of the period, with a progress bar."""
    for event in with_progress(reader.events(idle=1, tail=tail, patience=patience)):
        yield event
        if account.complete and event.time > account.end + _SKEW:
            return
        if reader.offset is not None and reader.offset >= tail and event.time > account.end:
            # Later events were published after the report was started.
            return


def end_of(options):
    """Return the end of the period, a datetime that is not in the future.

    :raises InvalidInput: if the period does not begin before it ends
    """
    now = datetime.datetime.now(datetime.UTC)
    end = min(options.end or now, now)
    if options.begin >= end:
        raise exception.InvalidInput(
            what="period", reason="it ends before it begins, or is in the future")
    return end


def with_progress(events):
    """Return an iterable of the same events that shows its progress on a terminal."""
    return rich.progress.track(
        events, "Reading events", transient=True, disable=not sys.stderr.isatty(),
        console=rich.console.Console(stderr=True))


def report(account, options):
    """Print the report; return the exit code."""
    if not account.complete:
        message = ("the available events do not cover the period: they include neither the first "
                   "event nor a whole snapshot from before the period, or some are missing; "
                   "[notifications] stream_max_age sets how long events are kept, and "
                   "'placement-rpc-manage outbox replay' publishes stored events again")
        if not options.allow_incomplete:
            print(f"placement-rpc: {message}", file=sys.stderr)
            return 1
        print(f"placement-rpc: incomplete: {message}", file=sys.stderr)
    lines = [dataclasses.asdict(line) for line in account.lines()
             if options.project in (None, line.project_id)
             and options.resource_class in (None, line.resource_class)]
    style = options.format
    if style == "auto":
        style = "table" if sys.stdout.isatty() else "json"
    {"table": _print_table, "csv": _print_csv, "json": _print_json}[style](account, lines)
    return 0


def _print_json(account, lines):
    json.dump({
        "from": account.begin.isoformat(), "to": account.end.isoformat(),
        "position": account.position, "complete": account.complete,
        "as_of": account.as_of and account.as_of.isoformat(),
        "lines": [{**line, "resource_hours": round(float(line["resource_hours"]), 9)}
                  for line in lines]}, sys.stdout, indent=2)
    print()


def _print_csv(_account, lines):
    writer = csv.DictWriter(sys.stdout, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for line in lines:
        writer.writerow({**line, "resource_hours": f"{line['resource_hours']:.9f}"})


def _print_table(account, lines):
    table = rich.table.Table(
        title=f"{account.begin:%Y-%m-%d %H:%M:%S} to {account.end:%Y-%m-%d %H:%M:%S} UTC")
    for column in _COLUMNS:
        table.add_column(column.replace("_", " "), overflow="fold",
                         justify="right" if column in ("resource_hours", "held") else "left")
    totals = collections.defaultdict(lambda: [0, 0])
    for line in lines:
        table.add_row(*(rich.markup.escape(str(line[column])) for column in _COLUMNS[:4]),
                      f"{line['resource_hours']:,.3f}", f"{line['held']:,}")
        total = totals[line["resource_class"]]
        total[0] += line["resource_hours"]
        total[1] += line["held"]
    table.add_section()
    for name, (hours, held) in sorted(totals.items()):
        table.add_row("all", "", rich.markup.escape(name), "", f"{hours:,.3f}", f"{held:,}",
                      style="bold")
    rich.console.Console().print(table)
