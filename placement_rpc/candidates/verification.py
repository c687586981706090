# SPDX-License-Identifier: Apache-2.0
"""Compare an index with the store, part by part, while both change."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from placement_rpc.candidates.feed import LATEST
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.db.queries import candidate_feed as queries

#: The most providers that are copied from the index at a time.
SLICE = 200

# A provider that is created or deleted between two statements of a comparison differs in one
# comparison and not in the next.
_COMPARISONS = 3


class Source(NamedTuple):
    """What is compared.

    :param reader: returns a reading transaction of the store as a context manager
    :param copy: brings the index up to date, and returns what a function takes from it
    """

    reader: Callable[[], AbstractContextManager]
    copy: Callable[[Callable[[CandidateIndex], Any]], Any]


def differences(source: Source, after: int, limit: int) -> tuple[dict[int, str], int | None]:
    """Compare a part of an index with the store.

    The index is brought up to date before and after the store is read. If a provider has the same
    generation in both, all else that is known of it has to be the same too.

    :param after: the provider id after which to begin
    :param limit: the maximum number of providers
    :returns: dict of provider id to a text that says what differs, and the id after which to
        continue, None at the end
    :raises StoreUnavailable: if the store cannot be read
    """
    lasting: dict[int, str] = {}
    for comparison in range(_COMPARISONS):
        source.copy(lambda index: None)
        with source.reader() as tx:
            rows = queries.providers(tx, after, limit)
            last = rows[-1].id if len(rows) == limit else LATEST
            stored = _stored(rows, queries.inventories(tx, after + 1, last),
                             queries.members(tx, after + 1, last))
        known = source.copy(lambda index: _copied(index, after, last))  # noqa: B023
        found = _compared(known, rows, stored)
        lasting = {id_: text for id_, text in found.items() if comparison == 0 or id_ in lasting}
        if not lasting:
            break
    return lasting, last if len(rows) == limit else None


class _Known(NamedTuple):
    """A part of an index: rows, inventories and aggregates, each by provider id."""

    providers: dict[int, tuple]
    inventories: dict[int, dict]
    aggregates: dict[int, set]


def _copied(index, after, last):
    rows = {row[0]: tuple(row) for row in index.page(after, last=last)}
    return _Known(rows, index.inventories_between(after + 1, last),
                  {id_: set(index.aggregates_of(id_)) for id_ in rows})


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


def _compared(known, rows, stored):
    found = dict.fromkeys(known.providers.keys() - stored.keys(), "it is not in the store")
    for row in rows:
        text = _difference(known, row, *stored[row.id])
        if text:
            found[row.id] = text
    return found


def _difference(known, row, inventories, aggregates):
    """Return what differs between a provider in the index and its row in the store, or None."""
    if row.id not in known.providers:
        return "it is not in the index"
    _, uuid, name, generation = known.providers[row.id]
    known_inventories = known.inventories.get(row.id, {})
    if generation < row.generation or uuid != row.uuid:
        return f"generation {generation} instead of {row.generation}"
    if generation > row.generation:
        # It changed after the store was read.
        return None
    if name != row.name:
        return f"the name is {name!r} instead of {row.name!r}"
    if known.aggregates[row.id] != aggregates:
        return "it is in other aggregates"
    for class_id in known_inventories.keys() | inventories.keys():
        here, there = known_inventories.get(class_id), inventories.get(class_id)
        if here != there:
            return f"class {class_id}: {here} instead of {there}"
    return None
