# SPDX-License-Identifier: Apache-2.0
"""Making a candidate index, and bringing it up to date from the events.

What is read is never older than the call that asks: the feed is read in one statement that begins
after the call did. What commits later than an event with a higher id is not missed: an event is
read by its position, which the relay gives after the commit, or else as one that has none yet.
Whatever does not add up makes the index doubtful, and a doubtful one is dropped.
"""

import json
import time

from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.db.queries import candidate_feed as queries

_CHUNK = 10_000
# Read again in one statement.
_AT_ONCE = 500
# Whoever did not read for so many seconds may be too far behind.
_LONG = 30
_MOST_BEHIND = 50_000


class IndexStale(Exception):
    """The index can not be brought up to date; it has to be made anew."""


class FollowedIndex:
    """An index and the place in the feed up to which it has come.

    ``index`` is the :class:`placement_rpc.candidates.index.CandidateIndex`; ``applied``
    counts the events that it was brought up to date with.

    :param reader: callable that gives a reading transaction as a context manager
    """

    def __init__(self, reader):
        self._reader = reader
        self.index = CandidateIndex()
        self.applied = 0
        self._read_at = time.monotonic()
        with reader() as tx:
            # First the place, then what is there: what changes meanwhile is read twice.
            self._position, waiting = queries.since(tx, _LATEST)
            self._seen = {row.id for row in waiting}
            self.index.class_ids = queries.classes(tx)
        self._load()

    @property
    def position(self):
        """int, the position up to which it has everything"""
        return self._position

    @property
    def age(self):
        """float, seconds since it was brought up to date"""
        return time.monotonic() - self._read_at

    def _load(self):
        after = 0
        while True:
            with self._reader() as tx:
                rows = queries.providers(tx, after, _CHUNK)
                if not rows:
                    self._check()
                    return
                first, after = rows[0].id, rows[-1].id
                ids = {row.id for row in rows}
                inventories = queries.inventories(tx, first, after)
                members = queries.members(tx, first, after)
            self.index.put_providers(rows)
            # Who came between the two statements will be told of.
            self.index.put_inventories([row for row in inventories if row[0] in ids])
            members = [row for row in members if row[1] in ids]
            self.index.put_members(members, {row[1] for row in members})

    def _check(self):
        if self.index.has_doubles():
            raise IndexStale("a provider was made anew while the index was made")

    def changes(self):
        """What is to be applied: read, but nothing done with it.

        :returns: tuple for :meth:`apply`
        :raises Doubt: when a part of the feed is missing, or it is so long that to make the index
            anew takes less
        """
        behind = time.monotonic() - self._read_at > _LONG
        with self._reader() as tx:
            if behind and queries.last_position(tx) - self._position > _MOST_BEHIND:
                raise IndexStale(f"it is more than {_MOST_BEHIND} positions behind")
            last, rows = queries.since(tx, self._position)
            positioned = sum(row.position is not None for row in rows)
            if positioned != last - self._position:
                raise IndexStale(f"{last - self._position} positions were given after "
                            f"{self._position}, and {positioned} of their events are left")
            fresh = [row for row in rows if row.id not in self._seen]
            told = _told(row.touched for row in fresh)
            return last, rows, len(fresh), told, self._read(tx, told)

    def _read(self, tx, told):
        uuids, read = sorted(told.read), []
        for start in range(0, len(uuids), _AT_ONCE):
            read += queries.named(tx, uuids[start:start + _AT_ONCE])
        members = []
        ids = sorted({row.id for row in read})
        for start in range(0, len(ids), _AT_ONCE):
            members += queries.members_named(tx, ids[start:start + _AT_ONCE])
        return read, members, queries.classes(tx) if told.classes else None

    def apply(self, changes):
        """Bring the index up to date with what :meth:`changes` read.

        :raises Doubt: when it does not fit to what the index has
        """
        last, rows, count, told, (read, members, classes) = changes
        if classes is not None:
            self.index.class_ids = classes
        self._put(read, members, told.read)
        again = {row.id for row in read}
        some_are_gone = len({row.uuid for row in read}) < len(told.read)
        for provider_id, before, after, used in told.used:
            if provider_id in again or self.index.use(provider_id, before, after, used):
                continue
            if not some_are_gone or self.index.providers.row_of(provider_id) is not None:
                raise IndexStale(f"provider {provider_id} changed from generation {before}, which "
                                 "the index does not have")
        self._position = last
        self._seen = {row.id for row in rows if row.position is None}
        self.applied += count
        self._read_at = time.monotonic()

    def _put(self, read, members, uuids):
        rows, classes = {}, {}
        for row in read:
            rows[row.id] = row[:4]
            classes.setdefault(row.id, set()).add(row[4])
        # Who is deleted, and who was made anew under the same uuid, which has another row.
        doubtful = {row[1] for row in rows.values()
                    if self.index.providers.row_of(row[0]) is None} | (
                        uuids - {row[1] for row in rows.values()})
        gone = self.index.ids_of(doubtful) - rows.keys()
        if gone:
            self.index.remove(gone)
        if rows:
            self.index.put_providers(list(rows.values()))
            self.index.keep_classes(rows, classes)
            self.index.put_inventories(
                [(row[0], *row[4:]) for row in read if row[4] is not None])
            self.index.put_members(members, rows)

    def differences(self, after, limit, using):
        """Compare a part of the index with the store.

        The index is brought up to date before and after the store is read: what the store says
        of a provider at the generation that the index has is what the index must say.

        :param after: int, the provider id after which to begin
        :param limit: int, how many providers at the most
        :param using: lock that is held where the index is changed or looked at
        :returns: tuple of a dict of provider id to str, what differs, and of the id to go on
            after, None at the end
        :raises Doubt:
        """
        differing, end = None, None
        for _ in range(_LOOKS):
            self._bring_up_to_date(using)
            with self._reader() as tx:
                rows = queries.providers(tx, after, limit)
                last = rows[-1].id if len(rows) == limit else _LATEST
                inventories = queries.inventories(tx, after + 1, last)
                members = queries.members(tx, after + 1, last)
            self._bring_up_to_date(using)
            end = last if len(rows) == limit else None
            with using:
                found = self._compared(after, last, rows, inventories, members)
            # Who was made or deleted between two statements is no difference the next time.
            differing = found if differing is None else {
                id_: text for id_, text in found.items() if id_ in differing}
            if not differing:
                break
        return differing, end

    def _bring_up_to_date(self, using):
        changes = self.changes()
        with using:
            self.apply(changes)

    def _compared(self, after, last, rows, inventories, members):
        stored = {row.id: [{}, set()] for row in rows}
        for row in inventories:
            if row[0] in stored:
                stored[row[0]][0][row[1]] = tuple(row[2:])
        for aggregate, provider_id in members:
            if provider_id in stored:
                stored[provider_id][1].add(aggregate)
        here = {row[0]: row for row in self.index.page(after, last=last)}
        known_inventories = self.index.inventories_between(after + 1, last)
        found = dict.fromkeys(here.keys() - stored.keys(), "it is not in the store")
        for row in rows:
            known = here.get(row.id)
            if known is None:
                found[row.id] = "it is not in the index"
            elif known[3] < row.generation or known[1] != row.uuid:
                found[row.id] = f"generation {known[3]} instead of {row.generation}"
            elif known[3] == row.generation:
                text = self._difference(
                    known, row, known_inventories.get(row.id, {}), *stored[row.id])
                if text:
                    found[row.id] = text
        return found

    def _difference(self, known, row, known_inventories, inventories, aggregates):
        if known[2] != row.name:
            return f"the name is {known[2]!r} instead of {row.name!r}"
        if self.index.aggregates_of(row.id) != aggregates:
            return "it is in other aggregates"
        for class_id in known_inventories.keys() | inventories.keys():
            here, there = known_inventories.get(class_id), inventories.get(class_id)
            if here != there:
                return f"class {class_id}: {here} instead of {there}"
        return None


# After every position and every id: only what has no position is read.
_LATEST = 2 ** 63 - 1
_LOOKS = 3


class _Told:
    """What events say that was touched."""

    def __init__(self):
        self.read, self.used, self.classes = set(), [], False


def _told(texts):
    """:param texts: iterable of the ``touched`` of events; :raises Doubt: for one that has none"""
    told = _Told()
    for text in texts:
        if text is None:
            raise IndexStale("an event does not say what it touched")
        if text:
            said = json.loads(text)
            if "read" in said:
                told.read.add(said["read"])
            told.used += said.get("used", ())
            told.classes |= said.get("classes", False)
    return told
