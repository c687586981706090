# SPDX-License-Identifier: Apache-2.0
"""What projects use, kept in memory for as long as no event changes it.

To sum the allocations of a thousand consumers takes the database ten times as long as to say what
has happened since the last request. So the sums of a project are read once, and dropped when an
event of its allocations is found. An answer includes all that was committed before the request:
the events are read in one statement that begins after the request did, and an event is visible
when its change is. An event is read by its position, which the relay assigns after the commit, or
else as one of those without a position.
"""

import collections
import contextlib
import json
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from placement_rpc.candidates.place import Place
from placement_rpc.db.api import Connection
from placement_rpc.db.queries import usages as queries
from placement_rpc.objects.usage import UNKNOWN_TYPE, ProjectUsages

# Rows of all sums together: about 10 MB.
_MOST_ROWS = 50_000


class _Question(NamedTuple):
    project_id: str
    user_id: str | None
    consumer_type: str | None


class UsageReader:
    """Answers how much projects use.

    :param reader: returns a reading transaction as a context manager
    :param most_rows: the most rows of sums to keep
    :ivar summed: how often sums were read from the store
    """

    def __init__(self, reader: Callable[[], AbstractContextManager[Connection]],
                 most_rows: int = _MOST_ROWS):
        self.summed = 0
        self._reader = reader
        self._sums = _Sums(most_rows)
        # Held while events are read and processed.
        self._reading = threading.Lock()
        # Up to where events are processed; nothing is, before the first read.
        self._place = Place(0, "", None, set())
        # Whether the last read has found all events.
        self._is_current = False
        # Reads of events are numbered; a request needs one that began after the request did.
        self._last_begun = self._last_done = 0

    def of_project(self, project_id: str, user_id: str | None = None,
                   consumer_type: str | None = None) -> ProjectUsages:
        """Return the :class:`ProjectUsages` of a project, or of one of its users, or of one type.

        :param consumer_type: the name of a type, or :data:`UNKNOWN_TYPE`; None for all
        :raises StoreUnavailable: if the store cannot be read
        """
        question = _Question(project_id, user_id, consumer_type)
        self._process_events()
        rows = self._sums.get(question)
        if rows is None:
            rows = self._sum(question)
        return _usages(question, rows)

    def _process_events(self):
        """Drop the sums that changes before this call have made wrong."""
        begun_before = self._last_begun
        with self._reading:
            if self._last_done > begun_before:
                # Another thread began to read events after this call did, and is done.
                return
            with self._reader() as tx:
                self._read_events(tx)

    def _read_events(self, tx):
        """Read the events after those that are processed; the caller holds the lock."""
        self._last_begun += 1
        before, found = self._place, queries.since(tx, self._place.position)
        self._place, events = Place.after(found), before.beyond(found)
        waiting = self._place.waiting
        self._is_current = len(waiting) <= queries.MOST
        positioned = len(events) - len(waiting)
        if not self._is_current or before.is_lost(found) or (
                found.position - before.position != positioned):
            # There are too many, or some are not kept any more, or the store has lost changes.
            self._sums.clear()
        else:
            for each in events:
                if each.payload is not None and each.event_id not in before.waiting:
                    self._process(each)
        self._last_done = self._last_begun

    def _process(self, event):
        try:
            if event.event_type.startswith("allocation."):
                data = json.loads(event.payload)["placement_object.data"]
                self._sums.drop({data["project_id"], data["previous_project_id"]})
                return
        except (ValueError, LookupError, TypeError):
            # Of a release that writes others.
            pass
        # A class has another name, or its name may become that of another; or all was replaced.
        self._sums.clear()

    def _sum(self, question):
        only = None if question.consumer_type is None else (
            None if question.consumer_type == UNKNOWN_TYPE else question.consumer_type,)
        with contextlib.ExitStack() as stack:
            # The lock first, as for every read of events: threads that wait for it with a
            # connection would leave none to the thread that has it.
            with self._reading:
                tx = stack.enter_context(self._reader())
                # Once more, from this connection: if it is one to another server of a cluster, it
                # may not have what the last read found.
                self._read_events(tx)
                begun = self._sums.begin(question) if self._is_current else None
            rows = queries.of_project(tx, question.project_id, question.user_id, only)
            self.summed += 1
        self._sums.put(question, rows, begun)
        return rows


class _Sums:
    """The rows of questions, of which the least recently asked are forgotten first.

    An entry is begun before its rows are read. If the project changes in between, the entry is
    dropped, and what was read is not kept.
    """

    def __init__(self, most_rows):
        self._most_rows = most_rows
        self._mutex = threading.Lock()
        # The rows of a question; a mark of its own while they are read.
        self._entries: collections.OrderedDict[_Question, Any] = collections.OrderedDict()
        self._questions: dict[str, set[_Question]] = {}
        self._rows = 0

    def get(self, question):
        """Return the rows of a question; None if there are none."""
        with self._mutex:
            found = self._entries.get(question)
            if not isinstance(found, list):
                return None
            self._entries.move_to_end(question)
            return found

    def begin(self, question):
        """Begin an entry; return the mark that :meth:`put` has to be given."""
        mark = object()
        with self._mutex:
            self._remove(question)
            self._entries[question] = mark
            self._questions.setdefault(question.project_id, set()).add(question)
            self._rows += 1
        return mark

    def put(self, question, rows, mark):
        """Keep the rows of a question, if nothing has changed since :meth:`begin`."""
        with self._mutex:
            if mark is None or self._entries.get(question) is not mark:
                return
            self._entries[question] = rows
            self._rows += len(rows)
            while self._rows > self._most_rows:
                self._remove(next(iter(self._entries)))

    def drop(self, projects):
        """Drop the entries of projects."""
        with self._mutex:
            for project in projects:
                for question in list(self._questions.get(project, ())):
                    self._remove(question)

    def clear(self):
        """Drop all entries."""
        with self._mutex:
            self._entries.clear()
            self._questions.clear()
            self._rows = 0

    def _remove(self, question):
        found = self._entries.pop(question, None)
        if found is None:
            return
        self._rows -= 1 + (len(found) if isinstance(found, list) else 0)
        same = self._questions[question.project_id]
        same.discard(question)
        if not same:
            del self._questions[question.project_id]


def _usages(question, rows):
    by_type: dict[str, dict[str, Any]] = {}
    usages: dict[str, int] = {}
    for name, resource_class, amount in rows:
        of_type = by_type.setdefault(
            name or UNKNOWN_TYPE, {"consumers": 0, "usages": {}})
        if resource_class is None:
            of_type["consumers"] = amount
        else:
            of_type["usages"][resource_class] = amount
            usages[resource_class] = usages.get(resource_class, 0) + amount
    return ProjectUsages(**question._asdict(), usages=usages, by_type=by_type)
