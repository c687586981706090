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
    # JSON: what changes with each change of the database by Placement.
    sa.Column("signature", sa.Text, nullable=True))
_SIGNED = (schema.resource_providers, schema.inventories, schema.consumers, schema.allocations)
_EMPTY = (*_SIGNED, schema.resource_provider_traits, schema.resource_provider_aggregates)


def begin(tx: sa.Connection) -> str:
    """Record that an export begins. It waits for the transaction of one that was killed.

    :returns: the id of this run
    :raises ExportRefused: if the database is neither empty nor as the last export left it
    """
    run = str(uuid.uuid4())
    if not sa.inspect(tx).has_table(NAME):
        filled = [table.name for table in _EMPTY
                  if tx.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first()]
        if filled:
            raise exception.ExportRefused(
                reason=f"it is not empty: there are rows in {', '.join(filled)}")
        _state.create(tx)
        tx.execute(sa.insert(_state).values(id=1, begun_at=_now(), run=run, batches=0))
        return run
    tx.execute(sa.update(_state).values(run=run, batches=0))
    row = tx.execute(sa.select(_state)).one()
    if row.ended_at is not None and row.signature != _signature(tx):
        raise exception.ExportRefused(
            reason=f"it has been changed since the export of {row.ended_at:%F %T} UTC. If those "
                   "changes are worth nothing, export to a new database")
    tx.execute(sa.update(_state).values(ended_at=None, signature=None))
    return run


def begin_batch(tx: sa.Connection, run: str) -> None:
    """Check, in the transaction of a batch, that no later export has begun.

    :raises ExportRefused: if one has
    """
    if not tx.execute(sa.update(_state).where(_state.c.run == run).values(
            batches=_state.c.batches + 1)).rowcount:
        raise exception.ExportRefused(reason="another export to it has begun")


def end(tx: sa.Connection) -> None:
    """Record that an export has ended."""
    tx.execute(sa.update(_state).values(ended_at=_now(), signature=_signature(tx)))


def forget(tx: sa.Connection) -> None:
    """Forget that exports have filled the database: none is possible any more."""
    _state.drop(tx)


def _now():
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None, microsecond=0)


def _signature(tx):
    """Return the numbers of rows, the highest ids and the sums of generations, as text."""
    found = {}
    for table in _SIGNED:
        numbers = [sa.func.count(), sa.func.max(table.c.id)]
        if "generation" in table.c:
            numbers.append(sa.func.sum(table.c.generation))
        found[table.name] = [None if number is None else int(number) for number in tx.execute(
            sa.select(*numbers).select_from(table)).one()]
    return json.dumps(found)
