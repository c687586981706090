# SPDX-License-Identifier: Apache-2.0
"""Compare an index with the store, part by part, while both change."""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from placement_rpc.candidates import structure
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.inventories import VALUES
from placement_rpc.db.queries import candidate_feed as queries

#: The most providers that are copied from the index at a time.
SLICE = 200

# A provider that is created or deleted after the store was read differs in one comparison and not
# in the next.
_COMPARISONS = 3
# Greater than every id.
_LATEST = 2 ** 63 - 1


class Source(NamedTuple):
    """What is compared.

    :param reader: returns a reading transaction of the store as a context manager
    :param copy: brings the index up to date, and returns what a function takes from it
    """

    reader: Callable[..., AbstractContextManager]
    copy: Callable[[Callable[[CandidateIndex], Any]], Any]


def differences(source: Source, after: int, limit: int) -> tuple[dict[int, str], int | None]:
    """Compare a part of an index with the store.

    The index is brought up to date before and after the store is read. If a provider has the same
    generation in both, all else that is known of it has to be the same too. With the first part
    goes what belongs to no provider; differences in that are reported under id 0.

    :param after: the provider id after which to begin
    :param limit: the maximum number of providers
    :returns: dict of provider id to a text that says what differs, and the id after which to
        continue, None at the end
    :raises StoreUnavailable: if the store cannot be read
    """
    lasting: dict[int, str] = {}
    for comparison in range(_COMPARISONS):
        source.copy(lambda index: None)
        with source.reader(snapshot=True) as tx:
            names = (queries.classes(tx), set(queries.traits(tx).values())) if not after else None
            rows = queries.providers(tx, after, limit)
            last = rows[-1].id if len(rows) == limit else _LATEST
            stored = _stored(tx, rows, last)
        known, faults = source.copy(
            lambda index: _checked(index, after, last, names))  # noqa: B023
        found = _compared(known, stored) | faults
        lasting = {id_: text for id_, text in found.items() if comparison == 0 or id_ in lasting}
        if not lasting:
            break
    return lasting, last if len(rows) == limit else None


class _Known(NamedTuple):
    """A provider in an index; ``inventories`` is a dict of class id to its values."""

    uuid: str
    name: str
    generation: int
    parent_id: int | None
    root_id: int
    inventories: dict[int, tuple]
    traits: Collection[str]
    aggregates: Collection[str]


def _checked(index, after, last, names):
    """Return a part of an index as of :func:`_copied`, and what is wrong within the index."""
    faults = structure.faults(index, after + 1, last)
    if names is not None:
        text = structure.whole_faults(index) or _names_text(index, *names)
        if text:
            faults[structure.WHOLE] = text
    return _copied(index, after, last), faults


def _names_text(index, classes, traits):
    """Return what differs in the classes and traits of an index and of the store, or None."""
    for what, here, there in (("class", index.class_ids.items(), classes.items()),
                              ("trait", index.traits, traits)):
        wrong = sorted(here ^ there)
        if wrong:
            return f"the {what} {wrong[0]} is in the index or in the store only"
    return None


def _copied(index, after, last):
    """Return a part of an index: dict of provider id to :class:`_Known`."""
    slots = index.page(after, last=last)
    parents, roots = index.parent[slots], index.root[index.tree[slots]]
    found = {id_: _Known(uuid, index.name_of(slot), generation, parent, root, {},
                         index.trait_sets[traits], index.aggregate_sets[aggregates])
             for id_, uuid, slot, generation, parent, root, traits, aggregates in zip(
                 index.by_id.keys[index.by_id.between(after + 1, last)].tolist(),
                 index.uuids_of(slots), slots.tolist(), index.generation[slots].tolist(),
                 np.where(parents < 0, None, index.id[parents]).tolist(), index.id[roots].tolist(),
                 index.trait_set[slots].tolist(), index.aggregate_set[slots].tolist(),
                 strict=True)}
    for class_id, table in index.inventories.items():
        rows, there = table.rows_of(slots)
        rows = rows[there]
        for id_, *values in zip(index.id[table.slots[rows]].tolist(), *(
                table[name][rows].tolist() for name in VALUES), strict=True):
            found[id_].inventories[class_id] = tuple(values)
    return found


def _stored(tx, rows, last):
    """Return a part of the store: dict of provider id to :class:`_Known`."""
    stored = {row.id: _Known(*row[1:], {}, set(), set()) for row in rows}
    if rows:
        first = rows[0].id
        for row in queries.inventories(tx, first, last):
            if row[0] in stored:
                stored[row[0]].inventories[row[1]] = tuple(row[2:])
        for names, read in (("traits", queries.trait_links), ("aggregates", queries.members)):
            for provider_id, name in read(tx, first, last):
                if provider_id in stored:
                    getattr(stored[provider_id], names).add(name)
    return stored


def _compared(known, stored):
    found = dict.fromkeys(known.keys() - stored.keys(), "it is not in the store")
    for id_, there in stored.items():
        text = _difference(known.get(id_), there)
        if text:
            found[id_] = text
    return found


def _difference(here, there):
    """Return what differs between a provider in the index and in the store, or None."""
    if here is None:
        return "it is not in the index"
    if here.uuid != there.uuid:
        return f"the uuid is {here.uuid} instead of {there.uuid}"
    if here.generation < there.generation:
        return f"generation {here.generation} instead of {there.generation}"
    if here.generation > there.generation:
        # It changed after the store was read.
        return None
    return _difference_of_values(here, there)


def _difference_of_values(here, there):
    """Return what differs between two providers of the same generation, or None."""
    for field, what in (("name", "name"), ("parent_id", "parent"), ("root_id", "root")):
        one, other = getattr(here, field), getattr(there, field)
        if one != other:
            return f"the {what} is {one!r} instead of {other!r}"
    for field in ("traits", "aggregates"):
        one, other = getattr(here, field), getattr(there, field)
        if one != other:
            return (f"{field} that only the index has: {sorted(one - other)}, and that only the "
                    f"store has: {sorted(other - one)}")
    for class_id in here.inventories.keys() | there.inventories.keys():
        one, other = here.inventories.get(class_id), there.inventories.get(class_id)
        if one != other:
            return f"class {class_id}: {one} instead of {other}"
    return None
