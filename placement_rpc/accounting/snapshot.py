# SPDX-License-Identifier: Apache-2.0
"""Snapshots: events with the allocations of every consumer, repeated from time to time.

A listener that has not received the first event starts from a snapshot: an ``allocation.exists``
event for each consumer, between ``allocation.snapshot.begin`` and ``allocation.snapshot.end``.
They are in order with all other events, since a consumer is locked while its event is written. A
listener that applies every event from the begin on knows at the end what is held; and, since
every event says what was held before, also what was held when the snapshot began.

A snapshot is taken in steps of one transaction each, by any process. Its progress is stored, so
that another process continues if one dies.
"""

import datetime
import uuid
from typing import NamedTuple

from placement_rpc.accounting.events import exists
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.db.api import Connection, Database
from placement_rpc.db.queries import bulk, hold, snapshots
from placement_rpc.objects.payloads import SnapshotPayload

_STEP = 200


class Begun(NamedTuple):
    """The snapshot that is being taken, and whether it is a new one."""

    snapshot_id: str
    is_new: bool


class Progress(NamedTuple):
    """How many consumers a snapshot has so far, and whether it is complete."""

    consumers: int
    complete: bool


def begin(database: Database) -> Begun:
    """Begin a snapshot now, unless one is being taken."""
    def change(tx):
        row = snapshots.state(tx, lock=True)
        if row is None or row.ended_at is not None:
            return Begun(begin_in(tx), True)
        return Begun(row.snapshot_id, False)

    return database.write(change, "snapshot")


def under_way(database: Database, begun_at: datetime.datetime) -> str | None:
    """Return the id of the snapshot that began at a time; None if it is complete.

    :param begun_at: as given to :func:`begin_in`
    """
    with database.reader() as tx:
        row = snapshots.state(tx)
    if row is None or row.ended_at is not None or row.begun_at != begun_at:
        return None
    return row.snapshot_id


def progress(database: Database, snapshot_id: str) -> Progress | None:
    """Return the progress of the latest snapshot; None if the id is that of another one."""
    with database.reader() as tx:
        row = snapshots.state(tx)
    if row is None or row.snapshot_id != snapshot_id:
        return None
    return Progress(row.consumers, row.ended_at is not None)


def go_on(database: Database, period: int | None = None) -> int | None:
    """Take the next step of the snapshot that is being taken, or due.

    :param period: seconds from the begin of one snapshot to the begin of the next; None to begin
        no snapshot
    :returns: how many consumers it has so far; None if there is nothing to do
    """
    if not is_wanted(database, period):
        return None
    return database.write(lambda tx: _go_on(tx, period), "snapshot")


def is_wanted(database: Database, period: int | None = None) -> bool:
    """Return whether there is a step to take, without locking anything.

    There is none while the store is held: what it has does not count yet.

    :param period: as for :func:`go_on`
    """
    with database.reader(causal=False) as tx:
        if hold.state(tx).held_since is not None:
            return False
        row = snapshots.state(tx)
    return row is None or row.ended_at is None or _is_due(row, period)


def _is_due(row, period):
    return period is not None and bulk.now() - row.begun_at >= datetime.timedelta(seconds=period)


def begin_in(tx: Connection, at: datetime.datetime | None = None) -> str:
    """Begin a snapshot in a transaction, instead of one that is being taken; return its id.

    :param at: time to record as that of its begin; None for the present one
    """
    snapshot_id = str(uuid.uuid4())
    snapshots.begin(tx, snapshot_id, at or bulk.now())
    _record(tx, "begin", snapshot_id, 0)
    return snapshot_id


def _record(tx, boundary, snapshot_id, consumers):
    outbox = Outbox()
    outbox.add(f"allocation.snapshot.{boundary}", SnapshotPayload(
        snapshot_id=snapshot_id, consumers=consumers))
    outbox.write(tx)


def _go_on(tx, period):
    row = snapshots.state(tx, lock=True)
    if row is None:
        # The first period begins with the service.
        snapshots.begin(tx, str(uuid.uuid4()), bulk.now(), ended_at=bulk.now())
        return None
    if row.ended_at is not None:
        if not _is_due(row, period):
            return None
        begin_in(tx)
        return 0
    consumers = snapshots.lock_consumers(tx, row.last_consumer, _STEP)
    count = row.consumers + len(consumers)
    if not consumers:
        snapshots.end(tx, bulk.now())
        _record(tx, "end", row.snapshot_id, count)
        return None
    _write(tx, consumers)
    snapshots.advance(tx, consumers[-1].uuid, count)
    return count


def _write(tx, consumers):
    held = {}
    for row in snapshots.held(tx, [each.id for each in consumers]):
        _, amounts = held.setdefault(row.consumer_id, {}).setdefault(
            row.provider_uuid, (row.generation, {}))
        amounts[row.resource_class] = row.used
    outbox = Outbox()
    for each in consumers:
        exists(outbox, each, held.get(each.id, {}))
    outbox.write(tx)
