# SPDX-License-Identifier: Apache-2.0
"""The order of candidates: which of the providers that fit come first.

The random generators are not seeded. Two schedulers that ask at the same moment get orders of
their own, so that they do not both try the same provider.
"""

import functools
from collections.abc import Callable, Iterable

import numpy as np

from placement_rpc.candidates import capacity as rule
from placement_rpc.objects import request

SPREAD, PACK, RANDOM = request.ORDERS


def room_left(classes: Iterable[tuple[np.ndarray, np.ndarray, int]]) -> np.ndarray:
    """Return the share that would be left of each provider's scarcest class.

    :param classes: for each class an array of the capacity of each provider, an array of what is
        used, and the requested amount
    :returns: array of float, from 0 (full) to 1 (empty), one for each provider
    """
    return functools.reduce(np.minimum, (
        (rule.free_of(capacity, used) - amount) / np.maximum(capacity, 1)
        for capacity, used, amount in classes))


def choose(count: int, order: str, limit: int | None, left: Callable[[], np.ndarray],
           random: np.random.Generator) -> np.ndarray:
    """Choose the first candidates among the providers that fit.

    :param count: how many providers fit
    :param order: ``spread`` puts the providers first that have most left, ``pack`` those that
        have least left, ``random`` any; equal ones come in random order
    :param limit: the maximum number of candidates; None for all
    :param left: returns :func:`room_left` of the providers that fit; not called for ``random``
    :returns: array of int, positions among the providers that fit
    """
    limit = count if limit is None else min(limit, count)
    if order == RANDOM:
        return random.choice(count, limit, replace=False) if limit < count else (
            random.permutation(count))
    shares = left()
    if order == SPREAD:
        shares = -shares
    chosen = random.permutation(_least(shares, limit, random) if limit < count else count)
    return chosen[np.argsort(shares[chosen], kind="stable")]


def _least(values: np.ndarray, limit: int, random: np.random.Generator) -> np.ndarray:
    """Return positions of the smallest values, with a random choice of those equal at the edge."""
    edge = np.partition(values, limit - 1)[limit - 1]
    below = np.flatnonzero(values < edge)
    equal = np.flatnonzero(values == edge)
    return np.concatenate((
        below, random.choice(equal, limit - len(below), replace=False)))
