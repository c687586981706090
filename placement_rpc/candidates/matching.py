# SPDX-License-Identifier: Apache-2.0
"""Find the providers of an index that fit a query, each by itself.

It knows neither trees nor sharing, and its orders are those of the whole fleet. A search that
ends when it has enough (:mod:`placement_rpc.candidates.groups`) cannot give such an order. Both
test for room with :mod:`placement_rpc.candidates.fitting`.
"""

import numpy as np

from placement_rpc.candidates import capacity as rule
from placement_rpc.candidates import fitting, ordering
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.inventories import Inventories
from placement_rpc.candidates.query import Candidate, CandidateQuery

# The size of a random sample that is tried before all providers are: the minimum, and for each
# candidate that is wanted.
_MIN_SAMPLE = 128
_SAMPLE_PER_CANDIDATE = 4

# For each requested class its id, its inventories and the requested amount.
_Conditions = list[tuple[int, Inventories, int]]


def find(index: CandidateIndex, query: CandidateQuery,
         random: np.random.Generator) -> list[Candidate]:
    """Return the providers that fit, in the order of the query.

    :param random: for sampling, and for the order of what the query does not order
    """
    if not all(class_id in index.inventories for class_id in query.amounts):
        return []
    # The rarest class first leaves the fewest providers to check for the next class.
    conditions = sorted(((class_id, index.inventories[class_id], amount)
                         for class_id, amount in query.amounts.items()),
                        key=lambda each: len(each[1]))
    slots = _members(index, query, conditions[0][1].slots)
    found = _sampled(slots, conditions, query, random)
    if found is None:
        slots = _fitting(slots, conditions)
        found = slots[ordering.choose(
            len(slots), query.order, query.limit, lambda: _room_left(slots, conditions), random)]
    return _candidates(index, found, query.amounts)


def _members(index: CandidateIndex, query: CandidateQuery, slots: np.ndarray) -> np.ndarray:
    """Return those of the slots whose aggregates meet the query."""
    if not query.member_of and not query.not_member_of:
        return slots
    meeting = index.aggregate_sets.meeting(query.member_of, query.not_member_of)
    return slots[meeting[index.aggregate_set[slots]]]


def _sampled(slots: np.ndarray, conditions: _Conditions, query: CandidateQuery,
             random: np.random.Generator) -> np.ndarray | None:
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
    found = _fitting(sample, conditions)
    return random.permutation(found)[:limit] if len(found) >= limit else None


def _fitting(slots: np.ndarray, conditions: _Conditions) -> np.ndarray:
    """Return those of the slots that have room for every amount."""
    for _, inventories, amount in conditions:
        rows, there = _rows(inventories, slots)
        slots = slots[there & fitting.fits(inventories, rows, amount)]
    return slots


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
