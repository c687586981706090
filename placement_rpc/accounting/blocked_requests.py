# SPDX-License-Identifier: Apache-2.0
"""The requests of a batch that need a row that another transaction has locked.

They are blocked, and so are later requests for their consumers: those of one consumer keep their
order.
"""

import collections
import itertools
from collections.abc import Callable, Iterable, Sequence

from placement_rpc import exception
from placement_rpc.accounting import batch
from placement_rpc.accounting.batch import Outcome, PendingRequest
from placement_rpc.accounting.locked_state import Scope
from placement_rpc.db import api as db
from placement_rpc.db.queries import claims, locking


def find(tx: db.Connection, pending: Sequence[PendingRequest], locked: set[str]) -> set[int]:
    """Lock the rows that the requests need and that are free; return which requests are blocked.

    A request that comes after a blocked one and concerns the same consumer is blocked too.

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


def settle_parts(parts: Iterable[Sequence[PendingRequest]],
                 settle: Callable[[Sequence[PendingRequest]], list[Outcome]],
                 method: str) -> list[Outcome]:
    """Settle a batch in parts, one after the other.

    Requests for a consumer of which a request in an earlier part is blocked are not tried, even
    those of which the outcome is stored already; their clients retry all of them.

    :param settle: settles one part
    :param method: of the requests, for errors
    :returns: outcomes in the order of the requests. An error after the first part is the outcome
        of all requests from there on.
    :raises PlacementException: the error of the first part
    """
    outcomes: list[Outcome] = []
    behind: set[str] = set()
    rest = iter(parts)
    for part in rest:
        try:
            settled = _settle_free(part, behind, settle, method)
        except exception.PlacementException as error:
            if not outcomes:
                raise
            return outcomes + batch.not_settled(error, [*part, *itertools.chain(*rest)])
        for each, outcome in zip(part, settled, strict=True):
            if outcome.blocked:
                behind |= _scope_of(each).consumers
        outcomes += settled
    return outcomes


def _settle_free(part, behind, settle, method):
    """Settle the requests of a part that do not come behind a blocked one."""
    if not behind:
        return settle(part)
    behind, free = set(behind), {}
    for number, each in enumerate(part):
        consumers = _scope_of(each).consumers
        if behind.isdisjoint(consumers):
            free[number] = each
        else:
            behind |= consumers
    found = dict(zip(free, settle(list(free.values())), strict=True)) if free else {}
    return [found.get(number) or batch.blocked(method) for number in range(len(part))]


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
