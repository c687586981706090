# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc top``: a screen of what the service does, drawn again every few seconds."""

import contextlib
import heapq
import itertools
import json
import math
import os
import signal
import time

import rich.console
import rich.live
import rich.table
import rich.text

from placement_rpc import exception
from placement_rpc.cmd import calls, output, scrape
from placement_rpc.cmd.console import Console

# Seconds between two reads of all providers, which are much more to read than the metrics.
_PROVIDERS_EVERY = 15
_METHODS, _PROVIDERS = 8, 20
# The columns that are shortened if a line is too long.
_NAMES = {"method", "provider", "resource_class"}
# Lines of the screen that are not rows of a table: headings, and the lines above.
_FRAME = 11
_NO_METRICS = ("rates, queues, outbox and index are in the metrics of the service's processes: "
               "give their addresses with --metrics")


def run(client, options):
    """Show the state until the user interrupts, or once.

    SIGTERM ends the process as usual, after the terminal is restored.

    :param client: :class:`placement_rpc.api.PlacementAPI`
    :param options: the parsed arguments
    """
    interrupted: list[int] = []
    with contextlib.suppress(KeyboardInterrupt), _noted(interrupted):
        _show(itertools.takewhile(lambda _: not interrupted, _states(client, options)), options)
    if signal.SIGTERM in interrupted:
        os.kill(os.getpid(), signal.SIGTERM)


def _show(states, options):
    if output.style_of(options.format) == "json":
        for state in states:
            print(json.dumps(state), flush=True)
        return
    console = Console()
    if options.once or not console.is_terminal:
        for state in states:
            console.print(_screen(state, console.height, is_live=False))
        return
    with rich.live.Live(console=console, screen=True, auto_refresh=False) as live:
        for state in states:
            live.update(_screen(state, console.height), refresh=True)


@contextlib.contextmanager
def _noted(received):
    """Note each SIGINT and SIGTERM in a list, and raise KeyboardInterrupt, within the block.

    The command goes on after errors, and a KeyboardInterrupt that comes while SQLAlchemy ends a
    transaction can become one.
    """
    def note(number, frame):
        received.append(number)
        signal.default_int_handler(number, frame)

    by_default = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    # Other handlers stay: in the background, for example, SIGINT is ignored.
    replaced = {number: handler for number, handler in by_default.items()
                if signal.getsignal(number) is handler}
    try:
        for number in replaced:
            signal.signal(number, note)
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)


def _states(client, options):
    """Yield dicts of what is shown: one after each interval, or one only.

    A service that goes away ends the command if it is to show one, and is a line of a screen.
    """
    fullest, read_at = [], -_PROVIDERS_EVERY
    before = None
    while True:
        problems, found = [], {"services": [], "fullest": fullest}
        try:
            found["services"] = _services(client, options)
            if time.monotonic() - read_at >= _PROVIDERS_EVERY:
                fullest, read_at = _fullest(client, options), time.monotonic()
            found["fullest"] = fullest
            before = before or _metrics(options)
            if before is not None:
                time.sleep(options.interval)
                after = _metrics(options)
                found, before = scrape.figures(before, after) | found, after
            else:
                problems.append(_NO_METRICS)
        except (exception.PlacementException, OSError) as error:
            if options.once:
                raise
            problems.append(str(error))
            before = None
        yield found | {"problems": problems}
        if options.once:
            return
        if before is None:
            time.sleep(options.interval)


def _metrics(options):
    return scrape.Reading.of(options.metrics) if options.metrics else None


def _services(client, options):
    return [{"binary": each.binary, "host": each.host, "worker": each.worker,
             "version": each.version, "alive": each.alive}
            for each in client.get_versions(None, timeout=options.timeout).objects]


def _fullest(client, options):
    """Return the inventories of which the largest share is used, as a list of dicts."""
    return heapq.nlargest(_PROVIDERS, (
        {"provider": name, "resource_class": resource_class, "used": used, "capacity": capacity,
         "percent": calls.percent(used, capacity)}
        for name, _uuid, usages in calls.usages_of_all(client, options.timeout)
        for resource_class, used, capacity in usages if capacity or used),
        key=_fullness)


def _fullness(row):
    """Return the sort key of an inventory: what is used without any capacity is the fullest."""
    return math.inf if row["percent"] is None else row["percent"]


def _screen(state, height, is_live=True):
    """Return a state as what the console prints.

    :param height: int, lines of the terminal, of which the providers get those that are left
    :param is_live: bool, whether another state follows
    """
    title = f"placement-rpc top, {time.strftime('%H:%M:%S')}"
    parts = [_line(f"{title}, Ctrl-C ends it" if is_live else title, "bold"),
             *(_line(text, "red") for text in state["problems"]),
             _line(_of_services(state["services"]))]
    methods = state.get("calls", [])[:_METHODS]
    if "calls" in state:
        parts += [_line(text) for text in _of_metrics(state)]
        parts.append(_table(methods, ["method", "per_second", "failed_per_second", "mean_ms",
                                      "p99_ms"]) if methods else _line("no calls", "dim"))
    left = max(3, height - _FRAME - len(methods))
    parts.append(_table(state["fullest"][:left],
                        ["provider", "resource_class", "used", "capacity", "percent"]))
    return rich.console.Group(*parts)


def _of_services(services):
    down = [f"{each['binary']} {each['worker']} on {each['host']}"
            for each in services if not each["alive"]]
    return f"services: {len(services) - len(down)} up" + (
        f", {len(down)} down: {', '.join(down)}" if down else "")


def _of_metrics(state):
    """Yield lines of the figures that are no table."""
    total = sum(row["per_second"] for row in state["calls"])
    yield f"calls: {total:.1f}/s   HTTP: {state['http_per_second']:.1f}/s"
    yield "queues: " + (", ".join(f"{each['queue']} {each['calls']} of {each['slots']}"
                                  for each in state["queues"]) or "none in this process")
    yield (f"outbox: {_figure(state['outbox']['unsent'])} unsent, the oldest "
           f"{_figure(state['outbox']['oldest_seconds'])} s")
    index = state["index"]
    yield (f"index: {_figure(index['providers'])} providers, {_figure(index['inventories'])} "
           f"inventories, {_figure(index['age_seconds'])} s old, built {_figure(index['made'])} "
           "times")


def _figure(value):
    return "?" if value is None else f"{value:,.0f}"


def _line(text, style=""):
    return rich.text.Text(text, style, no_wrap=True, overflow="ellipsis")


def _table(rows, columns):
    table = rich.table.Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        is_name = column in _NAMES
        # On a narrow terminal, rich takes the space from the columns that may wrap.
        table.add_column(_line(column.replace("_", " ")),
                         justify="left" if is_name else "right", no_wrap=not is_name)
    for row in rows:
        table.add_row(*("" if row[column] is None else _line(str(row[column]))
                        for column in columns))
    return table
