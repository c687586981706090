# SPDX-License-Identifier: Apache-2.0
"""Which of the providers that fit are named first.

Nothing is seeded: of two schedulers that ask at the same moment each gets an order of its own, so
that they do not all try the same provider.
"""

import numpy as np

from placement_rpc.objects import request

SPREAD, PACK, RANDOM = request.ORDERS


def room_left(classes):
    """How much of a provider would be left: the share of the class that it would have least of.

    :param classes: for each class an array of the capacity of each provider, one of what is used,
        and the amount that is asked for
    :returns: array of float, from 0 (full) to 1 (empty), one for each provider
    """
    left = None
    for capacity, used, amount in classes:
        share = (capacity - used - amount) / np.maximum(capacity, 1)
        left = share if left is None else np.minimum(left, share)
    return left


def choose(count, order, limit, left, random):
    """The first of those that fit.

    :param count: int, how many fit
    :param order: ``spread`` for those first that have most left, ``pack`` for those that have
        least left, ``random`` for no order at all; who has the same comes in any order
    :param limit: int, how many at the most; None for all
    :param left: callable that gives :func:`room_left` of those that fit; for ``random`` it is
        not called
    :param random: :class:`numpy.random.Generator`
    :returns: array of int, places among those that fit
    """
    limit = count if limit is None else min(limit, count)
    if order == RANDOM:
        return random.choice(count, limit, replace=False) if limit < count else (
            random.permutation(count))
    left = left()
    if order == SPREAD:
        left = -left
    places = random.permutation(_least(left, limit, random) if limit < count else count)
    return places[np.argsort(left[places], kind="stable")]


def _least(values, limit, random):
    """Places of the smallest values; of those that are equal at the edge, any."""
    edge = np.partition(values, limit - 1)[limit - 1]
    below = np.flatnonzero(values < edge)
    equal = np.flatnonzero(values == edge)
    return np.concatenate((
        below, random.choice(equal, limit - len(below), replace=False)))
