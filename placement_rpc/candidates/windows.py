# SPDX-License-Identifier: Apache-2.0
"""Ranges of slots that a search looks at one after the other, each of whole trees.

The trees of a range are numbered from 0. Since a range of slots is a range of rows in every table,
what a search costs follows from the ranges that it needs for its answer, and not from the fleet.
"""

import numpy as np

from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.inventories import Inventories


class Window:
    """The slots from ``first`` up to ``end``, which are those of whole trees.

    ``roots`` are the slots of the roots, array of int by the number of a tree in the window.
    """

    def __init__(self, index: CandidateIndex, first: int, end: int):
        self.first, self.end = first, end
        is_root = index.parent[first:end] < 0
        self.roots = np.flatnonzero(is_root) + first
        self._numbers = np.cumsum(is_root, dtype=np.int32) - np.int32(1)
        self.trees = index.tree[self.roots]

    def __len__(self) -> int:
        """Return the number of trees."""
        return len(self.roots)

    def rows(self, inventories: Inventories) -> slice:
        """Return the rows of a table that are of slots of the window."""
        # Numbers of another type would make NumPy convert the whole column.
        first, end = inventories.slots.searchsorted(
            np.array((self.first, self.end), inventories.slots.dtype))
        return slice(int(first), int(end))

    def numbers_of(self, slots: np.ndarray) -> np.ndarray:
        """Return the numbers, in the window, of the trees of slots of the window."""
        return self._numbers[slots - self.first]


class Windows:
    """The windows of a range of slots, from any of its trees on and once around.

    :param first: the first slot, of a root
    :param end: the slot after the last, of a root too or the end of the index
    :param start: a slot between them, from whose tree on to begin
    """

    def __init__(self, index: CandidateIndex, first: int, end: int, start: int):
        self._index = index
        start = self._border(start, end)
        self._ranges = [each for each in ((start, end), (first, start)) if each[0] < each[1]]

    def take(self, size: int) -> Window | None:
        """Return the next window of about so many slots; None after the last."""
        if not self._ranges:
            return None
        first, end = self._ranges.pop(0)
        cut = self._border(first + max(size, 1), end)
        if cut < end:
            self._ranges.insert(0, (cut, end))
        return Window(self._index, first, cut)

    def _border(self, slot, end):
        """Return the first slot, from this one on, at which a tree begins or none is alive."""
        if slot >= end:
            return end
        tree = self._index.tree[slot]
        root = slot if tree < 0 else int(self._index.root[tree])
        return slot if root == slot else int(self._index.subtree_end[root])
