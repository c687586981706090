# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage outbox``: stored events and their publication."""

import datetime
import sys

from placement_rpc import exception
from placement_rpc.accounting import snapshot
from placement_rpc.amqp.publisher import Unconfirmed
from placement_rpc.cmd import bus, outbox_reconcile, output
from placement_rpc.db.queries import bulk, events, relaying
from placement_rpc.notifications import payload_pin
from placement_rpc.notifications.event import Event
from placement_rpc.notifications.publishers import RabbitPublisher
from placement_rpc.rpc import routing

_PAGE = 1000


def status(database, options, conf):
    with database.reader() as tx:
        status = events.status(tx)
    try:
        differs, is_emptied = outbox_reconcile.compared(database, conf)
        status["difference"] = differs or is_emptied or ""
    except exception.ServiceUnavailable as error:
        status["difference"] = f"unknown: {error}"
    oldest = status.pop("oldest_unsent")
    status["unsent"] = status["last_position"] - status["published_position"] + (
        status.pop("unpositioned"))
    status["lag_seconds"] = round((bulk.now() - oldest).total_seconds(), 1) if oldest else 0.0
    output.show([status], ["events", "oldest_kept", "last_position", "published_position",
                           "unsent", "lag_seconds", "epoch", "difference"], options.format)
    return 0


def prune(database, options, _conf):
    before = bulk.now() - datetime.timedelta(seconds=options.older_than)
    total = 0
    with output.interruptible(
            "placement-rpc-manage", lambda: f"{total} published events are pruned",
            "run it again to go on"), output.progress("Pruning events") as advance:
        while pruned := database.write(lambda tx: events.prune(tx, before), "prune"):
            total += pruned
            advance(pruned)
    print(f"Pruned {total} published events")
    return 0


def begin_epoch(database, _options, _conf):
    print(f"The epoch is {database.write(relaying.begin_epoch, 'begin-epoch')} from now on")
    return 0


def replay(database, options, conf):
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
    position, last = _range(tx, options)
    relaying.rewind(tx, position)
    return events.count_between(tx, position, last)


def _range(tx, options):
    """Return the position after which to begin, and the last that was published.

    It says so if events were pruned that the options ask for.

    :raises InvalidInput: if there is no published event at the position that is asked for
    """
    status = events.status(tx)
    oldest, last = status["oldest_kept"], status["published_position"]
    if options.position is not None:
        position = options.position - 1
        if oldest is None or not oldest - 1 <= position <= last:
            kept = "there are none" if oldest is None or oldest > last else f"{oldest} to {last}"
            raise exception.InvalidInput(
                what="position", reason=f"events that are both stored and published: {kept}")
        return position, last
    position = events.position_at(tx, options.since) if options.since else (oldest or 1) - 1
    if oldest is not None and oldest > 1 and position < oldest:
        print(f"placement-rpc-manage: the events before position {oldest} are no longer kept",
              file=sys.stderr)
    # The relay publishes the later ones itself.
    return min(position, last), last


def _replay_provider(database, options, conf):
    """Publish the events of a provider again; return their number."""
    broker = bus.needed(conf, "only RabbitMQ can replay the events of a provider")
    with database.reader() as tx:
        position, last = _range(tx, options)
    release = payload_pin.release_of(conf.notifications)
    publisher = RabbitPublisher(conf, broker, routing.EXCHANGE)
    count, wanted = 0, options.provider.lower()
    try:
        with output.interruptible(
                "placement-rpc-manage", lambda: f"{count} events were published again",
                "run it again for the others"), output.progress(
                "Looking for events", lambda: max(0, last - position)) as advance:
            while position < last:
                with database.reader() as tx:
                    rows = events.after(tx, position, _PAGE)
                # The relay publishes the events after 'last' itself.
                about = [row for row in rows if row.position <= last
                         and wanted in row.payload and wanted in Event.of_row(row).providers]
                if about:
                    publisher.publish(publisher.messages(
                        payload_pin.all_pinned(about, release)))
                    count += len(about)
                if not rows:
                    break
                advance(rows[-1].position - position)
                position = rows[-1].position
    except Unconfirmed as error:
        raise exception.ServiceUnavailable(
            reason=f"only {count} events were published again: {error}") from error
    finally:
        publisher.close()
    return count


def take_snapshot(database, _options, _conf):
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
    with output.interruptible(
            "placement-rpc-manage", lambda: f"the snapshot has {consumers} consumers",
            "run it again to complete it"), output.progress("Taking a snapshot") as advance:
        while (done := snapshot.progress(database, snapshot_id)) is not None:
            advance(done.consumers - consumers)
            consumers = done.consumers
            if done.complete:
                break
            snapshot.go_on(database)
    return consumers
