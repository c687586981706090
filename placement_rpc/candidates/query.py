# SPDX-License-Identifier: Apache-2.0
"""The query of a search for candidates, and its results."""

import dataclasses
from collections.abc import Collection, Sequence

from placement_rpc.candidates import ordering
from placement_rpc.objects.request import ResourceRequest


@dataclasses.dataclass(slots=True)
class CandidateQuery:
    """A request for candidates, with classes by their ids.

    :param amounts: dict of class id to amount
    :param member_of: lists of aggregate uuids: the provider is in at least one of each list
    :param not_member_of: aggregate uuids: the provider is in none of them
    :param order: one of :data:`placement_rpc.objects.request.ORDERS`
    :param limit: the maximum number of candidates; None for all
    """

    amounts: dict[int, int]
    member_of: Sequence[Sequence[str]] = ()
    not_member_of: Sequence[str] = ()
    order: str = ordering.RANDOM
    limit: int | None = None


@dataclasses.dataclass(slots=True)
class Candidate:
    """A provider that fits.

    :param free: dict of each requested class, by its id or its name, to how much is free of it
    """

    id: int
    uuid: str
    name: str
    generation: int
    free: dict[int | str, int]


@dataclasses.dataclass(slots=True)
class ProviderView:
    """What a provider has of the classes of a request, whether it fits or not.

    :param inventories: dict of class name to a dict of capacity, used, min_unit, max_unit and
        step_size; None where the provider has no inventory of the class
    :param aggregates: uuids of all aggregates of the provider
    """

    uuid: str
    name: str
    generation: int
    inventories: dict[str, dict[str, int] | None]
    aggregates: Collection[str]


def query_of(request: ResourceRequest, class_ids: dict[str, int]) -> CandidateQuery:
    """Return the query of a request.

    :param class_ids: dict of name to id of the requested classes
    """
    return CandidateQuery(
        {class_ids[name]: amount for name, amount in request.resources.items()},
        request.value("member_of") or (), request.value("not_member_of") or (),
        request.value("order") or ordering.RANDOM, request.value("limit"))


def with_class_names(found: list[Candidate], class_ids: dict[str, int]) -> list[Candidate]:
    """Return candidates with ``free`` by names of classes instead of by ids."""
    for each in found:
        each.free = {name: each.free[id_] for name, id_ in class_ids.items()}
    return found
