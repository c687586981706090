# SPDX-License-Identifier: Apache-2.0
"""The capacity rule (DESIGN rule 1): which amounts an inventory accepts.

The only statement of the rule, and of membership in aggregates; the capacity itself is computed in
:mod:`placement_rpc.objects.inventory`. The functions work on numbers and on NumPy arrays alike, so
that the ledger, the candidate index and explanations cannot disagree.
"""

import functools
import operator
from collections.abc import Callable, Collection, Sequence

import numpy as np

Number = int | np.ndarray
Truth = bool | np.ndarray


def free_of(capacity: Number, used: Number) -> Number:
    """Return how much is left; negative for an inventory that is over its capacity."""
    return capacity - used


def is_over(capacity: Number, used: Number) -> Truth:
    """Return whether more is used than the capacity allows."""
    return used > capacity


def has_room(capacity: Number, used: Number, amount: int) -> Truth:
    """Return whether an amount fits into what is left."""
    return capacity - used >= amount


def reaches_min_unit(amount: int, min_unit: Number) -> Truth:
    """Return whether an amount is not below the smallest that can be allocated at once."""
    return min_unit <= amount


def within_max_unit(amount: int, max_unit: Number) -> Truth:
    """Return whether an amount is not above the largest that can be allocated at once."""
    return max_unit >= amount


def is_on_step(amount: int, step_size: Number) -> Truth:
    """Return whether an amount is a multiple of the step."""
    return amount % step_size == 0


def most_of(capacity: Number, used: Number, max_unit: Number) -> Number:
    """Return the greatest sum of amounts that fits, where each of them keeps to the units."""
    return np.minimum(free_of(capacity, used), max_unit)


def in_any(aggregates: Collection[str], uuids: Sequence[str]) -> bool:
    """Return whether a provider is in at least one of some aggregates.

    :param aggregates: uuids of all aggregates of the provider
    :param uuids: uuids of the aggregates in question
    """
    return any(uuid in aggregates for uuid in uuids)


def is_member(is_in_any: Callable[[Sequence[str]], Truth], member_of: Sequence[Sequence[str]],
              not_member_of: Sequence[str]) -> Truth:
    """Return whether the aggregates of a provider, or of each of many, meet a request.

    :param is_in_any: returns whether a provider is in at least one of a list of aggregates:
        :func:`in_any` for one provider, or an array of bool for many
    :param member_of: lists of aggregate uuids: the provider is in at least one of each list
    :param not_member_of: aggregate uuids: the provider is in none of them
    """
    # "^ True" negates a bool and an array of bool alike; "not" and "~" negate only one of them.
    required = [is_in_any(uuids) for uuids in member_of]
    return functools.reduce(operator.and_, required, is_in_any(not_member_of) ^ True)
