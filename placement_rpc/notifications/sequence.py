# SPDX-License-Identifier: Apache-2.0
"""What a listener has had: each event once, and whatever is missing noticed."""

import collections
import json
import logging
import os
import pathlib
import tempfile

LOG = logging.getLogger(__name__)

_REMEMBERED = 10_000
# The most gaps that are remembered; what would fill an older one is taken for seen.
_GAPS = 1000


class Sequence:
    """Recognises what comes again, and notices what is left out.

    An event that fills a gap is new, however late it comes: a queue gives back what a dead
    process held behind what came meanwhile, and an operator can have published again what a
    queue had no room for.

    :param state: dict, as of :attr:`state`, of an earlier run; None for a new beginning
    :param on_gap: callable of the position that was expected and the one that came; None for a
        line in the log
    """

    def __init__(self, state=None, on_gap=None):
        state = state or {}
        #: int, the highest position that was handled; None before the first event
        self.position = state.get("position")
        # First and last position of what is missing, in order.
        self._missing = [tuple(gap) for gap in state.get("missing", ())]
        self._on_gap = on_gap or _log_gap
        # The ids of the last events, by position.
        self._seen = collections.OrderedDict()
        self._conflict = False

    @property
    def state(self):
        """dict of JSON values, from which another process goes on"""
        return {"position": self.position, "missing": [list(gap) for gap in self._missing]}

    def is_new(self, event):
        """Whether an event was not handled before.

        :param event: :class:`placement_rpc.notifications.event.Event`
        """
        seen = self._seen.get(event.position)
        if seen is not None:
            self._compare(event, seen)
            return False
        return (self.position is None or event.position > self.position
                or self._gap_of(event.position) is not None)

    def _compare(self, event, seen):
        if seen != event.event_id and not self._conflict:
            self._conflict = True
            LOG.error("Position %d came with two events, %s and %s: was the store restored from "
                      "a backup? Whoever listens has to begin anew", event.position, seen,
                      event.event_id)

    def _gap_of(self, position):
        return next((gap for gap in self._missing if gap[0] <= position <= gap[1]), None)

    def tell_gap(self, event):
        """Tell of what is missing before an event, if anything is."""
        if self.position is not None and event.position > self.position + 1:
            self._on_gap(self.position + 1, event.position)

    def add(self, event):
        """Remember that an event was handled."""
        self._seen[event.position] = event.event_id
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        if self.position is None:
            self.position = event.position
        elif event.position > self.position:
            if event.position > self.position + 1:
                self._missing = [*self._missing[1 - _GAPS:],
                                 (self.position + 1, event.position - 1)]
            self.position = event.position
        else:
            self._fill(event.position)

    def _fill(self, position):
        gap = self._gap_of(position)
        if gap is not None:
            place = self._missing.index(gap)
            self._missing[place:place + 1] = [
                part for part in ((gap[0], position - 1), (position + 1, gap[1]))
                if part[0] <= part[1]]


def _log_gap(expected, found):
    LOG.warning("Events go from position %d to %d: what is between is not here any more",
                expected - 1, found)


class SavedPosition:
    """Where a listener has come to, in a file that a crash leaves whole.

    A program with a database of its own keeps it there instead, in the transaction of what it
    does with the event: anything with :meth:`load` and :meth:`save` will do.

    :param path: str or path
    """

    def __init__(self, path):
        self._path = pathlib.Path(path)

    def load(self):
        """:returns: dict of JSON values, as it was saved; None when nothing was

        :raises ValueError: when something else is in the file
        """
        try:
            state = json.loads(self._path.read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            state = None
        if not isinstance(state, dict) or "position" not in state:
            raise ValueError(f"{self._path} holds no position of a listener")
        return state

    def save(self, state):
        """:param state: dict of JSON values, ``position`` among them"""
        descriptor, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        try:
            with os.fdopen(descriptor, "w") as file:
                json.dump(state, file)
                file.flush()
                os.fsync(file.fileno())
            pathlib.Path(name).replace(self._path)
        except BaseException:
            pathlib.Path(name).unlink(missing_ok=True)
            raise
