# SPDX-License-Identifier: Apache-2.0
"""Build a candidate index from the store, and bring it up to date from the events.

An index is never older than the call that reads it: the feed is read in one statement that begins
after the call did. A transaction that commits later than an event with a higher id is not missed:
an event is read by its position, which the relay assigns after the commit, or else as an event
without a position. Any inconsistency makes the index stale, and a stale index is dropped.
"""

import dataclasses
import json
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple

from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.db.queries import candidate_feed as queries

#: Greater than every position and every id: a read after it has events without a position only.
LATEST = 2 ** 63 - 1

# Providers that one transaction of a build reads.
_CHUNK = 10_000
# Providers that one statement reads again.
_READ_AGAIN = 500
# After so many seconds without a read, the distance to the end of the feed is checked first.
_LONG_UNREAD = 30
_MOST_BEHIND = 50_000


class IndexStale(Exception):
    """The index cannot be brought up to date and has to be built again."""


class Changes(NamedTuple):
    """Changes that were read from the feed and are not applied yet.

    :param position: the last position that the relay assigned
    :param waiting: ids of the events that have no position
    :param events: the number of new events
    :param touched: the changes that the new events name
    :param providers: rows of the providers that have to be read again, see
        :func:`placement_rpc.db.queries.candidate_feed.named`
    :param memberships: rows of aggregate uuid and provider id of those providers
    :param class_ids: dict of class name to id; None if no class changed
    """

    position: int
    waiting: set[int]
    events: int
    touched: "_Touched"
    providers: list
    memberships: list
    class_ids: dict[str, int] | None


class FollowedIndex:
    """An index and its place in the feed of events.

    ``index`` is the :class:`placement_rpc.candidates.index.CandidateIndex`; ``applied`` counts the
    events that were applied to it.

    :param reader: returns a reading transaction as a context manager
    :raises StoreUnavailable: if the store cannot be read
    :raises IndexStale: if a provider was deleted and created again during the build
    """

    def __init__(self, reader: Callable[[], AbstractContextManager]):
        self.reader = reader
        self.index = CandidateIndex()
        self.applied = 0
        self._read_at = time.monotonic()
        with reader() as tx:
            # The place is read before the rows: changes made during the build are read twice.
            self._position, waiting = queries.since(tx, LATEST)
            self._seen = {row.id for row in waiting}
            self.index.class_ids = queries.classes(tx)
        self._load()

    @property
    def position(self) -> int:
        """The position up to which all events are applied."""
        return self._position

    @property
    def age(self) -> float:
        """Seconds since the index was brought up to date."""
        return time.monotonic() - self._read_at

    def _load(self):
        after = 0
        while True:
            with self.reader() as tx:
                rows = queries.providers(tx, after, _CHUNK)
                if not rows:
                    break
                first, after = rows[0].id, rows[-1].id
                ids = {row.id for row in rows}
                inventories = queries.inventories(tx, first, after)
                memberships = queries.members(tx, first, after)
            self.index.put_providers(rows)
            # The feed has the providers that were created between the statements.
            self.index.put_inventories([row for row in inventories if row[0] in ids])
            self.index.put_aggregates([row for row in memberships if row[1] in ids], ids)
        if self.index.has_duplicates():
            raise IndexStale("a provider was deleted and created again during the build")

    def changes(self) -> Changes:
        """Read the changes since the last read, without applying them.

        :raises StoreUnavailable: if the store cannot be read
        :raises IndexStale: if events are missing, or so many are new that a build takes less time
        """
        with self.reader() as tx:
            if self.age > _LONG_UNREAD and (
                    queries.last_position(tx) - self._position > _MOST_BEHIND):
                raise IndexStale(f"it is more than {_MOST_BEHIND} positions behind")
            last, rows = queries.since(tx, self._position)
            positioned = sum(row.position is not None for row in rows)
            if positioned != last - self._position:
                raise IndexStale(
                    f"{last - self._position} positions were assigned after {self._position}, and "
                    f"{positioned} of their events are in the store")
            new = [row for row in rows if row.id not in self._seen]
            touched = _touched(row.touched for row in new)
            providers, memberships = _read_again(tx, touched.read)
            return Changes(
                last, {row.id for row in rows if row.position is None}, len(new), touched,
                providers, memberships, queries.classes(tx) if touched.classes else None)

    def apply(self, changes: Changes) -> None:
        """Apply what :meth:`changes` read.

        :raises IndexStale: if a change is based on a generation that the index does not have
        """
        if changes.class_ids is not None:
            self.index.class_ids = changes.class_ids
        self._replace(changes.providers, changes.memberships, changes.touched.read)
        self._set_used(changes)
        self._position = changes.position
        self._seen = changes.waiting
        self.applied += changes.events
        self._read_at = time.monotonic()

    def _set_used(self, changes):
        read_again = {row.id for row in changes.providers}
        some_are_gone = len({row.uuid for row in changes.providers}) < len(changes.touched.read)
        for provider_id, before, after, used in changes.touched.used:
            if provider_id in read_again or self.index.set_used(provider_id, before, after, used):
                continue
            if not some_are_gone or self.index.providers.row_of(provider_id) is not None:
                raise IndexStale(f"provider {provider_id} changed from generation {before}, which "
                                 "the index does not have")

    def _replace(self, read, memberships, uuids):
        """Replace providers that were read again, and remove those that are gone."""
        rows, classes = {}, {}
        for row in read:
            rows[row.id] = row[:4]
            classes.setdefault(row.id, set()).add(row[4])
        # Deleted providers, and those created again under the same uuid, which have other ids.
        created = {row[1] for row in rows.values() if self.index.providers.row_of(row[0]) is None}
        deleted = uuids - {row[1] for row in rows.values()}
        gone = self.index.ids_of(created | deleted) - rows.keys()
        if gone:
            self.index.remove(gone)
        if rows:
            self.index.put_providers(list(rows.values()))
            self.index.keep_classes(rows, classes)
            self.index.put_inventories(
                [(row[0], *row[4:]) for row in read if row[4] is not None])
            self.index.put_aggregates(memberships, rows)


@dataclasses.dataclass(slots=True)
class _Touched:
    """What events say that their transactions touched (placement_rpc.accounting.outbox).

    :param read: uuids of providers that have to be read again
    :param used: lists of provider id, generation before and after, and class ids each followed by
        what is used now
    :param classes: whether the resource classes changed
    """

    read: set[str] = dataclasses.field(default_factory=set)
    used: list[list] = dataclasses.field(default_factory=list)
    classes: bool = False


def _touched(texts: Iterable[str | None]) -> _Touched:
    touched = _Touched()
    for text in texts:
        if text is None:
            raise IndexStale("an event does not say what it touched")
        if text:
            values = json.loads(text)
            if "read" in values:
                touched.read.add(values["read"])
            touched.used += values.get("used", ())
            touched.classes |= values.get("classes", False)
    return touched


def _read_again(tx, touched_uuids):
    """Return rows of providers with their inventories, and rows of their memberships."""
    providers, memberships = [], []
    uuids = sorted(touched_uuids)
    for start in range(0, len(uuids), _READ_AGAIN):
        providers += queries.named(tx, uuids[start:start + _READ_AGAIN])
    ids = sorted({row.id for row in providers})
    for start in range(0, len(ids), _READ_AGAIN):
        memberships += queries.members_named(tx, ids[start:start + _READ_AGAIN])
    return providers, memberships
