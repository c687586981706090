# SPDX-License-Identifier: Apache-2.0
"""Snapshots: what every consumer holds, told again from time to time.

A listener that was not there from the first event begins with a snapshot. Its events stand
between ``allocation.snapshot.begin`` and ``allocation.snapshot.end``, an ``allocation.exists``
for each consumer, in the same order as whatever else happens: a consumer is locked while its
event is written. Who applies everything from the begin on knows, at the end, what is held; and,
since every event says what was held before, what was held when the snapshot began.

It is taken in steps of one transaction each, by any process: what the next step is is in the
store, so that one that dies is carried on by another.
"""

import datetime
import uuid

from placement_rpc.accounting.events import exists
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.db.queries import bulk, snapshots
from placement_rpc.objects.payloads import SnapshotPayload

_STEP = 200


def begin(database):
    """Begin a snapshot now, unless one is under way.

    :returns: str, the id of the one that is under way now; and bool, whether it is a new one
    """
    def change(tx):
        row = snapshots.state(tx, lock=True)
        if row is None or row.ended_at is not None:
            return _begin(tx), True
        return row.snapshot_id, False

    return database.write(change, "snapshot")


def progress(database, snapshot_id):
    """:returns: int, the consumers that a snapshot has by now, and bool, whether it is whole;
    None when it was not the last one"""
    with database.reader() as tx:
        row = snapshots.state(tx)
    if row is None or row.snapshot_id != snapshot_id:
        return None
    return row.consumers, row.ended_at is not None


def go_on(database, period=None):
    """Take the next step of the snapshot that is under way, or due.

    :param period: int, seconds between the begins of two; None to begin none
    :returns: int, the consumers that it has by now; None when there is nothing to do
    """
    if not is_wanted(database, period):
        return None
    return database.write(lambda tx: _go_on(tx, period), "snapshot")


def is_wanted(database, period=None):
    """:returns: bool, whether there is a step to take; a look that locks nothing"""
    with database.reader() as tx:
        row = snapshots.state(tx)
    return row is None or row.ended_at is None or _is_due(row, period)


def _is_due(row, period):
    return period is not None and bulk.now() - row.begun_at >= datetime.timedelta(seconds=period)


def _begin(tx):
    snapshot_id = str(uuid.uuid4())
    snapshots.begin(tx, snapshot_id, bulk.now())
    _tell(tx, "begin", snapshot_id, 0)
    return snapshot_id


def _tell(tx, what, snapshot_id, consumers):
    outbox = Outbox()
    outbox.add(f"allocation.snapshot.{what}", SnapshotPayload(
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
        _begin(tx)
        return 0
    consumers = snapshots.lock_consumers(tx, row.last_consumer, _STEP)
    count = row.consumers + len(consumers)
    if not consumers:
        snapshots.end(tx, bulk.now())
        _tell(tx, "end", row.snapshot_id, count)
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
