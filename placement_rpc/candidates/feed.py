# SPDX-License-Identifier: Apache-2.0
"""Build a candidate index from the store, and bring it up to date from the events.

An index is never older than the call that reads it: the feed is read in one statement that begins
after the call did. A transaction that commits later than an event with a higher id is not missed:
an event is read by its position, which the relay assigns after the commit, or else as an event
without a position. Any inconsistency makes the index stale, and a stale index is dropped.
"""

import dataclasses
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple

from placement_rpc import json_text
from placement_rpc.candidates import changes as index_changes
from placement_rpc.candidates import loading
from placement_rpc.candidates.place import Place
from placement_rpc.candidates.trees import BrokenTree
from placement_rpc.db.queries import candidate_feed as queries

# Providers that one statement reads again.
_READ_AGAIN = 500
# After so many seconds without a read, the distance to the end of the feed is checked first.
_LONG_UNREAD = 30
_MOST_BEHIND = 50_000


class IndexStale(Exception):
    """The index cannot be brought up to date and has to be built again."""


class ProviderRows(NamedTuple):
    """Providers as they were read, with all that belongs to them.

    :param providers: rows, see :func:`placement_rpc.db.queries.candidate_feed.providers`
    :param inventories: rows, see :func:`placement_rpc.db.queries.candidate_feed.inventories`
    :param traits: dict of provider id to the names of its traits
    :param aggregates: dict of provider id to the uuids of its aggregates
    """

    providers: list
    inventories: list
    traits: dict[int, set[str]]
    aggregates: dict[int, set[str]]


class Changes(NamedTuple):
    """Changes that were read from the feed and are not applied yet.

    :param place: where in the feed they end
    :param events: the number of new events
    :param touched: the changes that the new events name
    :param read: the providers that had to be read again
    :param class_ids: dict of class name to id; None if no class changed
    :param traits: set of the names of all traits; None if no trait was created or deleted
    """

    place: Place
    events: int
    touched: "_Touched"
    read: ProviderRows
    class_ids: dict[str, int] | None
    traits: set[str] | None


class FollowedIndex:
    """An index and its place in the feed of events.

    ``index`` is the :class:`placement_rpc.candidates.index.CandidateIndex`; ``applied`` counts the
    events that were applied to it.

    :param reader: returns a reading transaction as a context manager; with ``snapshot=True`` one
        in which all statements see the same state
    :raises StoreUnavailable: if the store cannot be read
    :raises IndexStale: if the parents of the providers are not those of trees
    """

    def __init__(self, reader: Callable[..., AbstractContextManager]):
        self.reader = reader
        self.applied = 0
        self._read_at = time.monotonic()
        try:
            with reader(snapshot=True) as tx:
                found = queries.since(tx, queries.last_position(tx))
                self._place = Place.after(found)
                loader = loading.Loader(tx)
            self.index = loader.index()
            self.index.position = found.position
        except (BrokenTree, loading.CutText) as error:
            raise IndexStale(str(error)) from error

    @property
    def age(self) -> float:
        """Seconds since the index was brought up to date."""
        return time.monotonic() - self._read_at

    def changes(self) -> Changes:
        """Read the changes since the last read, without applying them.

        :raises StoreUnavailable: if the store cannot be read
        :raises IndexStale: if events are missing, or so many are new that a build takes less time
        """
        with self.reader() as tx:
            if self.age > _LONG_UNREAD and (
                    queries.last_position(tx) - self.index.position > _MOST_BEHIND):
                raise IndexStale(f"it is more than {_MOST_BEHIND} positions behind")
            changes = self._changes(tx)
            if not changes.touched.reads:
                return changes
        # All rows have to be of one moment, or a parent might not be there yet.
        with self.reader(snapshot=True) as tx:
            changes = self._changes(tx)
            touched = changes.touched
            return changes._replace(
                read=_read_again(tx, touched.read),
                class_ids=queries.classes(tx) if touched.classes else None,
                traits=set(queries.traits(tx).values()) if touched.traits else None)

    def _changes(self, tx):
        before, found = self._place.position, queries.since(tx, self._place.position)
        events = self._place.beyond(found)
        positioned, last = sum(each.position is not None for each in events), found.position
        if positioned != last - before:
            raise IndexStale(
                f"{last - before} positions were assigned after {before}, and {positioned} of "
                "their events are in the store")
        if self._place.is_lost(found):
            raise IndexStale("the store has lost changes that it had before")
        new = [each for each in events if each.event_id not in self._place.waiting]
        return Changes(Place.after(found), len(new), _touched(each.touched for each in new),
                       _NOTHING, None, None)

    def apply(self, changes: Changes) -> None:
        """Apply what :meth:`changes` read.

        :raises IndexStale: if a change is based on a generation that the index does not have, or
            if the parents of the providers are not those of trees
        """
        if changes.class_ids is not None:
            self.index.class_ids = changes.class_ids
        if changes.traits is not None:
            self.index.traits = changes.traits
        if changes.touched.read:
            self._replace(changes.read, changes.touched.read)
        self._set_used(changes)
        self._place, self.index.position = changes.place, changes.place.position
        self.applied += changes.events
        self._read_at = time.monotonic()

    def _set_used(self, changes):
        read_again = {row.id for row in changes.read.providers}
        some_are_gone = len(read_again) < len(changes.touched.read)
        for provider_id, before, _after, _used in index_changes.set_used(self.index, [
                row for row in changes.touched.used if row[0] not in read_again]):
            if not some_are_gone or self.index.slot_of(provider_id) is not None:
                raise IndexStale(f"provider {provider_id} changed from generation {before}, which "
                                 "the index does not have")

    def _replace(self, rows, uuids):
        """Replace providers that were read again, and remove those that are gone."""
        ids = {row.id for row in rows.providers}
        # Deleted providers, and those created again under the same uuid, which have other ids.
        slots = list(self.index.slots_of_uuids(uuids).values())
        _put(self.index, rows, set(self.index.id[slots].tolist()) - ids)
        for names in rows.traits.values():
            # A conductor of another release adds the standard traits that it knows.
            self.index.traits |= names


@dataclasses.dataclass(slots=True)
class _Touched:
    """What events say that their transactions touched (placement_rpc.accounting.outbox).

    :param read: uuids of providers that have to be read again
    :param used: lists of provider id, generation before and after, and class ids each followed by
        what is used now
    :param classes: whether the resource classes changed
    :param traits: whether a trait was created or deleted
    """

    read: set[str] = dataclasses.field(default_factory=set)
    used: list[list] = dataclasses.field(default_factory=list)
    classes: bool = False
    traits: bool = False

    @property
    def reads(self) -> bool:
        """Whether anything has to be read again."""
        return bool(self.read) or self.classes or self.traits


def _touched(texts: Iterable[str | None]) -> _Touched:
    touched = _Touched()
    for text in texts:
        if text is None:
            raise IndexStale("an event does not say what it touched, or touched everything")
        if text:
            values = json_text.loads(text)
            if "read" in values:
                touched.read.add(values["read"])
            touched.used += values.get("used", ())
            touched.classes |= values.get("classes", False)
            touched.traits |= values.get("traits", False)
    return touched


_NOTHING = ProviderRows([], [], {}, {})


def _read_again(tx, touched_uuids):
    """Return the rows of providers, with all that belongs to them."""
    providers, inventories, traits, aggregates = [], [], [], []
    uuids = sorted(touched_uuids)
    for start in range(0, len(uuids), _READ_AGAIN):
        some = queries.named(tx, uuids[start:start + _READ_AGAIN])
        ids = [row.id for row in some]
        if ids:
            providers += some
            inventories += queries.inventories_of(tx, ids)
            traits += queries.trait_links_of(tx, ids)
            aggregates += queries.members_of(tx, ids)
    return ProviderRows(providers, inventories, _by_provider(traits), _by_provider(aggregates))


def _by_provider(rows):
    """Return a dict of provider id to a set of names, of rows of both."""
    found = {}
    for provider_id, name in rows:
        found.setdefault(provider_id, set()).add(name)
    return found


def _put(index, rows, removed):
    """Put rows into an index.

    :raises IndexStale: if the parents of the providers are not those of trees
    """
    try:
        index_changes.put(index, rows.providers, rows.inventories, rows.traits, rows.aggregates,
                          removed)
    except BrokenTree as error:
        raise IndexStale(str(error)) from error
