# SPDX-License-Identifier: Apache-2.0
"""The sums of a rehearsal: verdicts and latencies by kind of request, and the differences."""

import collections
import math
from typing import Any

from placement_rpc.moving.shadow import Result, Verdict

ALL = "all"
# How many differences are kept with their details; more are counted.
_KEPT = 1000
# Verdicts by which an operator should not move yet.
_BAD = (Verdict.DIFFERENT, Verdict.DATA, Verdict.FORBIDDEN)


class _Kind:
    """The results of one kind of request."""

    def __init__(self) -> None:
        self.verdicts: collections.Counter[Verdict] = collections.Counter()
        self.seconds: tuple[list[float], list[float]] = ([], [])

    def add(self, result: Result) -> None:
        self.verdicts[result.verdict] += 1
        for times, seconds in zip(self.seconds, result.seconds or (), strict=False):
            times.append(seconds)


class ShadowReport:
    """Results, added one by one.

    :ivar differences: list of the first :class:`Result` that have a difference
    :ivar cut: int, answers of both services that a limit cut off
    :ivar unlike_log: int, answers of the old service with another status than in the log
    """

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = collections.defaultdict(_Kind)
        self._all = _Kind()
        self.differences: list[Result] = []
        self.notes: collections.Counter[str] = collections.Counter()
        self.cut = self.unlike_log = 0

    def add(self, result: Result) -> None:
        """Add a result."""
        for kind in (self._kinds[result.request.kind], self._all):
            kind.add(result)
        if result.difference is not None and len(self.differences) < _KEPT:
            self.differences.append(result)
        if result.note:
            self.notes[result.note] += 1
        self.cut += result.is_cut
        self.unlike_log += result.unlike_log

    @property
    def asked(self) -> int:
        """How many requests were compared."""
        return self._all.verdicts.total()

    @property
    def verdicts(self) -> dict[str, int]:
        """Numbers of requests by verdict, those without any included."""
        return {str(each): self._all.verdicts[each] for each in Verdict}

    @property
    def is_good(self) -> bool:
        """Whether no verdict speaks against moving."""
        return not any(self._all.verdicts[each] for each in _BAD)

    @property
    def is_complete(self) -> bool:
        """Whether there were requests, and both services answered each of them."""
        return bool(self.asked) and not self._all.verdicts[Verdict.UNANSWERED]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each kind of request, and one for all of them at the end.

        Latencies are in milliseconds: the median and the 99th percentile of each service.
        """
        return [_row(name, kind) for name, kind in (*sorted(self._kinds.items()),
                                                   (ALL, self._all))]


def _row(name: str, kind: _Kind) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": name, "requests": kind.verdicts.total(),
                           **{str(each): kind.verdicts[each] for each in Verdict}}
    for service, times in zip(("old", "new"), kind.seconds, strict=True):
        ordered = sorted(times)
        for percent in (50, 99):
            row[f"{service}_p{percent}"] = _percentile(ordered, percent)
    old, new = row["old_p50"], row["new_p50"]
    row["times_faster"] = round(old / new, 1) if old and new else None
    return row


def _percentile(ordered: list[float], percent: int) -> float | None:
    """Return the value, in milliseconds, that so many percent of the times do not exceed."""
    if not ordered:
        return None
    return round(1000 * ordered[math.ceil(len(ordered) * percent / 100) - 1], 2)
