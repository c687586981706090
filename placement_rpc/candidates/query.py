# SPDX-License-Identifier: Apache-2.0
"""The query of a search for candidates, and its results."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from placement_rpc.candidates import ordering
from placement_rpc.objects.request import ResourceRequest


@dataclasses.dataclass(frozen=True, slots=True)
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


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """One group of a request: what has to be served together.

    The unsuffixed group may take each class from another provider of a tree, or from one that
    shares with it. Every other group is served by one provider.

    :param suffix: the name of the group; "" for the unsuffixed one
    :param amounts: class name to amount; empty for a group without resources
    :param required: lists of trait names: at least one of each list
    :param forbidden: trait names: none of them
    :param member_of: lists of aggregate uuids: at least one of each list
    :param not_member_of: aggregate uuids: none of them
    :param in_tree: the uuid of a provider, whose tree the group has to be served from
    """

    suffix: str
    amounts: Mapping[str, int]
    required: Sequence[Sequence[str]] = ()
    forbidden: Sequence[str] = ()
    member_of: Sequence[Sequence[str]] = ()
    not_member_of: Sequence[str] = ()
    in_tree: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class GroupsQuery:
    """A request for candidates in groups.

    :param groups: in their order of appearance, which decides about errors (see
        :func:`placement_rpc.candidates.groups.find`)
    :param group_policy: "isolate" if no two groups with a suffix may have the same provider
    :param same_subtree: lists of suffixes: the provider of one of these groups is an ancestor
        of all other providers of them, or is each of them
    :param root_required: names of traits that the root of the tree has
    :param root_forbidden: names of traits that it does not have
    :param limit: the maximum number of candidates; None for all
    :param nested: False for callers that know no trees, below microversion 1.29: no candidate has
        two providers of one tree
    """

    groups: Sequence[Group]
    group_policy: str | None = None
    same_subtree: Sequence[Sequence[str]] = ()
    root_required: Sequence[str] = ()
    root_forbidden: Sequence[str] = ()
    limit: int | None = None
    nested: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """What one column of :class:`Found` stands for.

    :param suffix: the group that is served
    :param amounts: class id to amount: one class for a column of the unsuffixed group, all
        classes of any other group, none for a group without resources
    """

    suffix: str
    amounts: Mapping[int, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """The candidates of a request in groups, valid while the lock of the index is held.

    :param columns: one for each class of the unsuffixed group, then one for each other group
    :param rows: array of int32, candidates x columns: the slot of the provider that serves each
        column; no two rows are equal
    :param is_cut: whether there may be more candidates than the maximum of the service let
        through; a limit of the query does not count as a cut
    """

    columns: Sequence[Column]
    rows: np.ndarray
    is_cut: bool = False


def query_of(request: ResourceRequest, class_ids: Mapping[str, int],
             limit: int | None = None) -> CandidateQuery:
    """Return the query of a request.

    :param class_ids: name to id of the requested classes
    :param limit: the maximum number of candidates, in place of the request's; None for that
    """
    return CandidateQuery(
        {class_ids[name]: amount for name, amount in request.resources.items()},
        request.value("member_of") or (), request.value("not_member_of") or (),
        request.value("order") or ordering.RANDOM, limit or request.value("limit"))


def with_class_names(found: list[Candidate], class_ids: dict[str, int]) -> list[Candidate]:
    """Return candidates with ``free`` by names of classes instead of by ids."""
    for each in found:
        each.free = {name: each.free[id_] for name, id_ in class_ids.items()}
    return found
