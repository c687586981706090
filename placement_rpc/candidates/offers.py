# SPDX-License-Identifier: Apache-2.0
"""Candidates for claims: one after the other is offered, and reserved while it is tried."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from placement_rpc.candidates import groups, matching
from placement_rpc.candidates.group_queries import Bounds, groups_query_of
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.query import Found, query_of
from placement_rpc.candidates.reservations import Amounts
from placement_rpc.objects import class_names
from placement_rpc.objects.candidates import CandidatesRequest
from placement_rpc.objects.request import ResourceRequest


@dataclasses.dataclass(frozen=True, slots=True)
class Offer:
    """What a claim can try to get.

    :param allocations: provider uuid to a mapping of class name to amount
    :param reserved: the same amounts by provider id and class id
    :param mappings: suffix of each group to the uuids of its providers; None for a request without
        groups
    """

    allocations: Mapping[str, Mapping[str, int]]
    reserved: Amounts
    mappings: Mapping[str, list[str]] | None = None


def first(index: CandidateIndex, reserved: Amounts, released: Amounts,
          find: Callable[[], Offer | None]) -> Offer | None:
    """Return an offer of what no other claim has reserved; if there is none, of what fits.

    Not every reservation becomes a claim: a provider that is fully reserved may have room.

    :param reserved: what other claims are about to take
    :param released: what the claim's consumer holds, and releases by the claim
    :param find: returns an offer from the index as it is; None if nothing fits
    """
    for others in (reserved, {}) if reserved else ({},):
        with _counted(index, others, 1), _counted(index, released, -1):
            found = find()
        if found is not None:
            return found
    return None


@contextlib.contextmanager
def _counted(index: CandidateIndex, amounts: Amounts, sign: int) -> Iterator[None]:
    """Count amounts as used, or with the sign -1 as free, within the block."""
    changed = []
    try:
        for provider_id, of_provider in amounts.items():
            slot = index.slot_of(provider_id)
            for class_id, amount in of_provider.items():
                inventories = index.inventories.get(class_id)
                if slot is None or inventories is None:
                    continue
                row = inventories.row_of(slot)
                if row is not None:
                    inventories.used[row] += sign * amount
                    changed.append((inventories, row, sign * amount))
        yield
    finally:
        for inventories, row, amount in changed:
            inventories.used[row] -= amount


def of_provider(index: CandidateIndex, request: ResourceRequest, class_ids: Mapping[str, int],
                random: np.random.Generator) -> Offer | None:
    """Return the first provider that fits a request; None if there is none.

    :param class_ids: the requested classes
    """
    query = query_of(request, class_ids, limit=1)
    found = matching.find(index, query, random)
    if not found:
        return None
    return Offer({found[0].uuid: request.resources}, {found[0].id: query.amounts})


def of_tree(index: CandidateIndex, request: CandidatesRequest, random: np.random.Generator,
            bounds: Bounds) -> Offer | None:
    """Return the first candidate of a request with groups; None if there is none."""
    found = groups.find(
        index, groups_query_of(request, limit=1), random, strategy=bounds.strategy)
    if not len(found.rows):
        return None
    return _offer_of(index, found, _class_names(index, request))


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
