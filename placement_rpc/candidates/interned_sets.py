# SPDX-License-Identifier: Apache-2.0
"""Sets of names that many providers share, stored once and referred to by number."""

import sys
from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from placement_rpc.candidates import capacity as rule

#: The number of the set of a slot without a provider, which meets no condition.
DEAD = 0
#: The number of the empty set.
EMPTY = 1


class InternedSets:
    """Sets of names by their numbers: ``sets[number]`` is a frozenset.

    A condition is checked once for each set, and then looked up by the number of each provider.
    """

    def __init__(self) -> None:
        #: The number of sets that were added since the last :meth:`keep`, or since the first.
        self.added = 0
        self._sets: list[frozenset[str]] = [frozenset(), frozenset()]
        self._numbers = {frozenset[str](): EMPTY}
        # Name to the ascending numbers of the sets that have it.
        self._having: dict[str, array] = {}
        self._nbytes = 0

    def __len__(self) -> int:
        return len(self._sets)

    def __getitem__(self, number: int) -> frozenset[str]:
        return self._sets[number]

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the sets, of their names and of what finds them."""
        return (self._nbytes + sys.getsizeof(self._sets) + sys.getsizeof(self._numbers)
                + sys.getsizeof(self._having)
                + sum(map(sys.getsizeof, self._having.values())))

    def number_of(self, names: Iterable[str]) -> int:
        """Return the number of a set; a set that is not known yet gets the next one."""
        names = frozenset(names)
        number = self._numbers.get(names)
        if number is None:
            names = frozenset(map(sys.intern, names))
            number = self._numbers[names] = len(self._sets)
            self._sets.append(names)
            self.added += 1
            self._nbytes += sys.getsizeof(names)
            for name in names:
                if name not in self._having:
                    self._having[name] = array("i")
                    self._nbytes += sys.getsizeof(name)
                self._having[name].append(number)
        return number

    def keep(self, numbers: np.ndarray) -> np.ndarray:
        """Forget all sets but these, the dead and the empty one.

        :param numbers: ascending
        :returns: array of int32: the new number of each
        """
        before = self._sets
        self.__init__()  # type: ignore[misc]
        found = np.full(len(before), DEAD, np.int32)
        found[EMPTY] = EMPTY
        for number in numbers[numbers > EMPTY].tolist():
            found[number] = self.number_of(before[number])
        self.added = 0
        return found

    def having_any(self, names: Iterable[str]) -> np.ndarray:
        """Return an array of bool by set number: whether a set has at least one of the names."""
        found = np.zeros(len(self._sets), bool)
        for name in names:
            if name in self._having:
                found[np.frombuffer(self._having[name], np.intc)] = True
        return found

    def meeting(self, any_of: Sequence[Sequence[str]] = (),
                none_of: Sequence[str] = ()) -> np.ndarray:
        """Return an array of bool by set number: whether a set meets a condition.

        :param any_of: lists of names: the set has at least one of each list
        :param none_of: names of which the set has none
        """
        found = np.asarray(rule.is_member(self.having_any, any_of, none_of))
        found[DEAD] = False
        return found
