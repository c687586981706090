# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc listen``: events as they happen, as a table or as JSON lines."""

import csv
import difflib
import fnmatch
import json
import sys
import textwrap

import rich.markup

from placement_rpc.cmd import output, provider_names
from placement_rpc.cmd.console import Console
from placement_rpc.objects import catalog

_COLOURS = {"create": "green", "associate": "green", "update": "yellow", "delete": "red",
            "disassociate": "red", "refused": "magenta", "capacity_exceeded": "magenta",
            "reconciled": "magenta"}
# Columns before a summary, which is below the type of its event, and those of a uuid.
_INDENT, _UUID = 20, 36


def run(reader, options, names=None):
    """Print events until a limit of the options is reached or the user interrupts.

    :param reader: callable that makes a
        :class:`placement_rpc.notifications.stream.StreamReader`, of its ``start``
    :param options: the parsed arguments
    :param names: :class:`placement_rpc.cmd.provider_names.ProviderNames` for a table; None to
        learn the names from the events
    :returns: int, the exit code
    :raises ServiceUnavailable: if there is no broker, or no stream
    """
    style = output.style_of(options.format)
    table = Table(names=names)
    show = {"table": table, "json": _print_json, "csv": _csv_printer(), "yaml": _print_yaml,
            "cloudevents": _print_cloud_event}[style]
    _warn_of_unknown(options.event_type)
    stream = reader("next" if options.start is None else options.start)
    # While it runs, it reconnects; a broker that is not there at the start is an error.
    stream.tail()
    if style == "table":
        table.begin(_waiting_for(options))
    elif sys.stderr.isatty():
        print(_waiting_for(options), file=sys.stderr)
    left = options.count
    try:
        for event in stream.events(options.idle):
            table.names.learn(event)
            if not _wanted(event, options):
                continue
            show(event)
            left = left and left - 1
            if left == 0:
                break
    except KeyboardInterrupt:
        # The usual way to end this command, and so not an error.
        return 0
    return 0


def _warn_of_unknown(pattern):
    """Say so if a pattern matches no type of event that this release knows.

    It is no error, since the service may be newer.
    """
    if pattern and not fnmatch.filter(catalog.EVENTS, pattern):
        near = difflib.get_close_matches(pattern, _patterns(), n=3)
        print(f"placement-rpc: no event type of this release matches {pattern!r}; "
              + (f"did you mean {' or '.join(near)}?" if near else "it knows:"), file=sys.stderr)
        if not near:
            print(textwrap.fill(", ".join(catalog.EVENTS), 79, initial_indent="  ",
                                subsequent_indent="  ", break_on_hyphens=False), file=sys.stderr)


def _patterns():
    """Return the types of events, and the patterns of those that begin with the same words."""
    beginnings = {name.rpartition(".")[0] for name in catalog.EVENTS}
    return [*catalog.EVENTS, *(f"{each}.*" for each in sorted(beginnings))]


def _waiting_for(options):
    """Return a sentence about what is shown, and what ends the command."""
    what = [f"events of type {options.event_type}" if options.event_type else "all events"]
    if options.provider:
        what.append(f"of provider {options.provider}")
    start = "now" if options.start is None else (
        f"position {options.start}" if isinstance(options.start, int) else str(options.start))
    ends = [f"{options.count} events"] if options.count else []
    if options.idle is not None:
        ends.append(f"{options.idle:g} s without an event")
    return (f"Showing {' '.join(what)} from {start} on; "
            + (f"{' or '.join(ends)} or Ctrl-C end it." if ends else "Ctrl-C ends it."))


def _wanted(event, options):
    if options.event_type and not fnmatch.fnmatchcase(event.event_type, options.event_type):
        return False
    return not options.provider or options.provider.lower() in event.providers


def _values(event):
    return {"position": event.position, "event_type": event.event_type,
            "event_id": event.event_id, "occurred_at": event.occurred_at,
            "payload": event.payload}


def _print_json(event):
    print(json.dumps(_values(event)), flush=True)


def _print_yaml(event):
    """Print a document of its own for each event, since any may be the last."""
    print(output.yaml_of(_values(event), sys.stdout, explicit_start=True), end="", flush=True)


def _csv_printer():
    """Return a callable that prints an event as a line of CSV, and first the columns."""
    writer = None

    def show(event):
        nonlocal writer
        row = _values(event)
        if writer is None:
            writer = csv.DictWriter(sys.stdout, row, lineterminator="\n")
            writer.writeheader()
        writer.writerow({**row, "payload": json.dumps(row["payload"])})
        sys.stdout.flush()
    return show


def _print_cloud_event(event):
    print(json.dumps({
        "specversion": "1.0", "id": event.event_id, "source": "placement_rpc",
        "type": f"placement.{event.event_type}", "time": event.occurred_at,
        "datacontenttype": "application/json", "sequence": str(event.position),
        "data": event.payload}), flush=True)


class Table:
    """A live table: a line for each event, and indented lines of what it says below it.

    :param console: :class:`rich.console.Console`; None for standard output
    :param names: as of :func:`run`
    """

    def __init__(self, console=None, names=None):
        self._console = console or Console()
        self._headed = False
        self.names = names or provider_names.ProviderNames()

    def begin(self, sentence):
        """Print what is shown, before there is anything to show."""
        self._console.print(_printable(sentence), highlight=False, style="dim", soft_wrap=True)

    def __call__(self, event):
        if not self._headed:
            self._headed = True
            self._console.print(f"{'position':>8}  {'time':<8}  event", style="bold")
        colour = _COLOURS.get(event.event_type.rpartition(".")[2], "cyan")
        head = f"{event.position:>8}  {event.time.astimezone():%H:%M:%S}  "
        self._console.print(
            f"{head}[{colour}]{_printable(event.event_type)}[/{colour}]", highlight=False,
            soft_wrap=True)
        for line in self._lines(_summary(event, self.names.label)):
            self._console.print(_printable(line), highlight=False, soft_wrap=True)

    def _lines(self, summary):
        """Return the lines of a summary, which break at spaces only, so that uuids stay whole."""
        return textwrap.wrap(
            summary, max(self._console.width, _INDENT + _UUID), initial_indent=" " * _INDENT,
            subsequent_indent=" " * (_INDENT + 2), break_long_words=False,
            break_on_hyphens=False)


def _printable(text):
    """Return a text of an event for the console, without markup and control characters."""
    text = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    return rich.markup.escape(text)


def _summary(event, label):
    """Return a summary of an event in one line.

    :param label: callable of a provider's uuid that returns it with the name beside it
    """
    payload = event.payload
    if not event.known:
        # It may contain anything.
        return str(payload.get("name") or payload.get("provider_uuid", ""))
    if event.event_type == "allocation.claim.refused":
        return payload["error"]["message"]
    if event.event_type == "outbox.reconciled":
        return (f"{len(payload['lost_events'])} events after position "
                f"{payload['agreed_position']} are taken back; {len(payload['providers'])} "
                f"providers and {len(payload['consumers'])} consumers as they are now")
    if event.event_type.startswith("allocation.snapshot."):
        return f"snapshot {payload['snapshot_id']} of {payload['consumers']} consumers"
    if event.event_type.startswith("allocation."):
        parts = [f"{label(each['provider_uuid'])} {_amounts(each['before'])} -> "
                 f"{_amounts(each['after'])}" for each in payload["providers"]]
        return f"{payload['consumer_uuid']} of {payload['project_id']}: {'; '.join(parts)}"
    if event.event_type.startswith("inventory.") and "inventories" in payload:
        return f"{label(payload['provider_uuid'])} " + ", ".join(
            f"{each['resource_class']} {_total(each['before'])} -> {_total(each['after'])}"
            for each in payload["inventories"])
    if "provider_uuid" in payload:
        # The name of a provider that is deleted is in the event alone.
        return (f"{payload['name']} ({payload['provider_uuid']})" if payload.get("name")
                else label(payload["provider_uuid"]))
    return payload.get("name", "")


def _amounts(amounts):
    return ",".join(f"{name}:{amount}" for name, amount in amounts.items()) or "nothing"


def _total(inventory):
    return inventory["total"] if inventory else "none"
