# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage outbox``: stored events and their publication."""

import datetime
import sys

import rich.console
import rich.progress

from placement_rpc import exception
from placement_rpc.accounting import snapshot
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.publisher import Unconfirmed
from placement_rpc.cmd import output, usage_report
from placement_rpc.db.queries import bulk, events
from placement_rpc.notifications.event import Event
from placement_rpc.notifications.publishers import RabbitPublisher
from placement_rpc.rpc import routing

_PAGE = 1000


def add_commands(groups):
    """Add the group to the parser.

    :param groups: what ``add_subparsers`` of the program returned
    """
    commands = groups.add_parser(
        "outbox", help="stored events and their publication").add_subparsers(
            dest="command", required=True, metavar="COMMAND")
    text = "show the positions of stored and published events, and the relay's lag"
    command = commands.add_parser("status", help=text, description=text.capitalize())
    command.add_argument("--format", choices=("auto", "table", "json"), default="auto")
    command.set_defaults(run=_status)
    text = "delete old published events"
    command = commands.add_parser("prune", help=text, description=text.capitalize())
    command.add_argument("--older-than", type=int, required=True, metavar="SECONDS")
    command.set_defaults(run=_prune)
    text = "publish events again, from a position or a time on, or those of a provider"
    command = commands.add_parser("replay", help=text, description=(
        text.capitalize() + ". With --provider, this process publishes them at once; otherwise "
                            "the relay does."))
    start = command.add_mutually_exclusive_group()
    start.add_argument("--position", type=int, metavar="N")
    start.add_argument("--since", type=_time, metavar="TIME",
                       help="ISO 8601; local time without a zone")
    command.add_argument("--provider", metavar="UUID",
                         help="only the events of this provider")
    command.set_defaults(run=_replay)
    text = "begin a new epoch of positions, after the store was restored from a backup"
    command = commands.add_parser("begin-epoch", help=text, description=(
        text.capitalize() + ". Positions are then given a second time, and listeners see by the "
        "epoch that they are others. Events that wait are published in the new epoch."))
    command.set_defaults(run=_begin_epoch)
    text = "take a snapshot of all allocations now"
    command = commands.add_parser("snapshot", help=text, description=text.capitalize())
    command.set_defaults(run=_snapshot)


def _time(text):
    """Return a datetime in UTC without a zone, as the tables store times."""
    return usage_report.moment(text).replace(tzinfo=None)


def _status(database, options, _conf):
    with database.reader() as tx:
        status = events.status(tx)
    oldest = status.pop("oldest_unsent")
    status["unsent"] = status["last_position"] - status["published_position"] + (
        status.pop("unpositioned"))
    status["lag_seconds"] = round((bulk.now() - oldest).total_seconds(), 1) if oldest else 0.0
    output.show([status], ["events", "oldest_kept", "last_position", "published_position",
                           "unsent", "lag_seconds", "epoch"], options.format)
    return 0


def _prune(database, options, _conf):
    before = bulk.now() - datetime.timedelta(seconds=options.older_than)
    total = 0
    while pruned := database.write(lambda tx: events.prune(tx, before), "prune"):
        total += pruned
    print(f"Pruned {total} published events")
    return 0


def _begin_epoch(database, _options, _conf):
    print(f"The epoch is {database.write(events.begin_epoch, 'begin-epoch')} from now on")
    return 0


def _replay(database, options, conf):
    if options.provider:
        count = _replay_provider(database, options, conf)
    elif options.position is None and options.since is None:
        raise exception.InvalidInput(
            what="replay", reason="give --position, --since or --provider")
    else:
        count = database.write(lambda tx: _rewind(tx, options), "replay")
    print(f"{count} events are published again, with the same ids and positions")
    return 0


def _rewind(tx, options):
    """Make the relay publish events again; return their number."""
    events.state(tx, lock=True)
    status = events.status(tx)
    position = _before(tx, options)
    oldest = status["oldest_kept"]
    if oldest is None or not oldest - 1 <= position <= status["published_position"]:
        raise exception.InvalidInput(
            what="position", reason="the events that are both stored and published are "
                                    f"{oldest or 'none'} to {status['published_position']}")
    events.rewind(tx, position)
    return status["published_position"] - position


def _before(tx, options):
    """Return the position after which to begin."""
    if options.position is not None:
        return options.position - 1
    return events.position_at(tx, options.since) if options.since else 0


def _replay_provider(database, options, conf):
    """Publish the events of a provider again; return their number."""
    broker = Broker.of(conf)
    if broker is None:
        raise exception.InvalidInput(
            what="transport_url", reason="only RabbitMQ can replay the events of a provider; "
                                         "give its address")
    with database.reader() as tx:
        position, last = _before(tx, options), events.status(tx)["published_position"]
    publisher = RabbitPublisher(conf, broker, routing.EXCHANGE)
    count, wanted = 0, options.provider.lower()
    try:
        with _progress() as progress:
            task = progress.add_task("Looking for events", total=max(0, last - position))
            while position < last:
                with database.reader() as tx:
                    rows = events.after(tx, position, _PAGE)
                # The relay publishes the events after 'last' itself.
                about = [row for row in rows if row.position <= last
                         and wanted in row.payload and wanted in Event.of_row(row).providers]
                if about:
                    publisher.publish(about)
                    count += len(about)
                if not rows:
                    break
                progress.advance(task, rows[-1].position - position)
                position = rows[-1].position
    except Unconfirmed as error:
        raise exception.ServiceUnavailable(
            reason=f"only {count} events were published again: {error}") from error
    finally:
        publisher.close()
    return count


def _progress():
    return rich.progress.Progress(
        console=rich.console.Console(stderr=True), transient=True,
        disable=not sys.stderr.isatty())


def _snapshot(database, _options, _conf):
    # A snapshot that began earlier does not have the current allocations, so it is finished first.
    snapshot_id, is_new = snapshot.begin(database)
    if not is_new:
        _go_on(database, snapshot_id)
        snapshot_id, _ = snapshot.begin(database)
    print(f"Took a snapshot of the allocations of {_go_on(database, snapshot_id)} consumers")
    return 0


def _go_on(database, snapshot_id):
    """Finish a snapshot, on which conductors may work too; return the number of consumers."""
    consumers = 0
    with _progress() as progress:
        task = progress.add_task("Taking a snapshot", total=None)
        while (done := snapshot.progress(database, snapshot_id)) is not None:
            consumers, whole = done
            if whole:
                break
            progress.update(task, completed=consumers)
            snapshot.go_on(database)
    return consumers
