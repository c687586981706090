# SPDX-License-Identifier: Apache-2.0
"""Compare an index with the store, part by part, while both change."""

import threading

from placement_rpc.candidates.feed import LATEST, FollowedIndex
from placement_rpc.db.queries import candidate_feed as queries

# A provider that is created or deleted between two statements of a comparison differs in one
# comparison and not in the next.
_COMPARISONS = 3


def differences(followed: FollowedIndex, after: int, limit: int,
                lock: threading.Lock) -> tuple[dict[int, str], int | None]:
    """Compare a part of an index with the store.

    The index is brought up to date before and after the store is read. If a provider has the same
    generation in both, all else that is known of it has to be the same too.

    :param after: the provider id after which to begin
    :param limit: the maximum number of providers
    :param lock: held while the index is changed or read
    :returns: dict of provider id to a text that says what differs, and the id after which to
        continue, None at the end
    :raises StoreUnavailable: if the store cannot be read
    :raises IndexStale: if the index cannot be brought up to date
    """
    lasting: dict[int, str] = {}
    for comparison in range(_COMPARISONS):
        _bring_up_to_date(followed, lock)
        with followed.reader() as tx:
            rows = queries.providers(tx, after, limit)
            last = rows[-1].id if len(rows) == limit else LATEST
            stored = _stored(rows, queries.inventories(tx, after + 1, last),
                             queries.members(tx, after + 1, last))
        _bring_up_to_date(followed, lock)
        with lock:
            found = _compared(followed.index, after, last, rows, stored)
        lasting = {id_: text for id_, text in found.items() if comparison == 0 or id_ in lasting}
        if not lasting:
            break
    return lasting, last if len(rows) == limit else None


def _bring_up_to_date(followed, lock):
    changes = followed.changes()
    with lock:
        followed.apply(changes)


def _stored(rows, inventories, memberships):
    """Return a dict of provider id to a dict of class id to values, and a set of aggregates."""
    stored = {row.id: ({}, set()) for row in rows}
    for row in inventories:
        if row[0] in stored:
            stored[row[0]][0][row[1]] = tuple(row[2:])
    for aggregate, provider_id in memberships:
        if provider_id in stored:
            stored[provider_id][1].add(aggregate)
    return stored


def _compared(index, after, last, rows, stored):
    known = {row[0]: row for row in index.page(after, last=last)}
    inventories = index.inventories_between(after + 1, last)
    found = dict.fromkeys(known.keys() - stored.keys(), "it is not in the store")
    for row in rows:
        text = _difference(index, known.get(row.id), row, inventories.get(row.id, {}),
                           *stored[row.id])
        if text:
            found[row.id] = text
    return found


def _difference(index, known, row, known_inventories, inventories, aggregates):
    """Return what differs between a provider in the index and its row in the store, or None."""
    if known is None:
        return "it is not in the index"
    _, uuid, name, generation = known
    if generation < row.generation or uuid != row.uuid:
        return f"generation {generation} instead of {row.generation}"
    if generation > row.generation:
        # It changed after the store was read.
        return None
    if name != row.name:
        return f"the name is {name!r} instead of {row.name!r}"
    if index.aggregates_of(row.id) != aggregates:
        return "it is in other aggregates"
    for class_id in known_inventories.keys() | inventories.keys():
        here, there = known_inventories.get(class_id), inventories.get(class_id)
        if here != there:
            return f"class {class_id}: {here} instead of {there}"
    return None
