# SPDX-License-Identifier: Apache-2.0
"""Read the whole store into a candidate index."""

from typing import Any

import numpy as np

from placement_rpc.candidates import tree_writing
from placement_rpc.candidates.index import SHARES, CandidateIndex
from placement_rpc.candidates.interned_sets import EMPTY, InternedSets
from placement_rpc.candidates.inventories import VALUES
from placement_rpc.candidates.uuid_columns import to_halves
from placement_rpc.db.queries import candidate_feed as queries

# Providers that one statement reads. The work between two statements takes some milliseconds:
# [transactions] idle_timeout ends a session on MariaDB that is longer without one.
_CHUNK = 2_000


class CutText(Exception):
    """The database returned a part of a text only."""


class Loader:
    """All of a store in columns, of which an index is made.

    The store is read chunk by chunk in the order of ids, and the index is made after the
    transaction.

    :param tx: a reading transaction in which all statements see the same state
    :raises CutText: if the database is set up to return a part of a long text only
    """

    def __init__(self, tx: Any):
        index = CandidateIndex()
        index.class_ids = queries.classes(tx)
        self._index = index
        self._columns: dict[str, list] = {
            name: [] for name in (*tree_writing.OWN, "parent_id", "root_id")}
        # Class id to a list of arrays of provider id and values.
        self._inventories: dict[int, list] = {}
        traits = queries.traits(tx)
        index.traits = set(traits.values())
        self._traits = _Sets(index.trait_sets, traits)
        self._aggregates = _Sets(index.aggregate_sets, queries.aggregates(tx))
        after = 0
        while rows := queries.providers(tx, after, _CHUNK):
            self._add(tx, rows)
            after = rows[-1].id

    def _add(self, tx, rows):
        """Add a chunk of providers, with all that belongs to them."""
        ids, uuids, names, generations, parents, roots = zip(*rows, strict=True)
        ids = np.array(ids, np.int64)
        high, low = to_halves(uuids)
        starts, lengths = self._index.names.add(names)
        between = int(ids[0]), int(ids[-1])
        for name, column in (
                ("id", ids), ("high", high), ("low", low), ("name_start", starts),
                ("name_length", lengths), ("generation", np.array(generations, np.int64)),
                ("parent_id", np.array([each or 0 for each in parents], np.int64)),
                ("root_id", np.array(roots, np.int64)),
                ("trait_set", self._traits.numbers(ids, queries.trait_sets(tx, *between))),
                ("aggregate_set", self._aggregates.numbers(
                    ids, queries.aggregate_sets(tx, *between)))):
            self._columns[name].append(column)
        for class_id, count, text in queries.inventory_texts(tx, *between):
            numbers = _numbers(text, count * (1 + len(VALUES))).reshape(count, -1)
            self._inventories.setdefault(class_id, []).append((
                numbers[:, 0].copy(), {
                    name: numbers[:, at].astype(dtype)
                    for at, (name, dtype) in enumerate(VALUES.items(), 1)}))

    def index(self) -> CandidateIndex:
        """Return the index; the columns are given up for it.

        :raises placement_rpc.candidates.trees.BrokenTree: if a parent is missing, if there is a
            loop of parents, or if the root of a provider is not that of its parents
        """
        index = self._index
        if len(index.slots) or not self._columns["id"]:
            return index
        columns = {name: np.concatenate(self._columns.pop(name)) for name in list(self._columns)}
        ids, roots = columns["id"], columns.pop("root_id")
        inventories = {}
        for class_id in list(self._inventories):
            chunks = self._inventories.pop(class_id)
            inventories[class_id] = tree_writing.ClassRows(
                ids.searchsorted(np.concatenate([each for each, _ in chunks])),
                {name: np.concatenate([values[name] for _, values in chunks]) for name in VALUES})
            del chunks
        tree_writing.write_trees(index, columns, columns.pop("parent_id"), inventories)
        tree_writing.check_roots(index, ids, roots)
        shares = index.trait_sets.having_any([SHARES])[index.trait_set]
        index.sharing_ids.update(index.id[shares].tolist())
        # The first call does not wait for it.
        index.by_uuid.prepare(index.high)
        index.trait_sets.added = index.aggregate_sets.added = 0
        return index


class _Sets:
    """Interned sets, of names by the ids that they have in the database."""

    def __init__(self, sets: InternedSets, names: dict[int, str]):
        self._sets = sets
        self._names = names

    def numbers(self, ids, rows):
        """Return the number of the set of each provider: array of int32.

        :param ids: array of the ids of all providers, ascending
        :param rows: of sets, see :func:`placement_rpc.db.queries.candidate_feed.trait_sets`
        """
        found = np.full(len(ids), EMPTY, np.int32)
        for size, text, count, providers in rows:
            found[ids.searchsorted(_numbers(providers, count))] = self._sets.number_of(
                [self._names[id_] for id_ in _numbers(text, size).tolist()])
        return found


def _numbers(text, count):
    """Return the whole numbers of a text: array of int64.

    :raises CutText: if they are not as many as expected
    """
    found = np.fromstring(text, np.int64, sep=",")
    if len(found) != count:
        raise CutText(f"the database returned {len(found)} of {count} numbers; its limit of the "
                      "length of a text, such as group_concat_max_len, is too low")
    return found
