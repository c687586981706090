# SPDX-License-Identifier: Apache-2.0
"""Candidates that differ from another only in which of several equal groups has which provider."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np


def arrangements(values: Sequence[int]) -> Iterator[list[int]]:
    """Yield each different order of some numbers once."""
    current = sorted(values)
    while True:
        yield list(current)
        # The next order in that of a dictionary.
        rising = len(current) - 2
        while rising >= 0 and current[rising] >= current[rising + 1]:
            rising -= 1
        if rising < 0:
            return
        greater = len(current) - 1
        while current[greater] <= current[rising]:
            greater -= 1
        current[rising], current[greater] = current[greater], current[rising]
        current[rising + 1:] = reversed(current[rising + 1:])


def others(row: Sequence[int], equal: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the candidates that a candidate becomes when equal parts swap their providers.

    :param row: the provider of each part
    :param equal: lists of the numbers of parts that are equal
    """
    for each in _arranged(list(row), equal):
        if each != list(row):
            yield each


def _arranged(row, equal):
    if not equal:
        yield row
        return
    for values in arrangements([row[part] for part in equal[0]]):
        arranged = list(row)
        for part, value in zip(equal[0], values, strict=True):
            arranged[part] = value
        yield from _arranged(arranged, equal[1:])


def more(rows: np.ndarray, equal: Sequence[Sequence[int]], count: int | None) -> np.ndarray:
    """Return further candidates, one of each in turn.

    :param rows: candidates x parts
    :param count: how many at the most; None for all
    """
    if not equal or not len(rows) or count == 0:
        return rows[:0]
    left = [others(row, equal) for row in rows.tolist()]
    found: list[list[int]] = []
    while left and (count is None or len(found) < count):
        kept = []
        for each in left:
            row = next(each, None)
            if row is not None:
                found.append(row)
                kept.append(each)
        left = kept
    return np.array(list(itertools.islice(found, count)), rows.dtype).reshape(-1, rows.shape[1])
