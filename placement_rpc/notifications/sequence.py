# SPDX-License-Identifier: Apache-2.0
"""The events that a listener has handled: recognise duplicates, and detect gaps."""

import collections
import json
import logging
import os
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

from placement_rpc.notifications.event import Event

LOG = logging.getLogger(__name__)

_REMEMBERED = 10_000
# The most gaps that are remembered; an event that fills an older one counts as seen.
_GAPS = 1000


class Sequence:
    """Recognises duplicates of events, and detects gaps in their positions.

    An event that fills a gap is new, however late it arrives: a queue returns the events that a
    killed process held behind those that arrived meanwhile, and an operator can publish again the
    events that a queue had no room for.

    Positions belong to an epoch. A new epoch begins when the store was restored from a backup, or
    has lost its last changes. Usually its positions continue after those that were published, and
    gaps stay open. If the epoch was begun by hand, positions are given a second time: every event
    from the first one of the new epoch on is then new. Events of an earlier epoch that arrive
    later are new each time; their ids identify them.

    :param state: as of :attr:`state`, of an earlier run; None to start without one
    :param on_gap: callable of the position that was expected and the one that came; None for a
        line in the log
    """

    def __init__(self, state: dict[str, Any] | None = None,
                 on_gap: Callable[[int, int], object] | None = None) -> None:
        state = state or {}
        #: The highest position that was handled; None before the first event.
        self.position: int | None = state.get("position")
        #: The epoch of that position; None if it is not known.
        self.epoch: str | None = state.get("epoch")
        self._ended_epochs = set(state.get("ended_epochs", ()))
        # The first and the last position of each gap, in order.
        self._missing = [tuple(gap) for gap in state.get("missing", ())]
        self._on_gap = on_gap or _log_gap
        # The ids of the last events, by position.
        self._seen = collections.OrderedDict()
        self._conflict = False

    @property
    def state(self) -> dict[str, Any]:
        """JSON values from which another process can continue"""
        return {"position": self.position, "missing": [list(gap) for gap in self._missing],
                "epoch": self.epoch, "ended_epochs": sorted(self._ended_epochs)}

    def is_new(self, event: Event) -> bool:
        """Return whether an event has not been handled yet."""
        if event.epoch in self._ended_epochs:
            return True
        if event.epoch is not None and self.epoch not in (None, event.epoch):
            self._restart(event)
        seen = self._seen.get(event.position)
        if seen is not None:
            self._compare(event, seen)
            return False
        return (self.position is None or event.position > self.position
                or self._gap_of(event.position) is not None)

    def _restart(self, event):
        LOG.warning("Positions continue with %d in the epoch %s: the store was restored from a "
                    "backup, or has lost its last changes. Changes of the epoch %s up to position "
                    "%s may have been undone: see the event outbox.reconciled",
                    event.position, event.epoch, self.epoch, self.position)
        self._ended_epochs.add(self.epoch)
        self.epoch = event.epoch
        if self.position is not None and event.position <= self.position:
            # The earlier positions mean the same events as before.
            self.position = event.position - 1
            self._missing = [(first, min(last, self.position)) for first, last in self._missing
                             if first <= self.position]
        self._seen.clear()

    def _compare(self, event, seen):
        if seen != event.event_id and not self._conflict:
            self._conflict = True
            LOG.error("Position %d came with two events, %s and %s: was the store restored from "
                      "a backup? Its listeners have to start again", event.position, seen,
                      event.event_id)

    def _gap_of(self, position):
        return next((gap for gap in self._missing if gap[0] <= position <= gap[1]), None)

    def report_gap(self, event: Event) -> None:
        """Report the gap before an event, if there is one."""
        if event.epoch in self._ended_epochs or self.position is None:
            return
        if event.position > self.position + 1:
            self._on_gap(self.position + 1, event.position)

    def report_unreadable(self) -> None:
        """Report a message that cannot be read, and may have been the next event."""
        if self.position is not None:
            self._on_gap(self.position + 1, self.position + 1)

    def add(self, event: Event) -> None:
        """Record that an event was handled."""
        if event.epoch in self._ended_epochs:
            return
        self.epoch = event.epoch or self.epoch
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
    if expected == found:
        LOG.warning("The event at position %d may be missing: a message cannot be read", expected)
        return
    LOG.warning("The events between positions %d and %d are missing",
                expected - 1, found)


class SavedPosition:
    """The position of a listener, in a file that is replaced atomically.

    A program with a database of its own saves the position there instead, in the transaction that
    handles the event: any object with :meth:`load` and :meth:`save` can be used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = pathlib.Path(path)

    def load(self) -> dict[str, Any] | None:
        """Return the JSON values that were saved; None if there is no file.

        :raises ValueError: if something else is in the file
        :raises OSError: if it cannot be read, or if nothing can be written to its directory, so
            that no event is handled whose position could not be saved
        """
        with tempfile.TemporaryFile(dir=self._path.parent):
            pass
        try:
            state = json.loads(self._path.read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            state = None
        if not _is_state(state):
            raise ValueError(f"{self._path} holds no position of a listener")
        return state

    def save(self, state: dict[str, Any]) -> None:
        """Replace the file.

        :param state: JSON values, ``position`` among them
        """
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


def _is_state(values):
    """Return whether JSON values are those of a listener that was saved."""
    return (isinstance(values, dict) and "position" in values
            and isinstance(values["position"], int | None)
            and isinstance(values.get("epoch"), str | None)
            and isinstance(values.get("trying", {}), dict)
            and _is_list(values.get("ended_epochs", []), lambda each: isinstance(each, str))
            and _is_list(values.get("missing", []), lambda gap: _is_list(
                gap, lambda each: isinstance(each, int)) and len(gap) == 2))


def _is_list(values, is_item):
    return isinstance(values, list) and all(map(is_item, values))
