# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc listen``: events as they happen, as a table or as JSON lines."""

import fnmatch
import json
import sys

import rich.console
import rich.markup

from placement_rpc.cmd import usage_report

_COLOURS = {"create": "green", "associate": "green", "update": "yellow", "delete": "red",
            "disassociate": "red", "refused": "magenta", "capacity_exceeded": "magenta"}


def add_arguments(parser):
    parser.add_argument("--from", dest="start", type=_start, default=None,
                        metavar="POSITION|TIME",
                        help="begin at a position, or at a time in ISO 8601 (default: now)")
    parser.add_argument("--event-type", metavar="GLOB",
                        help="show only these types, for example 'allocation.*'")
    parser.add_argument("--provider", metavar="UUID", help="show only events of this provider")
    parser.add_argument("--count", type=int, metavar="N", help="exit after N events")
    parser.add_argument("--idle", type=float, metavar="SECONDS",
                        help="exit after this long without an event")


def _start(text):
    if text.isdigit():
        return int(text)
    return usage_report.moment(text)


def run(reader, options):
    """Print events until a limit of the options is reached or the user interrupts.

    :param reader: callable that makes a
        :class:`placement_rpc.notifications.stream.StreamReader`, of its ``start``
    :param options: the parsed arguments
    :returns: int, the exit code
    :raises ServiceUnavailable: if there is no broker, or no stream
    """
    style = options.format
    if style == "auto":
        style = "table" if sys.stdout.isatty() else "json"
    show = {"table": Table(), "json": _print_json, "cloudevents": _print_cloud_event}[style]
    stream = reader("next" if options.start is None else options.start)
    # While it runs, it reconnects; a broker that is not there at the start is an error.
    stream.tail()
    left = options.count
    try:
        for event in stream.events(options.idle):
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


def _wanted(event, options):
    if options.event_type and not fnmatch.fnmatchcase(event.event_type, options.event_type):
        return False
    return not options.provider or options.provider.lower() in event.providers


def _print_json(event):
    print(json.dumps({
        "position": event.position, "event_type": event.event_type, "event_id": event.event_id,
        "occurred_at": event.occurred_at, "payload": event.payload}), flush=True)


def _print_cloud_event(event):
    print(json.dumps({
        "specversion": "1.0", "id": event.event_id, "source": "placement_rpc",
        "type": f"placement.{event.event_type}", "time": event.occurred_at,
        "datacontenttype": "application/json", "sequence": str(event.position),
        "data": event.payload}), flush=True)


class Table:
    """A live table: a line for each event.

    :param console: :class:`rich.console.Console`; None for standard output
    """

    def __init__(self, console=None):
        self._console = console or rich.console.Console()
        self._headed = False

    def __call__(self, event):
        if not self._headed:
            self._headed = True
            self._console.print(f"{'position':>10}  {'time':<15}  {'event':<34}  what",
                                style="bold")
        colour = _COLOURS.get(event.event_type.rpartition(".")[2], "cyan")
        at = event.time.astimezone()
        self._console.print(
            f"{event.position:>10}  {at:%H:%M:%S.%f}  "
            f"[{colour}]{_printable(f'{event.event_type:<34}')}[/{colour}]"
            f"  {_printable(_summary(event))}", highlight=False, soft_wrap=True)


def _printable(text):
    """Return a text of an event for the console, without markup and control characters."""
    text = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    return rich.markup.escape(text)


def _summary(event):
    """Return a summary of an event in one line."""
    payload = event.payload
    if not event.known:
        # It may contain anything.
        return str(payload.get("name") or payload.get("provider_uuid", ""))
    if event.event_type == "allocation.claim.refused":
        return payload["error"]["message"]
    if event.event_type.startswith("allocation.snapshot."):
        return f"snapshot {payload['snapshot_id']} of {payload['consumers']} consumers"
    if event.event_type.startswith("allocation."):
        parts = [f"{each['provider_uuid']} {_amounts(each['before'])} -> "
                 f"{_amounts(each['after'])}" for each in payload["providers"]]
        return f"{payload['consumer_uuid']} of {payload['project_id']}: {'; '.join(parts)}"
    if event.event_type.startswith("inventory.") and "inventories" in payload:
        return f"{payload['provider_uuid']} " + ", ".join(
            f"{each['resource_class']} {_total(each['before'])} -> {_total(each['after'])}"
            for each in payload["inventories"])
    return payload.get("name") or payload.get("provider_uuid", "")


def _amounts(amounts):
    return ",".join(f"{name}:{amount}" for name, amount in amounts.items()) or "nothing"


def _total(inventory):
    return inventory["total"] if inventory else "none"
