# SPDX-License-Identifier: Apache-2.0
"""The capacity rule (DESIGN rule 1): what an inventory can hold, and which amounts it accepts.

The only statement of the rule. It works on numbers and on NumPy arrays alike, so that the ledger,
the candidate index and explanations cannot disagree.
"""

import decimal

_MAX_CAPACITY = 2 ** 62


def capacity_of(total, reserved, allocation_ratio):
    """Return ``floor((total - reserved) * allocation_ratio)``: how much can be allocated in all.

    Computed in decimals: 100 at a ratio of 0.29 is 29, not the 28 that binary fractions give.

    :returns: int (generic-resource-pools, scenario 1)
    """
    exact = (total - reserved) * decimal.Decimal(repr(allocation_ratio))
    return min(int(exact), _MAX_CAPACITY)


def free(capacity, used):
    """Return how much is left; negative for an inventory that is over its capacity."""
    return capacity - used


def has_room(capacity, used, amount):
    """Return whether an amount fits into what is left."""
    return free(capacity, used) >= amount


def reaches_min_unit(amount, min_unit):
    """Return whether an amount is not below the smallest that can be allocated at once."""
    return min_unit <= amount


def within_max_unit(amount, max_unit):
    """Return whether an amount is not above the largest that can be allocated at once."""
    return max_unit >= amount


def on_step(amount, step_size):
    """Return whether an amount is a multiple of the step."""
    return amount % step_size == 0


def in_any(members, uuids):
    """Return whether one of some aggregates is among those a provider is in.

    :param members: collection of the aggregate uuids of the provider
    :param uuids: list of aggregate uuids
    """
    return any(uuid in members for uuid in uuids)


def is_member(members, member_of, not_member_of):
    """Return whether a provider's aggregates meet a request.

    :param members: collection of the aggregate uuids of the provider
    :param member_of: list of lists of aggregate uuids: the provider is in one of each list
    :param not_member_of: list of aggregate uuids: the provider is in none of them
    """
    return all(in_any(members, uuids) for uuids in member_of) and not in_any(
        members, not_member_of)
