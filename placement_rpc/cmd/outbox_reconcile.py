# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage outbox reconcile``: go on after the store has lost published events."""

import datetime
from collections.abc import Iterable, Iterator

from oslo_config import cfg

from placement_rpc.accounting import reconciliation
from placement_rpc.amqp.broker import Broker
from placement_rpc.cmd import bus, output
from placement_rpc.db import api as db
from placement_rpc.db.queries import events
from placement_rpc.notifications import divergence
from placement_rpc.notifications.event import Event
from placement_rpc.notifications.stream import StreamReader

_COLUMNS = ["lost", "moved", "providers", "consumers", "agreed_position", "stream_position",
            "epoch"]


def reconcile(database, options, conf):
    broker = bus.needed(
        conf, "only the events on RabbitMQ can be compared with the store (a service without it "
              "needs 'placement-rpc-manage outbox begin-epoch')")

    def read(start: datetime.datetime | str) -> Iterable[Event]:
        reader = StreamReader(broker, conf.notifications.stream, start, on_gap=_ignore_gap)
        tail = reader.tail()
        return () if tail is None else _shown(reader, tail)

    with output.interruptible(
            "placement-rpc-manage", lambda: "nothing was changed", "run it again"):
        found = divergence.compare(database, read)
    names = reconciliation.named([*found.lost, *found.moved])
    epoch = found.state.epoch if found.state else None
    if found.differs and not options.dry_run:
        epoch = reconciliation.reconcile(database, found)
    output.show([{
        "lost": len(found.lost), "moved": len(found.moved), "providers": len(names.providers),
        "consumers": len(names.consumers), "agreed_position": found.agreed,
        "stream_position": found.last, "epoch": epoch}], _COLUMNS, options.format)
    return 0


def _shown(reader: StreamReader, tail: int) -> Iterator[Event]:
    """Yield the events up to an offset, and show the progress."""
    with output.progress("Reading events") as advance:
        begin: int | None = None
        before = 0
        for event in reader.events(idle=1, tail=tail):
            yield event
            offset = reader.offset or 0
            if begin is None:
                begin = before = offset
            advance(offset - before, size=tail - begin)
            before = offset


def _ignore_gap(_expected, _found):
    """Ignore a gap: events are looked up by their ids."""


def difference(database: db.Database, conf: cfg.ConfigOpts) -> str | None:
    """Return in what the stream differs from the store; None if it does not.

    It does not either if the service runs without RabbitMQ, and so without a stream.

    :raises ServiceUnavailable: if the stream cannot be read
    """
    return compared(database, conf)[0]


def compared(database: db.Database, conf: cfg.ConfigOpts) -> tuple[str | None, str | None]:
    """Compare the end of the stream with the store.

    :returns: tuple of what :func:`difference` returns, and of a sentence if the stream is empty
        although events were published, otherwise None
    :raises ServiceUnavailable: if the stream cannot be read
    """
    bus.check(conf)
    broker = Broker.of(conf)
    if broker is None:
        return None, None
    with database.reader() as tx:
        state = events.state(tx)
    published = state.published_position if state else 0
    tail = StreamReader(broker, conf.notifications.stream).last_events(published)
    with database.reader() as tx:
        return divergence.difference(tx, tail), divergence.emptied(published, tail)
