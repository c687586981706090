# SPDX-License-Identifier: Apache-2.0
"""Candidates that differ from another only in which of several equal groups has which provider."""

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


def more(rows: np.ndarray, equal: Sequence[Sequence[int]], count: int) -> np.ndarray:
    """Return what candidates become when equal parts swap their providers.

    The next order of each candidate comes before the one after it of any.

    :param rows: candidates x parts; the providers of equal parts are in ascending order
    :param equal: lists of the numbers of parts that are equal
    :param count: how many candidates to return at the most
    """
    found: list[np.ndarray] = []
    patterns = list(_by_pattern(rows, equal)) if equal and len(rows) else []
    while patterns and count > 0:
        left = []
        for some, orders in patterns:
            columns = next(orders, None)
            if columns is not None and count > 0:
                found.append(some[:count, columns])
                count -= len(found[-1])
                left.append((some, orders))
        patterns = left
    return np.concatenate([rows[:0], *found])


def _by_pattern(rows, equal):
    """Yield candidates that repeat providers in the same places, with their further orders."""
    repeats = np.concatenate([np.diff(rows[:, parts], axis=1) == 0 for parts in equal], axis=1)
    patterns, numbers = np.unique(repeats, axis=0, return_inverse=True)
    for number in range(len(patterns)):
        some = rows[numbers.ravel() == number]
        orders = _orders(list(range(rows.shape[1])), some[0].tolist(), equal)
        next(orders)  # the order of the candidates themselves
        yield some, orders


def _orders(columns, row, equal):
    """Yield each order of the parts that gives equal parts other providers.

    :param columns: the order so far
    :param row: the providers of a candidate of the pattern
    """
    if not equal:
        yield columns
        return
    parts = equal[0]
    first = {row[part]: part for part in reversed(parts)}
    for providers in arrangements([row[part] for part in parts]):
        arranged = list(columns)
        for part, provider in zip(parts, providers, strict=True):
            arranged[part] = first[provider]
        yield from _orders(arranged, row, equal[1:])
