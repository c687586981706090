# SPDX-License-Identifier: Apache-2.0
"""Lock and read everything that a batch of changes concerns.

Consumers are locked before providers, and both by uuid in ascending order, in every transaction:
two transactions can then wait for each other in one direction only. What depends on a locked row
is read by a statement of its own, after the lock was granted: the locking statement itself may
answer with data from before it waited.

These are up to five statements. On PostgreSQL a function of the schema runs them, since a round
trip takes longer than any of them: a lone claim waits for one answer instead of four.
"""

import dataclasses
import datetime
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from placement_rpc import json_text
from placement_rpc.db import api as db
from placement_rpc.db.queries import claims, inventories, locking, requests


class Consumer(NamedTuple):
    """A consumer that is locked."""

    id: int
    uuid: str
    generation: int
    project_id: str
    user_id: str
    created_at: datetime.datetime
    updated_at: datetime.datetime
    consumer_type_id: int | None


class Held(NamedTuple):
    """An amount that one of the consumers holds."""

    consumer_id: int
    resource_provider_id: int
    resource_class_id: int
    used: int


class Provider(NamedTuple):
    """A provider that is locked."""

    id: int
    uuid: str
    generation: int


@dataclasses.dataclass(slots=True)
class LockedRows:
    """What was found.

    ``stored`` has the stored outcomes of requests by request id, as
    :func:`placement_rpc.db.queries.requests.find`; if there are any, nothing was locked.
    ``consumers``, ``held`` and ``providers`` are rows with the attributes of :class:`Consumer`,
    :class:`Held` and :class:`Provider`, and ``inventories`` are rows of
    :data:`placement_rpc.db.queries.inventories.COLUMNS`.
    """

    stored: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    consumers: Sequence[Any] = ()
    held: Sequence[Any] = ()
    providers: Sequence[Any] = ()
    inventories: Sequence[Any] = ()


_AT_ONCE = sa.select(sa.func.lock_and_read(*(
    sa.bindparam(name, type_=postgresql.ARRAY(sa.String))
    for name in ("request_ids", "consumers", "providers")), type_=sa.Text))
_RATIO = inventories.COLUMNS.index("allocation_ratio")


def lock(tx: db.Connection, consumers: Collection[str], providers: Collection[str],
         request_ids: Collection[str] = ()) -> LockedRows:
    """Lock consumers and providers and read what depends on them.

    The providers of everything that the consumers hold are locked, too.

    :param consumers: uuids, as are ``providers``; what does not exist is ignored
    :param request_ids: the requests of the batch, if their stored outcomes were not looked for
    :raises StoreHeld: if one of the requests has no outcome, and the store is held
    :raises placement_rpc.db.api.Locked: if another transaction keeps a row locked
    """
    if tx.dialect.name == "postgresql":
        return _lock_at_once(tx, consumers, providers, request_ids)
    stored = requests.of_change(tx, request_ids) if request_ids else {}
    return LockedRows(stored) if stored else _lock_one_by_one(tx, consumers, providers)


def _lock_one_by_one(tx, consumers, providers):
    locked = claims.lock_consumers(tx, consumers) if consumers else []
    held = claims.held(tx, [row.id for row in locked])
    uuids = {*providers, *(row.provider_uuid for row in held)}
    locked_providers = claims.lock_providers(tx, uuids) if uuids else []
    return LockedRows(
        consumers=locked, held=held, providers=locked_providers,
        inventories=claims.inventories_of(tx, [row.id for row in locked_providers])
        if locked_providers else [])


def _lock_at_once(tx, consumers, providers, request_ids):
    with locking.translated_errors():
        text = tx.execute(_AT_ONCE, {
            "request_ids": list(request_ids), "consumers": list(consumers),
            "providers": list(providers)}).scalar_one()
    stored, reason, consumer_rows, held, provider_rows, inventory_rows = json_text.loads(text)
    found = {row[0]: requests.NewRequest(*row) for row in stored or ()}
    if request_ids:
        requests.check_accepted(tx, request_ids, found, reason)
    return LockedRows(
        found, [_consumer(row) for row in consumer_rows or ()],
        [Held(*row) for row in held or ()],
        [Provider(*row) for row in provider_rows or ()],
        [_inventory(row) for row in inventory_rows or ()])


def _consumer(row):
    found = Consumer(*row)
    return found._replace(created_at=datetime.datetime.fromisoformat(found.created_at),
                          updated_at=datetime.datetime.fromisoformat(found.updated_at))


def _inventory(row):
    # PostgreSQL writes 1.0 as 1.
    row[_RATIO] = float(row[_RATIO])
    return row
