# SPDX-License-Identifier: Apache-2.0
"""The last part of the demo: a usage report from events alone."""

import collections
import datetime
import time

import rich.box
import rich.table

from placement_rpc.cmd import listen
from placement_rpc.notifications.usage import UsageAccount


def show(console, events, since, providers):
    """Print the last events, and a usage report from all events.

    :param console: :class:`rich.console.Console`
    :param events: list of :class:`placement_rpc.notifications.event.Event`, from the first on
    :param since: datetime of the beginning of the demo
    :param providers: the uuids of the demo's providers; others are ignored
    :returns: dict of tuple of provider and class to the used amount according to the events
    """
    account = UsageAccount(since, datetime.datetime.now(datetime.UTC))
    for event in events:
        account.apply(event)
    console.print("\n[bold]The last events[/bold], as 'placement-rpc listen' shows them")
    table = listen.Table(console)
    for event in events[-6:]:
        table(event)
    held, totals = collections.Counter(), collections.defaultdict(lambda: [0, 0])
    for line in account.lines():
        if line.provider_uuid in providers:
            held[line.provider_uuid, line.resource_class] += line.held
            total = totals[line.project_id, line.resource_class]
            total[0] += line.resource_hours
            total[1] += line.held
    table = rich.table.Table(title="Usage report, from events alone", box=rich.box.SIMPLE_HEAD)
    for column, justify in (("project", "left"), ("class", "left"), ("resource-hours", "right"),
                            ("held now", "right")):
        table.add_column(column, justify=justify)
    for (project, name), (hours, now) in sorted(totals.items()):
        table.add_row(project, name, f"{hours:,.2f}", f"{now:,}")
    console.print(table)
    return {key: amount for key, amount in held.items() if amount}


def up_to(mark, read):
    """Yield all events up to that of a request.

    :param mark: str, the request id
    :param read: callable of a position that returns the events after it
    :raises RuntimeError: if the event does not come within a minute
    """
    position, ends = 0, time.monotonic() + 60
    while time.monotonic() < ends:
        for event in read(position):
            yield event
            position = event.position
            if event.payload.get("request_id") == mark:
                return
        time.sleep(0.1)
    raise RuntimeError(f"the event of request {mark} did not come within a minute")
