# SPDX-License-Identifier: Apache-2.0
"""Whether an export may write to a database of OpenStack Placement.

It may write to an empty one, and again to one that an export has filled and that nothing else has
changed since. A table of its own, of which Placement knows nothing, tells these from others.
"""

import datetime
import json
import uuid

import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.db.placement import schema

NAME = "placement_rpc_export"
# Not one of Placement's tables, so not among those of the schema. One row.
_state = sa.Table(
    NAME, sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("begun_at", sa.DateTime, nullable=False),
    # Of the last export; NULL while it is under way, or if it did not end.
    sa.Column("ended_at", sa.DateTime, nullable=True),
    # The export that may write, and the number of its transactions.
    sa.Column("run", sa.String(36), nullable=False),
    sa.Column("batches", sa.Integer, nullable=False),
    # JSON: what changes with each change of the database by Placement; while an export is under
    # way the time of its last transaction.
    sa.Column("signature", sa.Text, nullable=True))
# The name of that time in the JSON.
_AT = "at"
# What the clocks of Placement's host and of this one may differ by.
_SKEW = datetime.timedelta(minutes=1)
_FILLED = (schema.resource_providers, schema.inventories, schema.consumers, schema.allocations,
           schema.resource_provider_traits, schema.resource_provider_aggregates)


def begin(tx: sa.Connection) -> str:
    """Record that an export begins. It waits for the transaction of one that was killed.

    :returns: the id of this run
    :raises ExportRefused: if the database is neither empty nor as the last export left it
    """
    run = str(uuid.uuid4())
    if not sa.inspect(tx).has_table(NAME):
        filled = [table.name for table in _FILLED
                  if tx.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first()]
        if filled:
            raise exception.ExportRefused(
                reason=f"it is not empty: there are rows in {', '.join(filled)}")
        _state.create(tx)
        tx.execute(sa.insert(_state).values(
            id=1, begun_at=_now(), run=run, batches=0, signature=_time_of_transaction()))
        return run
    tx.execute(sa.update(_state).values(run=run, batches=0))
    row = tx.execute(sa.select(_state)).one()
    if not _is_as_left(tx, row):
        left_at = row.ended_at or row.begun_at
        raise exception.ExportRefused(
            reason=f"it has been changed since the export of {left_at:%F %T} UTC. If those "
                   "changes are worth nothing, export to a new database")
    tx.execute(sa.update(_state).values(ended_at=None, signature=_time_of_transaction()))
    return run


def begin_batch(tx: sa.Connection, run: str) -> None:
    """Check, in the transaction of a batch, that no later export has begun.

    :raises ExportRefused: if one has
    """
    if not tx.execute(sa.update(_state).where(_state.c.run == run).values(
            batches=_state.c.batches + 1, signature=_time_of_transaction())).rowcount:
        raise exception.ExportRefused(reason="another export to it has begun")


def end(tx: sa.Connection) -> None:
    """Record that an export has ended."""
    tx.execute(sa.update(_state).values(
        ended_at=_now(), signature=json.dumps(_signature(tx))))


def forget(tx: sa.Connection) -> None:
    """Forget that exports have filled the database: none is possible any more."""
    _state.drop(tx)


def _now():
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None, microsecond=0)


def _time_of_transaction():
    return json.dumps({_AT: _now().isoformat()})


def _is_as_left(tx, row):
    """Return whether the database is as the last export left it, as far as can be seen."""
    kept = json.loads(row.signature) if row.signature else {}
    if row.ended_at is None:
        # What an interrupted export has written is older than its last transaction.
        return _AT not in kept or not _has_newer(
            tx, datetime.datetime.fromisoformat(kept[_AT]) + _SKEW)
    found = _signature(tx)
    # Earlier releases recorded fewer values of fewer tables.
    return all(found[name][:len(values)] == values for name, values in kept.items())


def _signature(tx):
    """Return what changes with the tables.

    :returns: dict of the name of a table to its number of rows, and, if it has them, the highest
        id and the sum of the generations; and the times at which the newest row was created and
        the last one was changed
    """
    found = {}
    for table in _FILLED:
        numbers = [sa.func.count()]
        if "id" in table.c:
            numbers.append(sa.func.max(table.c.id))
        if "generation" in table.c:
            numbers.append(sa.func.sum(table.c.generation))
        *values, created, changed = tx.execute(sa.select(
            *numbers, sa.func.max(table.c.created_at), sa.func.max(table.c.updated_at),
        ).select_from(table)).one()
        found[table.name] = [*(None if number is None else int(number) for number in values),
                             *(None if time is None else str(time) for time in (created, changed))]
    return found


def _has_newer(tx, time):
    """Return whether a row was created or changed after a time, and not in the future."""
    until = _now() + _SKEW
    return any(
        tx.execute(sa.select(sa.literal(1)).select_from(table).where(
            column > time, column <= until).limit(1)).first()
        for table in _FILLED for column in (table.c.created_at, table.c.updated_at))
