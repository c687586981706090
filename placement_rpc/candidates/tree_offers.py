# SPDX-License-Identifier: Apache-2.0
"""Candidates of requests with groups, for claims."""

import contextlib
from collections.abc import Iterator, Mapping

import numpy as np

from placement_rpc.candidates import groups
from placement_rpc.candidates.group_queries import Bounds, groups_query_of
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.offers import Offer
from placement_rpc.candidates.query import Found
from placement_rpc.candidates.reservations import Amounts
from placement_rpc.objects import class_names
from placement_rpc.objects.candidates import CandidatesRequest


def tree_offer(index: CandidateIndex, request: CandidatesRequest, random: np.random.Generator,
               bounds: Bounds, reserved: Amounts, given_back: Amounts) -> Offer | None:
    """Return the first candidate of a request with groups; None if there is none.

    :param reserved: as of :func:`flat_offer`
    :param given_back: what the claim's consumer holds, and releases by the claim
    """
    query = groups_query_of(request, limit=1)
    for others in (reserved, {}) if reserved else ({},):
        with _counted(index, others, 1), _counted(index, given_back, -1):
            found = groups.find(index, query, random, strategy=bounds.strategy)
        if len(found.rows):
            return _offer_of(index, found, _class_names(index, request))
    return None


@contextlib.contextmanager
def _counted(index: CandidateIndex, amounts: Amounts, sign: int) -> Iterator[None]:
    """Count amounts as used, or with the sign -1 as free, within the block."""
    changed = []
    try:
        for provider_id, of_provider in amounts.items():
            slot = index.slot_of(provider_id)
            for class_id, amount in of_provider.items() if slot is not None else ():
                inventories = index.inventories.get(class_id)
                if inventories is None:
                    continue
                rows, there = inventories.rows_of(np.array([slot]))
                if there[0]:
                    inventories.used[rows[0]] += sign * amount
                    changed.append((inventories, rows[0], sign * amount))
        yield
    finally:
        for inventories, row, amount in changed:
            inventories.used[row] -= amount


def _class_names(index: CandidateIndex, request: CandidatesRequest) -> dict[int, str]:
    """Return the names of the requested classes that exist, by their ids."""
    names = {name for group in request.groups for name in group.value("resources", {})}
    return {id_: name for name, id_ in class_names.ids_of(names, lambda custom: {
        name: index.class_ids[name] for name in custom if name in index.class_ids}).items()}


def _offer_of(index: CandidateIndex, found: Found, names: Mapping[int, str]) -> Offer:
    """Return the offer of the first candidate."""
    slots = found.rows[0]
    ids, uuids = index.id[slots].tolist(), index.uuids_of(slots)
    allocations: dict[str, dict[str, int]] = {}
    reserved: dict[int, dict[int, int]] = {}
    mappings: dict[str, list[str]] = {}
    for column, provider_id, uuid in zip(found.columns, ids, uuids, strict=True):
        served = mappings.setdefault(column.suffix, [])
        if uuid not in served:
            served.append(uuid)
        for class_id, amount in column.amounts.items():
            of_provider = reserved.setdefault(provider_id, {})
            of_provider[class_id] = of_provider.get(class_id, 0) + amount
            allocations.setdefault(uuid, {})[names[class_id]] = of_provider[class_id]
    return Offer(allocations, reserved, mappings)
