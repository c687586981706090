# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc usage-report``: resource-hours, computed from the events alone."""

import contextlib
import csv
import dataclasses
import datetime
import json
import sys

import rich.console
import rich.progress

from placement_rpc import exception
from placement_rpc.cmd import output, provider_names
from placement_rpc.notifications.usage import SKEW, UsageAccount

_COLUMNS = ("project_id", "user_id", "resource_class", "provider_uuid", "resource_hours", "held")
_FIRST = datetime.datetime.min.replace(tzinfo=datetime.UTC)
# Seconds within which a service says what it has not published.
_ANSWERS_WITHIN = 5
# Seconds within which a stream delivers the first message after a time, if there is one.
_PATIENCE = 5


def from_stream(reader, options, look_back, client):
    """Report from the stream.

    :param reader: callable that makes a
        :class:`placement_rpc.notifications.stream.StreamReader`, of its ``start`` and ``on_gap``
    :param look_back: float, seconds before the period within which a snapshot can be expected; 0
        if there are no snapshots
    :param client: :class:`placement_rpc.api.PlacementAPI`, to ask for the names of providers, and
        for the last event
    :returns: int, the exit code
    """
    options.end = end_of(options)
    # Before the end of the stream: what is published meanwhile does not wait.
    last = _last_position(client)
    tail = reader().tail()
    account = UsageAccount(options.begin, options.end)
    if tail is not None:
        account = _from_snapshot(reader, options, tail, look_back)
        if not account.complete:
            account = _from_first(reader, options, tail)
    if account.as_of is None and last == 0:
        print("placement-rpc: no event has been published yet; 'placement-rpc-manage outbox "
              "status' shows whether events wait to be published", file=sys.stderr)
        if not options.allow_incomplete:
            return 1
    elif account.as_of is None:
        print("placement-rpc: the stream is empty", file=sys.stderr)
    elif account.as_of < account.end:
        _note_what_waits(account, last)
    return report(account, options, provider_names.ProviderNames(client))


def _last_position(client):
    """Return the position of the service's last event; None if it does not answer."""
    try:
        return client.get_event_positions(None, timeout=_ANSWERS_WITHIN).last
    except exception.PlacementException:
        return None


def _note_what_waits(account, last):
    """Say which changes the report cannot have, if there are any: they are not published yet."""
    if last is None:
        waiting = ("the service does not answer, so whether later changes wait to be published is "
                   "not known")
    elif last > account.position:
        waiting = f"{last - account.position} later changes are not published yet"
    else:
        return
    print(f"placement-rpc: {waiting}; the last event of the report is of {account.as_of}",
          file=sys.stderr)


def _from_snapshot(reader, options, tail, look_back):
    """Return the account, complete if there is a snapshot from before the period."""
    account = UsageAccount(options.begin, options.end)
    if look_back:
        back = datetime.timedelta(seconds=look_back)
        start = max(options.begin, _FIRST + back) - back
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
        if account.complete and event.time > account.end + SKEW:
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


def report(account, options, names=None):
    """Print the report; return the exit code.

    :param names: as of :func:`from_stream`
    """
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
    style = output.style_of(options.format)
    if style == "table":
        _print_table(account, lines, options.details,
                     names or provider_names.ProviderNames())
    else:
        {"csv": _print_csv, "json": _print_json, "yaml": _print_yaml}[style](account, lines)
    return 0


def _print_json(account, lines):
    json.dump(_document(account, lines), sys.stdout, indent=2)
    print()


def _print_yaml(account, lines):
    print(output.yaml_of(_document(account, lines), sys.stdout), end="")


def _document(account, lines):
    """Return the report as a dict."""
    return {
        "from": account.begin.isoformat(), "to": account.end.isoformat(),
        "position": account.position, "complete": account.complete,
        "as_of": account.as_of and account.as_of.isoformat(),
        "lines": [{**line, "resource_hours": round(float(line["resource_hours"]), 9)}
                  for line in lines]}


def _print_csv(_account, lines):
    writer = csv.DictWriter(sys.stdout, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for line in lines:
        writer.writerow({**line, "resource_hours": f"{line['resource_hours']:.9f}"})


def _print_table(account, lines, details, names):
    if not lines:
        print("Nothing was held in this period: the report lists what consumers have claimed.")
        return
    print(f"{account.begin:%Y-%m-%d %H:%M:%S} to {account.end:%Y-%m-%d %H:%M:%S} UTC")
    rows = _summed(lines, ("project_id", "resource_class"))
    columns = ["project_id", "resource_class"]
    if details:
        columns = ["project_id", "user_id", "resource_class", "provider"]
        rows = [{**line, "provider": names.name(line["provider_uuid"]) or line["provider_uuid"]}
                for line in lines]
    totals = [{**row, "project_id": "all"} for row in _summed(lines, ("resource_class",))]
    output.show([{**row, "resource_hours": round(float(row["resource_hours"]), 3)}
                 for row in [*rows, *totals]],
                [*columns, "resource_hours", "held"], "table")


def _summed(lines, keys):
    """Return the sums of lines that have the same values of some keys, as a list of dicts."""
    sums = {}
    for line in lines:
        values = tuple(line[key] for key in keys)
        row = sums.setdefault(values, {**dict(zip(keys, values, strict=True)),
                                       "resource_hours": 0, "held": 0})
        row["resource_hours"] += line["resource_hours"]
        row["held"] += line["held"]
    return [sums[values] for values in sorted(sums)]
