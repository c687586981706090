# SPDX-License-Identifier: Apache-2.0
"""A brute-force model of allocation candidates, which every fast search is compared with.

It states the rules of ``GET /allocation_candidates`` and nothing about how to find an answer: for
each root, it tries every choice of providers for every group. It shares no code with the service.
"""

import collections
import dataclasses
import itertools
import typing

SHARES = "MISC_SHARES_VIA_AGGREGATE"
MAX_INT = 2 ** 31 - 1


class Unknown(Exception):
    """A query names a resource class or a trait that does not exist."""


@dataclasses.dataclass
class Inventory:
    """One inventory, with the amount that is in use."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0
    used: int = 0

    @property
    def capacity(self):
        return int((self.total - self.reserved) * self.allocation_ratio)

    def fits(self, amount):
        return (self.used + amount <= self.capacity and self.min_unit <= amount <= self.max_unit
                and amount % self.step_size == 0)

    def fits_sum(self, amount):
        """Whether the amounts of several groups, each of which fits, fit together."""
        return self.used + amount <= self.capacity and amount <= self.max_unit


@dataclasses.dataclass(eq=False)
class Provider:
    """One provider; ``parent`` is the uuid of another, ``inventories`` are by class name."""

    uuid: str
    parent: str | None = None
    inventories: dict = dataclasses.field(default_factory=dict)
    traits: set = dataclasses.field(default_factory=set)
    aggregates: set = dataclasses.field(default_factory=set)

    def fits(self, amounts):
        """Whether each of some amounts, by class, fits by itself."""
        return all(name in self.inventories and self.inventories[name].fits(amount)
                   for name, amount in amounts.items())


@dataclasses.dataclass
class World:
    """Providers, and the resource classes and traits that exist."""

    providers: list
    classes: tuple
    traits: tuple

    def __post_init__(self):
        self.by_uuid = {each.uuid: each for each in self.providers}

    def lineage(self, provider):
        """Return a provider, its parent, and so on up to the root."""
        found = [provider]
        while found[-1].parent is not None:
            found.append(self.by_uuid[found[-1].parent])
        return found

    def root(self, provider):
        return self.lineage(provider)[-1]

    def tree(self, uuid):
        """Return all providers of the tree of a provider; none if the provider is unknown."""
        roots = [self.root(self.by_uuid[uuid])] if uuid in self.by_uuid else []
        return [each for each in self.providers if self.root(each) in roots]

    def has_anchor(self, provider, root):
        """Whether a provider can serve candidates of a root: as one of its tree, or sharing."""
        return self.root(provider) is root or (SHARES in provider.traits and any(
            provider.aggregates & each.aggregates for each in self.tree(root.uuid)))


@dataclasses.dataclass
class Group:
    """What a query asks of one provider, or with an empty suffix of one provider a class.

    ``required`` and ``member_of`` are lists of alternatives; one of each is enough.
    """

    suffix: str = ""
    amounts: dict = dataclasses.field(default_factory=dict)
    required: list = dataclasses.field(default_factory=list)
    forbidden: list = dataclasses.field(default_factory=list)
    member_of: list = dataclasses.field(default_factory=list)
    not_member_of: list = dataclasses.field(default_factory=list)
    in_tree: str | None = None


@dataclasses.dataclass
class Query:
    """A query; ``minor`` is the minor number of its microversion."""

    groups: list
    group_policy: str | None = None
    same_subtree: list = dataclasses.field(default_factory=list)
    root_required: list = dataclasses.field(default_factory=list)
    root_forbidden: list = dataclasses.field(default_factory=list)
    limit: int | None = None
    minor: int = 39


class Candidate(typing.NamedTuple):
    """A set of (provider uuid, class, amount), and one of (suffix, set of provider uuids)."""

    resources: frozenset
    mappings: frozenset


def candidates(world, query):
    """Return the set of all candidates; the limit of the query is left to the caller.

    :raises Unknown: if the query names an unknown class or trait, unless the parts of it before
        that one cannot be served already
    """
    _check_known(world.traits, query.root_required, query.root_forbidden)
    roots = [each for each in world.providers if each.parent is None
             and set(query.root_required) <= each.traits
             and not each.traits & set(query.root_forbidden)]
    choices = {root.uuid: [] for root in roots}
    for group in query.groups:
        if not roots or not _is_possible(world, group):
            return set()
        for root in roots:
            choices[root.uuid].append(list(_choices(world, group, root)))
        if not any(each[-1] for each in choices.values()):
            return set()
    found = set()
    for lists in choices.values():
        for choice in itertools.product(*lists):
            if _obeys(world, query, choice):
                found.add(_candidate(query, choice))
    return {each for each in found if _fits(world, each) and (
        query.minor >= 29 or _is_flat(world, each))}


def _check_known(known, *lists):
    for name in itertools.chain(*lists):
        if name not in known:
            raise Unknown(name)


def _is_possible(world, group):
    """Whether there are providers for each part of a group, looked at alone.

    :raises Unknown: as :func:`candidates`
    """
    _check_known(world.classes, group.amounts)
    if group.member_of and not any(_is_member(each.aggregates, group)
                                   for each in world.providers):
        return False
    _check_known(world.traits, *group.required, group.forbidden)
    tree = world.tree(group.in_tree) if group.in_tree else world.providers
    return bool(tree) and all(any(each.fits({name: amount}) for each in tree)
                              for name, amount in group.amounts.items())


def _is_member(aggregates, group):
    return all(aggregates & set(alternatives) for alternatives in group.member_of)


def _choices(world, group, root):
    """Yield what can serve a group: for each class its provider; under "" one without a class."""
    near = [each for each in world.providers if world.has_anchor(each, root)
            and not each.traits & set(group.forbidden)]
    if group.in_tree and group.amounts:
        near = [each for each in near if each in world.tree(group.in_tree)]
        # The unsuffixed group then takes nothing from a provider that shares with other trees.
        near = [each for each in near if group.suffix or world.root(each) is root]
    if group.suffix:
        for provider in near:
            if (provider.fits(group.amounts) and _is_member(provider.aggregates, group)
                    and not provider.aggregates & set(group.not_member_of)
                    and all(provider.traits & set(each) for each in group.required)
                    and (group.amounts or group.required or group.member_of)):
                yield dict.fromkeys(group.amounts or [""], provider)
        return
    lists = [[each for each in near if each.fits({name: amount})
              and _is_near_member(world, each, root, group)]
             for name, amount in group.amounts.items()]
    for chosen in itertools.product(*lists):
        traits = set().union(*(each.traits for each in chosen))
        if all(traits & set(each) for each in group.required):
            yield dict(zip(group.amounts, chosen, strict=True))


def _is_near_member(world, provider, root, group):
    """Whether a provider, or the root above it, is in the aggregates of the unsuffixed group."""
    above = [root] if world.root(provider) is root else []
    return any(_is_member(each.aggregates, group) for each in (provider, *above)) and not any(
        each.aggregates & set(group.not_member_of) for each in (provider, root))


def _obeys(world, query, choice):
    """Whether a choice for each group obeys the rules about the relations of groups."""
    chosen = {group.suffix: next(iter(providers.values()))
              for group, providers in zip(query.groups, choice, strict=True) if group.suffix}
    if query.group_policy == "isolate" and len(chosen) != len(
            {each.uuid for each in chosen.values()}):
        return False
    for suffixes in query.same_subtree:
        providers = [chosen[suffix] for suffix in suffixes]
        if not any(all(top in world.lineage(each) for each in providers) for top in providers):
            return False
    return True


def _candidate(query, choice):
    amounts, mappings = collections.Counter(), set()
    for group, providers in zip(query.groups, choice, strict=True):
        mappings.add((group.suffix, frozenset(each.uuid for each in providers.values())))
        for name, amount in group.amounts.items():
            amounts[providers[name].uuid, name] += amount
    return Candidate(frozenset((*key, amount) for key, amount in amounts.items()),
                     frozenset(mappings))


def _fits(world, candidate):
    return all(world.by_uuid[uuid].inventories[name].fits_sum(amount)
               for uuid, name, amount in candidate.resources)


def _is_flat(world, candidate):
    """Whether no two providers of a candidate are of one tree, as before microversion 1.29."""
    uuids = {uuid for uuid, _name, _amount in candidate.resources}
    return len(uuids) == len({world.root(world.by_uuid[uuid]).uuid for uuid in uuids})


def summaries(world, query, found):
    """Return the provider summaries of candidates as the JSON has them, with sorted traits."""
    used = {uuid for each in found for uuid, _name, _amount in each.resources}
    shown = used if query.minor < 29 else {
        each.uuid for uuid in used for each in world.tree(uuid)}
    asked = {name for group in query.groups for name in group.amounts}
    answer = {}
    for provider in (world.by_uuid[uuid] for uuid in shown):
        answer[provider.uuid] = summary = {"resources": {
            name: {"capacity": each.capacity, "used": each.used}
            for name, each in provider.inventories.items() if query.minor >= 27 or name in asked}}
        if query.minor >= 17:
            summary["traits"] = sorted(provider.traits)
        if query.minor >= 29:
            summary.update(parent_provider_uuid=provider.parent,
                           root_provider_uuid=world.root(provider).uuid)
    return answer
