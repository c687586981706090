# SPDX-License-Identifier: Apache-2.0
"""The progress of moving a store: how many rows were read, and what was done with others."""

import collections
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from placement_rpc.moving.rows import KINDS

_Row = TypeVar("_Row")
#: Called with a kind and the number of its rows that were read since the last call.
Advance = Callable[[str, int], None]
# Rows after which the progress is reported.
_STEP = 1000


class Counts(NamedTuple):
    """How many rows of a kind were read from the source, and what was done with the target's."""

    read: int = 0
    created: int = 0
    changed: int = 0
    deleted: int = 0


class Counters(dict[str, collections.Counter]):
    """A counter for each kind, of the fields of :class:`Counts`."""

    def __init__(self) -> None:
        super().__init__({kind: collections.Counter() for kind in KINDS})

    def counts(self) -> dict[str, Counts]:
        """Return what was counted, by kind."""
        return {kind: Counts(**counter) for kind, counter in self.items()}


def ignored(kind: str, number: int) -> None:
    """An :data:`Advance` that reports nothing."""


def counted(kind: str, rows: Iterable[_Row], counts: collections.Counter,
            advance: Advance = ignored, name: str = "read") -> Iterator[_Row]:
    """Yield rows of a kind, count them, and report the progress.

    :param counts: gets the number of rows that were read so far, under the name
    """
    number = 0
    for number, row in enumerate(rows, 1):
        if not number % _STEP:
            counts[name] += _STEP
            advance(kind, _STEP)
        yield row
    counts[name] += number % _STEP
    advance(kind, number % _STEP)
