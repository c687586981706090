# SPDX-License-Identifier: Apache-2.0
"""Headroom by brute force: claim one candidate after the other in every order, in the model."""

import functools

from tests import candidates_model as model

# Choices of what to claim that are tried in one world.
_MOST_KINDS = 20
# A trait of one root only.
_MARK = "CUSTOM_MARK"


def shrunk(world):
    """Make the inventories of a world so small that all orders of claims can be tried."""
    for provider in world.providers:
        for inventory in provider.inventories.values():
            inventory.total = min(inventory.total, 6)
            inventory.reserved = min(inventory.reserved, 1)
            inventory.allocation_ratio = 1.0
            inventory.used = min(inventory.used, inventory.capacity)
    return world


def headroom(world, candidates):
    """Return how many requests fit that each take one of some candidates.

    :returns: int; None if there are too many to try all
    """
    kinds = sorted({tuple(sorted(each.resources)) for each in candidates})
    if len(kinds) > _MOST_KINDS:
        return None
    resources = sorted({(uuid, name) for kind in kinds for uuid, name, _ in kind})
    rows = {resource: row for row, resource in enumerate(resources)}
    takes = [[(rows[uuid, name], amount) for uuid, name, amount in kind] for kind in kinds]

    @functools.cache
    def most(free, first):
        found = 0
        for number in range(first, len(takes)):
            left = list(free)
            for row, amount in takes[number]:
                left[row] -= amount
            if min(left) >= 0:
                # What is claimed later is never of an earlier kind: the order does not matter.
                found = max(found, 1 + most(tuple(left), number))
        return found

    inventories = [world.by_uuid[uuid].inventories[name] for uuid, name in resources]
    return most(tuple(each.capacity - each.used for each in inventories), 0)


def in_aggregate(world, query, aggregate):
    """Return the candidates that a query has in an aggregate.

    All providers are in it by themselves, or by the root of the tree if it is their own.
    """
    found = set()
    for root in (each for each in world.providers if each.parent is None):
        for candidate in of_root(world, query, root):
            uuids = {uuid for _, some in candidate.mappings for uuid in some}
            if all(aggregate in each.aggregates or (
                    aggregate in root.aggregates and world.root(each) is root)
                    for each in map(world.by_uuid.get, uuids)):
                found.add(candidate)
    return found


def of_root(world, query, root):
    """Return the candidates that a query has in one tree.

    :raises tests.candidates_model.Unknown: as :func:`tests.candidates_model.candidates`
    """
    traits, required = world.traits, query.root_required
    world.traits, query.root_required = (*traits, _MARK), [*required, _MARK]
    root.traits.add(_MARK)
    try:
        return model.candidates(world, query)
    finally:
        root.traits.discard(_MARK)
        world.traits, query.root_required = traits, required
