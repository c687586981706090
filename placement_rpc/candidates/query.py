# SPDX-License-Identifier: Apache-2.0
"""What a search for candidates asks, and what it finds."""

import dataclasses

from placement_rpc.candidates import ordering


@dataclasses.dataclass(slots=True)
class ProviderView:
    """What one provider has for a request.

    :param inventories: dict of class name to what it has of it, with capacity, used, min_unit,
        max_unit and step_size; None for nothing
    :param memberships: list of bool, whether it is in one of each list of ``member_of``
    :param barred: list of the uuids of ``not_member_of`` that it is in
    """

    uuid: str
    name: str
    generation: int
    inventories: dict
    memberships: list
    barred: list


def amounts_of(request, ids):
    """:param ids: dict of class name to id; :returns: :class:`Amounts` of a request"""
    return CandidateQuery({ids[name]: amount for name, amount in request.resources.items()},
                   request.value("member_of") or (), request.value("not_member_of") or (),
                   request.value("order") or ordering.RANDOM, request.value("limit"))


def by_name(found, ids):
    """Candidates whose classes go by their names."""
    for each in found:
        each.free = {name: each.free[id_] for name, id_ in ids.items()}
    return found


def memberships(inside, member_of, barred):
    return ([any(uuid in inside for uuid in uuids) for uuids in member_of],
            [uuid for uuid in barred if uuid in inside])


@dataclasses.dataclass(slots=True)
class CandidateQuery:
    """What is looked for.

    :param amounts: dict of class id to amount
    :param member_of: list of lists of aggregate uuids: in one of each list
    :param not_member_of: list of aggregate uuids: in none of them
    :param order: str, of :mod:`placement_rpc.candidates.ordering`
    :param limit: int, how many at the most; None for all
    """

    amounts: dict
    member_of: list = ()
    not_member_of: list = ()
    order: str = ordering.RANDOM
    limit: int | None = None


@dataclasses.dataclass(slots=True)
class Candidate:
    """A provider that fits; ``free`` maps each class that was asked for, by its id or its name, to
    how much is free of it."""

    id: int
    uuid: str
    name: str
    generation: int
    free: dict
