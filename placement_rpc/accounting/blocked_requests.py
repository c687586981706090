# SPDX-License-Identifier: Apache-2.0
"""Find the requests of a batch that need a row that another transaction has locked."""

import collections
from collections.abc import Sequence

from placement_rpc.accounting.batch import PendingRequest
from placement_rpc.accounting.locked_state import Scope
from placement_rpc.db import api as db
from placement_rpc.db.queries import claims, locking


def find(tx: db.Connection, pending: Sequence[PendingRequest], locked: set[str]) -> set[int]:
    """Lock the rows that the requests need and that are free; return which requests are blocked.

    A request that comes after a blocked one and concerns the same consumer is blocked too, so that
    the requests of a consumer keep their order.

    :param locked: the uuids of consumers and providers that others have locked are added to it
    :returns: set of the ids of the blocked request objects
    """
    scopes = [_scope_of(each) for each in pending]
    free, others = locking.lock_free_consumers(
        tx, set().union(*(scope.consumers for scope in scopes)))
    locked |= others
    held = _providers_of(tx, free)
    for scope in scopes:
        scope.providers.update(*(held[uuid] for uuid in scope.consumers))
    locked |= locking.lock_free_providers(
        tx, set().union(*(scope.providers for scope in scopes)))[1]
    blocked, behind = set(), set(locked)
    for each, scope in zip(pending, scopes, strict=True):
        if not behind.isdisjoint(scope.consumers | scope.providers):
            blocked.add(id(each))
            behind |= scope.consumers
    return blocked


def _scope_of(pending):
    scope = Scope()
    pending.add_to_scope(scope)
    return scope


def _providers_of(tx, consumers):
    """Return the uuids of the providers of which consumers hold something, by consumer uuid."""
    uuids = {row_id: uuid for uuid, row_id in consumers.items()}
    found = collections.defaultdict(set)
    for row in claims.held(tx, list(uuids)):
        found[uuids[row.consumer_id]].add(row.provider_uuid)
    return found
