# SPDX-License-Identifier: Apache-2.0
"""What providers could give to a request, as arrays that are independent of the index.

A request has *columns*: one for each resource class of the group without a suffix, and one for
each other group. Groups that ask for exactly the same share a column. For each column a
:class:`Supply` lists pairs of a tree and a provider that can serve the column for requests in that
tree: the *anchor* and the *slot*. A provider that shares its resources has several anchors.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

#: What a group without resources has of everything.
UNLIMITED = 2 ** 40
# The greatest whole number up to which a float is exact.
_EXACT = 2 ** 53
_LARGEST = 2 ** 62


@dataclasses.dataclass(frozen=True, slots=True)
class Supply:
    """One column of a request, and the pairs that can serve it, in the order of their anchors.

    A provider without room is listed too, with 0 units. A provider that breaks another rule of the
    column is not.

    :param suffixes: the groups of the column: one, or several that ask for the same
    :param amounts: class name to the amount that one group takes
    :param pairs: an array for each of:

        * ``anchors``, int32, ascending: numbers of trees
        * ``slots``, int32
        * ``units``, int64: how many groups the provider can serve, if it serves no other column
        * ``most``, int64: how many groups of one request it can serve
        * ``shared``, bool: whether the provider has other anchors too
        * ``own``, bool: whether the anchor is the provider's own tree
        * ``ends``, ``traits`` and ``aggregates``, int32: the end of the provider's subtree, and
          the numbers of its sets of traits and aggregates
    :param units_of: class name to an array as ``units``, by this class alone
    :param free: class name to an array of int64: what the provider has left
    :param max_units: class name to an array of int64: the most that one request may take of it
    """

    suffixes: Sequence[str]
    amounts: Mapping[str, int]
    pairs: Mapping[str, np.ndarray]
    units_of: Mapping[str, np.ndarray]
    free: Mapping[str, np.ndarray]
    max_units: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.anchors)

    @property
    def anchors(self) -> np.ndarray:
        """The tree of each pair."""
        return self.pairs["anchors"]

    @property
    def slots(self) -> np.ndarray:
        """The provider of each pair."""
        return self.pairs["slots"]

    @property
    def keys(self) -> np.ndarray:
        """A number for each pair, of int64: the tree in the upper half, the provider below it."""
        return self.anchors.astype(np.int64) << 32 | self.slots

    @property
    def units(self) -> np.ndarray:
        """How many groups the provider of each pair can serve."""
        return self.pairs["units"]

    @property
    def is_unsuffixed(self) -> bool:
        """Whether it is a column of the group without a suffix."""
        return self.suffixes[0] == ""

    def only(self, which: np.ndarray) -> "Supply":
        """Return the supply with some of its pairs.

        :param which: array of bool, or of ascending positions
        """
        def some(arrays):
            return {name: array[which] for name, array in arrays.items()}

        return dataclasses.replace(
            self, pairs=some(self.pairs), units_of=some(self.units_of), free=some(self.free),
            max_units=some(self.max_units))

    def per_tree(self, trees: int) -> np.ndarray:
        """Return how many requests each tree can serve by this column alone.

        :param trees: the number of trees
        """
        groups = len(self.suffixes)
        if groups == 1:
            return sums(self.anchors, self.units, trees)
        return _of_several(self.anchors, self.units, self.pairs["most"], groups, trees)


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    """A trait, or one of several, that at least one of the chosen providers has.

    :param meets: array of bool by the number of a trait set: whether it has such a trait
    :param is_of_all: whether the provider of any column counts, not only one of the group without
        a suffix
    """

    meets: np.ndarray
    is_of_all: bool = False

    def concerns(self, column: Supply) -> bool:
        """Return whether a provider of a column counts."""
        return self.is_of_all or column.is_unsuffixed

    def met(self, column: Supply) -> np.ndarray:
        """Return an array of bool: whether the provider of each pair has such a trait."""
        return self.meets[column.pairs["traits"]]


@dataclasses.dataclass(frozen=True, slots=True)
class HeadroomRules:
    """What a request asks for besides what each column needs by itself.

    :param required: conditions that the chosen providers meet together
    :param is_isolated: whether no two groups with a suffix may have the same provider
    :param same_subtree: lists of suffixes: the provider of one of these groups is an ancestor of
        all other providers of them, or is each of them
    """

    required: Sequence[Condition] = ()
    is_isolated: bool = False
    same_subtree: Sequence[Sequence[str]] = ()


def sums(keys: np.ndarray, amounts: np.ndarray, size: int) -> np.ndarray:
    """Return an array of int64 of the sum of the amounts of each key.

    An amount so large that the sum of all could exceed 2**62 counts as less.

    :param keys: array of ints below the size
    """
    if not len(keys):
        return np.zeros(size, np.int64)
    if np.all(keys[1:] > keys[:-1]):
        found = np.zeros(size, np.int64)
        found[keys] = amounts
        return found
    if int(amounts.max()) <= _EXACT // len(keys):
        return np.bincount(keys, amounts, size).astype(np.int64)
    found = np.zeros(size, np.int64)
    np.add.at(found, keys, np.minimum(amounts, _LARGEST // len(keys)))
    return found


def has_any(keys: np.ndarray, size: int) -> np.ndarray:
    """Return an array of bool: whether each number below the size is among the keys."""
    found = np.zeros(size, bool)
    found[keys] = True
    return found


def total(amounts: np.ndarray) -> int:
    """Return the sum of an array of int64, however large."""
    if not len(amounts) or int(amounts.max()) <= _LARGEST // len(amounts):
        return int(amounts.sum())
    return sum(amounts.tolist())


def _of_several(anchors, units, most, groups, trees):
    """Return how many requests fit, of each of which several equal groups take one unit each.

    A number n of requests fits if the providers have ``groups * n`` units, of which each
    provider gives ``most`` to each request. What fits is an interval from 0 on, so the largest
    is found by halving.
    """
    present = np.unique(anchors)
    at = present.searchsorted(anchors)
    low = np.zeros(len(present), np.int64)
    # At most as many as there are units.
    high = sums(at, units, len(present)) // groups
    while np.any(low < high):
        middle = (low + high + 1) // 2
        enough = np.minimum(most, _LARGEST // np.maximum(middle, 1)[at]) * middle[at]
        fits = sums(at, np.minimum(units, enough), len(present)) // groups >= middle
        low = np.where(fits, middle, low)
        high = np.where(fits, high, middle - 1)
    found = np.zeros(trees, np.int64)
    found[present] = low
    return found
