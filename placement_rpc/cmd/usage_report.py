# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc usage-report``: resource-hours, from the events alone."""

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
from placement_rpc.notifications.stream import StreamReader
from placement_rpc.notifications.usage import UsageAccount

FORMATS = ("auto", "table", "csv", "json")
_COLUMNS = ("project_id", "user_id", "resource_class", "provider_uuid", "resource_hours", "held")
# How far the clocks of conductors may be apart.
_SKEW = datetime.timedelta(minutes=1)
# Seconds within which a stream that has anything from a time on gives it out.
_PATIENCE = 5


def add_arguments(parser):
    parser.add_argument("--from", dest="begin", type=_time, required=True, metavar="TIME",
                        help="ISO 8601; local time where it has no zone")
    parser.add_argument("--to", dest="end", type=_time, metavar="TIME", help="(default: now)")
    parser.add_argument("--project", metavar="ID", help="only of this project")
    parser.add_argument("--resource-class", metavar="CLASS", help="only of this class")
    parser.add_argument("--allow-incomplete", action="store_true",
                        help="report even where events are missing that it takes")


def _time(text):
    return datetime.datetime.fromisoformat(text).astimezone(datetime.UTC)


def from_stream(broker, stream, options, look_back):
    """Report from the stream.

    :param broker: :class:`placement_rpc.amqp.broker.Broker`
    :param look_back: float, seconds before the time within which a snapshot can be expected; 0
        for none
    :returns: int, the exit code
    """
    options.end = end_of(options)
    tail = StreamReader(broker, stream).tail()
    account = UsageAccount(options.begin, options.end)
    if tail is not None:
        account = _from_snapshot(broker, stream, options, tail, look_back)
        if not account.complete:
            account = _from_first(broker, stream, options, tail)
    if account.as_of is None:
        print("placement-rpc: the stream is empty", file=sys.stderr)
    elif account.as_of < account.end:
        print(f"placement-rpc: the last event is of {account.as_of}: what was done since then and "
              "is not published yet is not in the report", file=sys.stderr)
    return report(account, options)


def _from_snapshot(broker, stream, options, tail, look_back):
    """:returns: the account, complete if it could be made from a snapshot of before the time"""
    account = UsageAccount(options.begin, options.end)
    if look_back:
        start = options.begin - datetime.timedelta(seconds=look_back)
        reader = StreamReader(broker, stream, start, on_gap=_told_by_the_account)
        with contextlib.suppress(exception.ServiceUnavailable):
            # Nothing comes where nothing was published since.
            for event in _until(account, reader, tail, _PATIENCE):
                account.apply(event)
                if account.hopeless:
                    break
    return account


def _from_first(broker, stream, options, tail):
    """:returns: the account, from all that the stream has"""
    account = UsageAccount(options.begin, options.end)
    late = False
    for event in _until(account, _first_reader(broker, stream), tail):
        late = late or (account.position is not None and event.position < account.position)
        account.apply(event)
    if late and not account.complete:
        # Something was published again behind what came meanwhile.
        found = {event.position: event for event in _until(
            account, _first_reader(broker, stream), tail)}
        account = UsageAccount(options.begin, options.end)
        for position in sorted(found):
            account.apply(found[position])
    return account


def _first_reader(broker, stream):
    return StreamReader(broker, stream, 1, on_gap=_told_by_the_account)


def _told_by_the_account(_expected, _found):
    """Whether a gap matters depends on where it is."""


def _until(account, reader, tail, patience=30):
    """Events as far as they matter, with a progress bar."""
    for event in with_progress(reader.events(idle=1, tail=tail, patience=patience)):
        yield event
        if account.complete and event.time > account.end + _SKEW:
            return
        if reader.offset is not None and reader.offset >= tail and event.time > account.end:
            # All that was published when the report was asked for.
            return


def end_of(options):
    """:returns: datetime, the end of the time, which is never to come

    :raises InvalidInput: when it ends before it begins
    """
    now = datetime.datetime.now(datetime.UTC)
    end = min(options.end or now, now)
    if options.begin >= end:
        raise exception.InvalidInput(what="time", reason="it ends before it begins, or is to come")
    return end


def with_progress(events):
    return rich.progress.track(
        events, "Reading events", transient=True, disable=not sys.stderr.isatty(),
        console=rich.console.Console(stderr=True))


def report(account, options):
    """Print the report; return the exit code."""
    if not account.complete:
        words = ("the events that are left are not enough to know all that was held: neither the "
                 "first one is among them nor a whole snapshot from before the time, or some are "
                 "missing; [notifications] stream_max_age says how long they are kept, and "
                 "'placement-rpc-manage outbox replay' publishes again what the store has of them")
        if not options.allow_incomplete:
            print(f"placement-rpc: {words}", file=sys.stderr)
            return 1
        print(f"placement-rpc: incomplete: {words}", file=sys.stderr)
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
