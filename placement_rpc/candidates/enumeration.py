# SPDX-License-Identifier: Apache-2.0
"""Enumerate candidates of many trees at once, each tree depth first.

A *partial* candidate has a provider for the first parts of a request. All partial candidates of a
level, of whatever trees, are extended by the providers of the next part in a few operations on
arrays; those that break a rule are dropped. Only as many of a tree are taken further as it is to
give candidates. The others wait until the tree has nothing deeper to go on with, so that neither
the time nor the memory depends on how many candidates there are.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from placement_rpc.candidates.choices import Batch
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.problem import Problem

# How many partial candidates are made at once, at the most, and how many of them are extended.
_MAX_MADE = 1 << 18
_MAX_TAKEN = 1 << 16
# How many providers a partial candidate is extended by at once, at the least, if they are few.
_SPAN, _FEW = 16, 4096
# Which part of what is left of the budget one enumeration may spend before the next has its turn,
# and which part of all is so little that the search ends.
_TURN, _REST = 4, 32


class Budget:
    """The work that all enumerations of a search may do together, so that none takes for ever.

    Each has a turn, which ends before all is spent: a tree that takes long must not hide others.

    ``is_exceeded`` is whether a turn was too short, so that candidates may have been left out.

    :param work: in units of about 4 ns of processor time
    """

    def __init__(self, work: int):
        self._left, self._least = work, work // _REST
        self._turn = 0
        self.is_exceeded = False

    @property
    def is_spent(self) -> bool:
        """Whether no further turn may begin."""
        return self._left < self._least

    def begin_turn(self) -> None:
        self._turn = self._left // _TURN

    def spend(self, work: int) -> bool:
        """Note some work; return whether the turn goes on."""
        self._left -= work
        self._turn -= work
        self.is_exceeded = self.is_exceeded or self._turn < 0
        return self._turn >= 0


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Partial:
    """Partial candidates of one level, in the order of their trees.

    :param trees: the tree of each, by its number in the batch
    :param entries: for each part up to the level the entry in its choices
    :param following: the next entry to extend each by
    """

    trees: np.ndarray
    entries: Sequence[np.ndarray]
    following: np.ndarray

    def of(self, rows: np.ndarray) -> "_Partial":
        """Return some of them.

        :param rows: array of bool
        """
        return _Partial(self.trees[rows], [each[rows] for each in self.entries],
                        self.following[rows])


class Enumeration:
    """The candidates of the trees of a batch.

    :param budget: what may be spent; the enumeration stops when its turn is over
    """

    def __init__(self, index: CandidateIndex, problem: Problem, batch: Batch, budget: Budget):
        self._index, self._problem, self._budget = index, problem, budget
        self._choices = batch.choices
        self._given = np.zeros(len(batch), np.int64)
        self._rest = problem.rest(index, batch.choices, len(batch))
        self._tops = problem.tops(batch.choices)
        trees = np.arange(len(batch))
        self._waiting: list[_Partial | None] = [None] * (len(self._choices) + 1)
        self._waiting[0] = _Partial(trees, [], self._starts(0, trees, []))

    @property
    def is_done(self) -> bool:
        """Whether all candidates were returned."""
        return all(each is None for each in self._waiting)

    @property
    def unfinished(self) -> int:
        """How many trees may have more candidates."""
        return int(np.count_nonzero(self._depths() >= 0))

    def run(self, quota: int) -> tuple[np.ndarray, np.ndarray]:
        """Return further candidates.

        :param quota: how many candidates a tree gives, with those it gave before
        :returns: the number of the tree of each, and the slots of the providers, candidates x
            parts
        """
        found: list[_Partial] = []
        dry = 0
        self._budget.begin_turn()
        while self._budget.spend(0):
            depths = np.where(self._given < quota, self._depths(), -1)
            active = int(np.count_nonzero(depths >= 0))
            if not active:
                break
            # The longer nothing is found, the more is tried at once.
            missing = quota - int(self._given[depths >= 0].min())
            width = min(max(missing, 1 << min(dry, 16)), max(_MAX_TAKEN // active, 1))
            count = len(found)
            self._sweep(depths, width, quota, found)
            dry = 0 if len(found) > count else dry + 1
        return self._slots(found)

    def _sweep(self, depths, width, quota, found):
        """Extend, for each tree, what is deepest of it, and that again down to candidates.

        :param depths: array by tree: the level at which to begin; -1 not to
        """
        moving = None
        for level in range(int(depths[depths >= 0].min()), len(self._choices) + 1):
            moving = _merged(moving, self._take(level, depths == level))
            if moving is None:
                continue
            last = level == len(self._choices)
            allowed = (np.minimum(quota - self._given, width) if last
                       else np.full(len(depths), width))
            chosen = ranks_in_runs(moving.trees) < allowed[moving.trees]
            self._keep(level, moving.of(~chosen))
            moving = moving.of(chosen)
            if last:
                found.append(moving)
                self._given += np.bincount(moving.trees, minlength=len(self._given))
            elif len(moving.trees):
                moving = self._extend(level, moving, width)

    def _take(self, level, trees):
        """Remove and return what waits at a level for some trees."""
        waiting = self._waiting[level]
        if waiting is None:
            return None
        taken = trees[waiting.trees]
        self._waiting[level] = None if taken.all() else waiting.of(~taken)
        return waiting.of(taken) if taken.any() else None

    def _keep(self, level, partial):
        if len(partial.trees):
            # In front of what waits: what was begun last is finished first.
            self._waiting[level] = _merged(partial, self._waiting[level])

    def _depths(self):
        """Return for each tree the deepest level at which something waits; -1 for none."""
        depths = np.full(len(self._given), -1)
        for level, waiting in enumerate(self._waiting):
            if waiting is not None:
                depths[waiting.trees] = level
        return depths

    def _extend(self, level, partial, width):
        """Return partial candidates of the next level; what is left to try waits."""
        ends = self._choices[level].ends[partial.trees] - self._problem.reserved[level]
        left = np.maximum(ends - partial.following, 0)
        tried = np.minimum(left, self._span(partial, width))
        self._keep(level, dataclasses.replace(
            partial, following=partial.following + tried).of(left > tried))
        rows = np.repeat(np.arange(len(tried)), tried)
        self._budget.spend(len(rows) * self._problem.work[level])
        if not len(rows):
            return None
        before = np.cumsum(tried) - tried
        new = np.arange(len(rows)) + (partial.following - before)[rows]
        kept = self._problem.obeys(
            self._index, level, self._choices, partial.entries, rows, new,
            [rest[level][partial.trees] for rest in self._rest], self._tops)
        if kept is not None:
            rows, new = rows[kept], new[kept]
        entries = [each[rows] for each in partial.entries] + [new]
        trees = partial.trees[rows]
        if not len(trees):
            return None
        return _Partial(trees, entries, self._starts(level + 1, trees, entries))

    def _span(self, partial, width):
        """Return by how many providers to extend each of some partial candidates.

        That is enough for as many as are taken further, if half of them obey the rules.
        """
        count = len(partial.trees)
        trees = 1 + int(np.count_nonzero(partial.trees[1:] != partial.trees[:-1]))
        return max(min(max(2 * width * trees // count, min(_SPAN, _FEW // count)),
                       _MAX_MADE // count), 2)

    def _starts(self, level, trees, entries):
        """Return the entries by which to extend partial candidates first.

        Of equal parts each takes the same provider as the one before or a later one: the other
        orders are found by :mod:`placement_rpc.candidates.arrangements`.
        """
        if level == len(self._choices):
            return np.zeros(len(trees), np.int64)
        if not self._problem.repeats[level]:
            return self._choices[level].starts[trees]
        return entries[-1] + self._problem.is_apart

    def _slots(self, found):
        if not found:
            return np.empty(0, np.int64), np.empty((0, len(self._choices)), np.int32)
        trees = np.concatenate([each.trees for each in found])
        slots = [choices.slots[np.concatenate([each.entries[part] for each in found])]
                 for part, choices in enumerate(self._choices)]
        return trees, np.stack(slots, axis=1)


def _merged(one, other):
    """Return partial candidates of one level together, in the order of the trees."""
    if one is None or other is None:
        return one if other is None else other
    trees = np.concatenate((one.trees, other.trees))
    order = np.argsort(trees, kind="stable")
    return _Partial(trees[order], [np.concatenate(both)[order] for both in zip(
        one.entries, other.entries, strict=True)],
        np.concatenate((one.following, other.following))[order])


def ranks_in_runs(trees: np.ndarray) -> np.ndarray:
    """Return how many before each have the same tree, for trees in ascending order."""
    firsts = np.flatnonzero(np.concatenate((np.ones(len(trees[:1]), bool),
                                            trees[1:] != trees[:-1])))
    return np.arange(len(trees)) - np.repeat(firsts, np.diff(np.append(firsts, len(trees))))
