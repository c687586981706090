# SPDX-License-Identifier: Apache-2.0
"""Find the providers of an index that fit a query."""

from collections.abc import Mapping

import numpy as np

from placement_rpc.candidates import capacity as rule
from placement_rpc.candidates import ordering
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.query import Candidate, CandidateQuery
from placement_rpc.candidates.sorted_table import SortedTable
from placement_rpc.candidates.uuid_columns import from_halves

# The size of a random sample that is tried before all providers are: the minimum, and for each
# candidate that is wanted.
_MIN_SAMPLE = 128
_SAMPLE_PER_CANDIDATE = 4

Reserved = Mapping[int, Mapping[int, int]]
# For each requested class its id, its inventories and the requested amount.
_Conditions = list[tuple[int, SortedTable, int]]


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
    ids = _members(index, query, conditions[0][1].keys)
    found = _sampled(ids, conditions, query, random, reserved)
    if found is None:
        ids = _fitting(ids, conditions, reserved)
        found = ids[ordering.choose(
            len(ids), query.order, query.limit, lambda: _room_left(ids, conditions), random)]
    return _candidates(index, found, query.amounts)


def _members(index: CandidateIndex, query: CandidateQuery, ids: np.ndarray) -> np.ndarray:
    """Return those of the provider ids whose aggregates meet the query."""
    if not query.member_of and not query.not_member_of:
        return ids

    def is_in_any(uuids):
        inside = np.zeros(len(ids), bool)
        for uuid in uuids:
            members = index.aggregates.get(uuid, ids[:0])
            rows = np.minimum(ids.searchsorted(members), len(ids) - 1)
            inside[rows[ids[rows] == members]] = True
        return inside

    return ids[rule.is_member(is_in_any, query.member_of, query.not_member_of)]


def _sampled(ids: np.ndarray, conditions: _Conditions, query: CandidateQuery,
             random: np.random.Generator, reserved: Reserved | None) -> np.ndarray | None:
    """Try a random sample, which is as random a choice as one among all providers that fit.

    :returns: array of ids; None if too few of the sample fit, or another order is wanted, so that
        all providers have to be checked
    """
    limit = query.limit
    if query.order != ordering.RANDOM or limit is None:
        return None
    size = max(_MIN_SAMPLE, _SAMPLE_PER_CANDIDATE * limit)
    if size * 2 > len(ids):
        return None
    sample = ids[np.sort(random.choice(len(ids), size, replace=False))]
    fitting = _fitting(sample, conditions, reserved)
    return random.permutation(fitting)[:limit] if len(fitting) >= limit else None


def _fitting(ids: np.ndarray, conditions: _Conditions, reserved: Reserved | None) -> np.ndarray:
    """Return those of the provider ids that have room for every amount."""
    for _, inventories, amount in conditions:
        ids = ids[_fits(inventories, ids, amount)]
    if not reserved:
        return ids
    concerned = np.fromiter(reserved, np.int64, len(reserved))
    full = [id_ for id_ in ids[np.isin(ids, concerned)].tolist()
            if not _has_room_besides(reserved[id_], id_, conditions)]
    return np.setdiff1d(ids, full) if full else ids


def _fits(inventories: SortedTable, ids: np.ndarray, amount: int) -> np.ndarray:
    """Return an array of bool: whether each provider can give the amount (DESIGN rule 1)."""
    rows, fits = _rows(inventories, ids)
    fits = fits & rule.has_room(inventories["capacity"][rows], inventories["used"][rows], amount)
    fits &= rule.reaches_min_unit(amount, inventories["min_unit"][rows])
    fits &= rule.within_max_unit(amount, inventories["max_unit"][rows])
    # Most steps are 1, and a remainder costs more than all other conditions together.
    steps = inventories["step_size"][rows]
    stepped = np.flatnonzero(fits & (steps != 1))
    fits[stepped] = rule.is_on_step(amount, steps[stepped])
    return fits


def _has_room_besides(reserved: Mapping[int, int], provider_id: int,
                      conditions: _Conditions) -> bool:
    """Return whether a provider that fits has room in addition to what is reserved of it."""
    for class_id, inventories, amount in conditions:
        row = inventories.row_of(provider_id)
        if not rule.has_room(inventories["capacity"][row], inventories["used"][row],
                             amount + reserved.get(class_id, 0)):
            return False
    return True


def _room_left(ids: np.ndarray, conditions: _Conditions) -> np.ndarray:
    return ordering.room_left(
        (inventories["capacity"][rows], inventories["used"][rows], amount)
        for _, inventories, amount in conditions for rows, _ in (_rows(inventories, ids),))


def _rows(inventories: SortedTable, ids: np.ndarray):
    """As ``inventories.rows_of``, with a slice, which copies nothing, if they are all rows."""
    if len(ids) == len(inventories) and np.array_equal(ids, inventories.keys):
        return slice(None), True
    return inventories.rows_of(ids)


def _candidates(index, ids, class_ids):
    providers = index.providers
    rows = providers.rows_of(ids)[0]
    uuids = from_halves(providers["high"][rows], providers["low"][rows])
    names, generations = (providers[name][rows].tolist() for name in ("name", "generation"))
    free = {}
    for class_id in class_ids:
        inventories = index.inventories[class_id]
        at = inventories.rows_of(ids)[0]
        free[class_id] = rule.free_of(
            inventories["capacity"][at], inventories["used"][at]).tolist()
    return [Candidate(id_, uuids[at], names[at], generations[at],
                      {class_id: amounts[at] for class_id, amounts in free.items()})
            for at, id_ in enumerate(ids.tolist())]
