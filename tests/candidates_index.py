# SPDX-License-Identifier: Apache-2.0
"""Worlds of the candidates model in an index without a store, and the candidates of an index."""

import uuid

from placement_rpc import exception
from placement_rpc.candidates import changes, groups
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.query import Group, GroupsQuery
from tests import candidates_model as model


def index_of(world):
    """Return an index of the providers of a world."""
    index = CandidateIndex()
    index.class_ids = {name: number for number, name in enumerate(world.classes)}
    index.traits = set(world.traits)
    ids = {each.uuid: number for number, each in enumerate(world.providers, 1)}
    changes.put(
        index, [changes.Provider(ids[each.uuid], each.uuid, each.uuid, 1, ids.get(each.parent),
                                 ids[world.root(each).uuid]) for each in world.providers],
        [(ids[each.uuid], index.class_ids[name], inventory.capacity, inventory.used,
          inventory.min_unit, inventory.max_unit, inventory.step_size)
         for each in world.providers for name, inventory in each.inventories.items()],
        {ids[each.uuid]: each.traits for each in world.providers},
        {ids[each.uuid]: each.aggregates for each in world.providers})
    return index


def groups_query(query):
    """Return the query of the search for a query of the model."""
    return GroupsQuery(
        [Group(**vars(group)) for group in query.groups], query.group_policy, query.same_subtree,
        query.root_required, query.root_forbidden, query.limit, nested=query.minor >= 29)


def find(index, query, random, **how):
    """Search for the candidates of a query.

    :param how: further arguments of :func:`placement_rpc.candidates.groups.find`
    :raises tests.candidates_model.Unknown: if the query names what does not exist
    """
    try:
        return groups.find(index, groups_query(query), random, **how)
    except (exception.ResourceClassNotFound, exception.TraitNotFound) as error:
        raise model.Unknown(str(error)) from error


def search(index, query, random, **how):
    """Return the candidates of a query as the model has them.

    :param how: further arguments of :func:`placement_rpc.candidates.groups.find`
    :returns: list, which has a candidate twice if the search found it twice
    :raises tests.candidates_model.Unknown: if the query names what does not exist
    """
    return list(candidates_of(index, find(index, query, random, **how)))


def candidates_of(index, found):
    """Yield what a :class:`placement_rpc.candidates.query.Found` has, as the model has it."""
    names = {id_: name for name, id_ in index.class_ids.items()}
    uuids = {slot: str(uuid.UUID(int=(int(index.high[slot]) << 64) + int(index.low[slot])))
             for slot in set(found.rows.ravel().tolist())}
    for row in found.rows.tolist():
        amounts, mappings = {}, {}
        for column, slot in zip(found.columns, row, strict=True):
            mappings.setdefault(column.suffix, set()).add(uuids[slot])
            for class_id, amount in column.amounts.items():
                key = uuids[slot], names[class_id]
                amounts[key] = amounts.get(key, 0) + amount
        yield model.Candidate(
            frozenset((*key, amount) for key, amount in amounts.items()),
            frozenset((suffix, frozenset(each)) for suffix, each in mappings.items()))


def differences(world, query, index, random):
    """Return how the candidates of an index differ from those of the model: a list of texts.

    Strategy and maximum of the search are random; most searches have no maximum.
    """
    strategy = (groups.BREADTH_FIRST, groups.DEPTH_FIRST)[random.integers(2)]
    maximum = (None, None, None, 1, 2, 5, 20)[random.integers(7)]
    try:
        expected = model.candidates(world, query)
    except model.Unknown:
        expected = None
    try:
        found = find(index, query, random, limit=maximum, strategy=strategy)
    except model.Unknown as error:
        return [] if expected is None else [f"{error} instead of {expected}"]
    if expected is None:
        return [f"{len(found.rows)} although a class or a trait does not exist"]
    return list(_differences(expected, list(candidates_of(index, found)), query.limit, maximum,
                             found.is_cut, strategy))


def _differences(expected, found, limit, maximum, is_cut, strategy):
    if len(found) != len(set(found)):
        yield f"found twice: {[each for each in set(found) if found.count(each) > 1]}"
    if extra := set(found) - expected:
        yield f"not candidates: {extra}"
    if limit is maximum is None and (missing := expected - set(found)):
        yield f"missing: {missing}"
    bounds = [each for each in (limit, maximum) if each is not None]
    if len(found) != min([len(expected), *bounds]):
        yield f"{len(found)} of {len(expected)}, limit {limit}, maximum {maximum}, {strategy}"
    # A limit of the query is not a cut.
    if is_cut != (maximum is not None and maximum < min(len(expected), limit or len(expected))):
        yield f"is_cut {is_cut} of {len(expected)}, limit {limit}, maximum {maximum}, {strategy}"
