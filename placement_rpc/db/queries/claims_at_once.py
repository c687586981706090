# SPDX-License-Identifier: Apache-2.0
"""Write everything of a batch of claims in one statement; for PostgreSQL only.

Six statements in one are less work for the process that sends them and for the server that reads
them. Earlier allocations of the consumers must already be deleted: a statement does not see its
own deletions.
"""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk, events, hold, requests
from placement_rpc.db.queries.records import Records

_allocations = models.allocations
_consumers = models.consumers
_events = models.events
_inventories = models.inventories
_providers = models.resource_providers
_requests = models.requests


_HELD = ("resource_provider_id", "resource_class_id", "used")


def _records(table, *names):
    return Records(table.name, {name: table.c[name] for name in names})


_RECORDS = {
    "consumers": _records(_consumers, "uuid", "project_id", "user_id", "generation",
                          "consumer_type_id"),
    "allocations": Records("allocations", {
        "consumer_id": _allocations.c.consumer_id, "consumer_uuid": _consumers.c.uuid,
        **{name: _allocations.c[name] for name in _HELD}}, ordered=True),
    "used": bulk.number_records("used", _inventories.c.used),
    "generations": bulk.number_records("generations", _providers.c.generation, checked=True),
    "events": _records(_events, *events.NewEvent._fields),
    "requests": _records(_requests, *requests.NewRequest._fields),
}


def _insert(table):
    given = _RECORDS[table.name].given
    return bulk.insert_from(table, given, given.c)


def _insert_allocations(made):
    # The id of a consumer that the same statement inserts is not known before.
    given = _RECORDS["allocations"].given
    return bulk.insert_from(
        _allocations, given.outerjoin(made, made.c.uuid == given.c.consumer_uuid), {
            "consumer_id": sa.func.coalesce(given.c.consumer_id, made.c.id),
            **{name: given.c[name] for name in _HELD}}, order_by=given.c.place)


def _set_numbers(name, column):
    return bulk.numbers_from(_RECORDS[name].given.c, column)


def _statement():
    made = _insert(_consumers).returning(_consumers.c.id, _consumers.c.uuid).cte("made")
    moved = _set_numbers("generations", _providers.c.generation).returning(
        _providers.c.id).cte("moved")
    return sa.select(sa.func.count(), hold.IS_SET).select_from(moved).add_cte(
        _insert_allocations(made).cte("held"),
        _set_numbers("used", _inventories.c.used).cte("taken"),
        _insert(_events).cte("told"), _insert(_requests).cte("kept"))


_WRITE = _statement()


def write(tx, tables):
    """Write the rows of all tables.

    :param tables: as of :func:`placement_rpc.db.queries.claims.write`
    :returns: int, how many providers had the generation that they were expected to have
    :raises StoreHeld: if the store is held
    :raises oslo_db.exception.DBDuplicateEntry: when another writer was faster
    """
    moved, is_held = tx.execute(_WRITE, {
        "now": bulk.now(), **{name: records.encode(tables[name])
                              for name, records in _RECORDS.items()}}).one()
    if is_held:
        raise hold.refusal(hold.state(tx).reason)
    return moved
