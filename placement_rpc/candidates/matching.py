# SPDX-License-Identifier: Apache-2.0
"""Find the providers of an index that fit a query."""

from collections.abc import Mapping

import numpy as np

from placement_rpc.candidates import capacity as rule
from placement_rpc.candidates import ordering
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.inventories import Inventories
from placement_rpc.candidates.query import Candidate, CandidateQuery

# The size of a random sample that is tried before all providers are: the minimum, and for each
# candidate that is wanted.
_MIN_SAMPLE = 128
_SAMPLE_PER_CANDIDATE = 4

# By provider id, or by slot.
Reserved = Mapping[int, Mapping[int, int]]
# For each requested class its id, its inventories and the requested amount.
_Conditions = list[tuple[int, Inventories, int]]


def find(index: CandidateIndex, query: CandidateQuery, random: np.random.Generator,
         reserved: Reserved | None = None) -> list[Candidate]:
    """Return the providers that fit, in the order of the query.

    :param random: for sampling, and for the order of what the query does not order
    :param reserved: provider id to a mapping of class id to an amount that counts as used
    """
    if not all(class_id in index.inventories for class_id in query.amounts):
        return []
    # The rarest class first leaves the fewest providers to check for the next class.
    conditions = sorted(((class_id, index.inventories[class_id], amount)
                         for class_id, amount in query.amounts.items()),
                        key=lambda each: len(each[1]))
    by_slot = _by_slot(index, reserved)
    slots = _members(index, query, conditions[0][1].slots)
    found = _sampled(slots, conditions, query, random, by_slot)
    if found is None:
        slots = _fitting(slots, conditions, by_slot)
        found = slots[ordering.choose(
            len(slots), query.order, query.limit, lambda: _room_left(slots, conditions), random)]
    return _candidates(index, found, query.amounts)


def _by_slot(index, reserved):
    """Return reservations by slot instead of by provider id."""
    if not reserved:
        return {}
    slots = index.slots_of(reserved).tolist()
    return {slot: amounts for slot, amounts in zip(slots, reserved.values(), strict=True)
            if slot >= 0}


def _members(index: CandidateIndex, query: CandidateQuery, slots: np.ndarray) -> np.ndarray:
    """Return those of the slots whose aggregates meet the query."""
    if not query.member_of and not query.not_member_of:
        return slots
    meeting = index.aggregate_sets.meeting(query.member_of, query.not_member_of)
    return slots[meeting[index.aggregate_set[slots]]]


def _sampled(slots: np.ndarray, conditions: _Conditions, query: CandidateQuery,
             random: np.random.Generator, reserved: Reserved) -> np.ndarray | None:
    """Try a random sample, which is as random a choice as one among all providers that fit.

    :returns: array of slots; None if too few of the sample fit, or another order is wanted, so
        that all providers have to be checked
    """
    limit = query.limit
    if query.order != ordering.RANDOM or limit is None:
        return None
    size = max(_MIN_SAMPLE, _SAMPLE_PER_CANDIDATE * limit)
    if size * 2 > len(slots):
        return None
    sample = slots[np.sort(random.choice(len(slots), size, replace=False))]
    fitting = _fitting(sample, conditions, reserved)
    return random.permutation(fitting)[:limit] if len(fitting) >= limit else None


def _fitting(slots: np.ndarray, conditions: _Conditions, reserved: Reserved) -> np.ndarray:
    """Return those of the slots that have room for every amount."""
    for _, inventories, amount in conditions:
        slots = slots[_fits(inventories, slots, amount)]
    if not reserved:
        return slots
    concerned = np.fromiter(reserved, np.int32, len(reserved))
    full = [slot for slot in slots[np.isin(slots, concerned)].tolist()
            if not _has_room_besides(reserved[slot], slot, conditions)]
    return np.setdiff1d(slots, full) if full else slots


def _fits(inventories: Inventories, slots: np.ndarray, amount: int) -> np.ndarray:
    """Return an array of bool: whether each provider can give the amount (DESIGN rule 1)."""
    rows, fits = _rows(inventories, slots)
    fits = fits & rule.has_room(inventories.capacity[rows], inventories.used[rows], amount)
    fits &= rule.within_max_unit(amount, inventories.max_unit[rows])
    if inventories.is_simple:
        return fits
    fits &= rule.reaches_min_unit(amount, inventories.min_unit[rows])
    # Most steps are 1, and a remainder costs more than all other conditions together.
    steps = inventories.step_size[rows]
    stepped = np.flatnonzero(fits & (steps != 1))
    fits[stepped] = rule.is_on_step(amount, steps[stepped])
    return fits


def _has_room_besides(reserved: Mapping[int, int], slot: int, conditions: _Conditions) -> bool:
    """Return whether a provider that fits has room in addition to what is reserved of it."""
    for class_id, inventories, amount in conditions:
        row = inventories.row_of(slot)
        if not rule.has_room(inventories.capacity[row], inventories.used[row],
                             amount + reserved.get(class_id, 0)):
            return False
    return True


def _room_left(slots: np.ndarray, conditions: _Conditions) -> np.ndarray:
    return ordering.room_left(
        (inventories.capacity[rows], inventories.used[rows], amount)
        for _, inventories, amount in conditions for rows, _ in (_rows(inventories, slots),))


def _rows(inventories: Inventories, slots: np.ndarray):
    """As ``inventories.rows_of``, with a slice, which copies nothing, if they are all rows."""
    if len(slots) == len(inventories) and np.array_equal(slots, inventories.slots):
        return slice(None), True
    return inventories.rows_of(slots)


def _candidates(index, slots, class_ids):
    free = {}
    for class_id in class_ids:
        inventories = index.inventories[class_id]
        at = inventories.rows_of(slots)[0]
        free[class_id] = rule.free_of(inventories.capacity[at], inventories.used[at]).tolist()
    return [Candidate(id_, uuid, index.name_of(slot), generation,
                      {class_id: amounts[at] for class_id, amounts in free.items()})
            for at, (slot, id_, uuid, generation) in enumerate(zip(
                slots.tolist(), index.id[slots].tolist(), index.uuids_of(slots),
                index.generation[slots].tolist(), strict=True))]
