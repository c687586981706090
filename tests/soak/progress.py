# SPDX-License-Identifier: Apache-2.0
"""What clients have done so far, read from their histories while they grow."""

import bisect
import pathlib
import re

# An accepted change, as tests.soak.history writes it.
_ACCEPTED = re.compile(
    rb'\{"kind":"(?!read")[a-z]+","outcome":"accepted","start":([0-9.]+),"end":([0-9.]+)')


class Progress:
    """The times of accepted changes.

    :param paths: of the histories, which need not be there yet
    """

    def __init__(self, paths):
        self._paths = [pathlib.Path(path) for path in paths]
        self._read = dict.fromkeys(self._paths, 0)
        # Times of the ends and how long each took; sorted when they are asked for.
        self._changes, self._sorted = [], True

    @property
    def accepted(self):
        """How many changes are accepted until now"""
        for path in self._paths:
            if not path.exists():
                continue
            with path.open("rb") as file:
                file.seek(self._read[path])
                # A last line without its end is read with the next ones.
                lines, _, _ = file.read().rpartition(b"\n")
            if lines:
                self._read[path] += len(lines) + 1
                self._changes += [(float(end), float(end) - float(start))
                                  for start, end in _ACCEPTED.findall(lines)]
                self._sorted = False
        return len(self._changes)

    def _between(self, start, end):
        """Return the indexes of the first change from a time on and of the first after another."""
        if self.accepted and not self._sorted:
            self._changes.sort()
            self._sorted = True
        return (bisect.bisect_left(self._changes, (start,)),
                bisect.bisect_right(self._changes, (end, float("inf"))))

    def gap(self, start, end):
        """Return the longest time without an accepted change in seconds, between two times."""
        first, last = self._between(start, end)
        times = [when for when, _ in self._changes[max(0, first - 1):last]]
        if first == 0:
            times.insert(0, start)
        return max((later - max(earlier, start) for earlier, later in zip(
            times, [*times[1:], end], strict=True)), default=end - start)

    def latencies(self, start, end):
        """Return the seconds that each change took that was accepted between two times."""
        first, last = self._between(start, end)
        return [took for _, took in self._changes[first:last]]
