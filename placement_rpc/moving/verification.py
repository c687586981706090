# SPDX-License-Identifier: Apache-2.0
"""Compare all rows of two stores, also while they are in use.

Each store is read as a snapshot, but the two snapshots are not of the same moment. So the kinds
that differ are compared again, in new snapshots. A difference that is gone by then was none. One
that is new, or whose rows have changed, is *younger*: a store changes while it is looked at. Of
those that stay, :mod:`placement_rpc.moving.younger` tells which the next import brings.

Memory does not depend on the number of rows: differences wait in temporary files.
"""

import collections
import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

from placement_rpc.moving import rows, younger
from placement_rpc.moving.compare import Difference, compare
from placement_rpc.moving.progress import Advance, counted, ignored
from placement_rpc.moving.stores import Report, Store
from placement_rpc.spool import Spool

Opener = Callable[[], AbstractContextManager[Store]]


class Verified(NamedTuple):
    """A difference, and why it is merely younger; None if it is not."""

    difference: Difference
    younger: str | None


class Counts(NamedTuple):
    """How many rows of a kind each store has, and how many differences there are."""

    placement: int
    store: int
    different: int
    younger: int


class Verification:
    """One comparison of Placement's store and this one.

    :param source: opens a snapshot of Placement's store
    :param target: opens a snapshot of this store, as Placement's can hold it
    :param since: the times since which either store was in use without the other
    :param wait: called between the two looks
    """

    def __init__(self, source: Opener, target: Opener, since: younger.Since,
                 wait: Callable[[], None]):
        self._source, self._target = source, target
        self._since, self._wait = since, wait
        self._read: dict[str, collections.Counter] = {
            kind: collections.Counter() for kind in rows.KINDS}

    def run(self, report: Report | None = None,
            advance: Advance = ignored) -> Iterator[Verified]:
        """Compare the stores, and yield their differences in order of kinds and keys.

        :param report: called for each finding of either store
        :param advance: called as rows of Placement's store are read
        """
        with _Spools() as first, _Spools() as second:
            self._look(rows.KINDS, first, report, advance)
            differing = first.kinds()
            if not differing:
                return
            self._wait()
            # The rows of the second look are those that are counted.
            self._look(differing, second)
            with younger.Judge(self._since) as judge:
                for kind in differing:
                    for each in _merged(first.read(kind), second.read(kind), judge):
                        self._read[kind]["younger" if each.younger else "different"] += 1
                        yield each

    @property
    def counts(self) -> dict[str, Counts]:
        """The rows that were read and the differences that were yielded: dict of kind to counts"""
        return {kind: Counts(found["source"], found["target"], found["different"],
                             found["younger"]) for kind, found in self._read.items()}

    def _look(self, kinds, spools, report=None, advance=ignored):
        with self._source() as source, self._target() as target:
            for kind in kinds:
                read = self._read[kind]
                read["source"] = read["target"] = 0
                for each in compare(
                        kind,
                        counted(kind, source.rows(kind, report), read, advance, "source"),
                        counted(kind, target.rows(kind, report), read, name="target")):
                    spools.add(each)


def _merged(first, second, judge):
    """Yield a :class:`Verified` for each difference of the second look."""
    earlier = next(first, None)
    for each in second:
        while earlier is not None and earlier.key < each.key:
            earlier = next(first, None)
        stayed = earlier is not None and earlier.key == each.key and (
            _compared(earlier) == _compared(each))
        yield Verified(each, judge.reason(each) or (
            None if stayed else "changed while it was compared"))


def _compared(difference):
    return tuple(row and row.values for row in (difference.source, difference.target))


class _Spools:
    """Differences in temporary files, one for each kind."""

    def __init__(self):
        self._spools = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self._stack.close()

    def add(self, difference):
        """Append a difference."""
        if difference.kind not in self._spools:
            self._spools[difference.kind] = self._stack.enter_context(Spool())
        self._spools[difference.kind].append(
            tuple(row and tuple(row) for row in (difference.source, difference.target)))

    def kinds(self):
        """Return the kinds that differ, in the order of dependency."""
        return [kind for kind in rows.KINDS if kind in self._spools]

    def read(self, kind):
        """Yield the differences of a kind in the order in which they were added."""
        cls = rows.KINDS[kind]
        for pair in self._spools.get(kind, ()):
            source, target = (each and cls(*each) for each in pair)
            yield Difference(kind, (source or target).key, source, target)
