# SPDX-License-Identifier: Apache-2.0
"""The parts of a request in groups: what one provider has to serve.

Each class of the unsuffixed group is a part, and each other group is one. Names become ids and
masks here, once for each search.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from placement_rpc import exception
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.query import Group, GroupsQuery

# Requirements that are kept as bits of one number of a trait set.
_BITS = 63


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What one provider has to serve.

    :param key: equal for parts that ask for the same
    :param amounts: class id to amount; empty for a group without resources
    :param traits: array of bool by trait set: whether a provider may serve; None for all
    :param member: array of bool by aggregate set: whether a provider is in what is required;
        None for all
    :param outside: array of bool by aggregate set: whether a provider is in nothing that is
        forbidden; None for all
    :param tree: the first slot of the only tree that may serve, and the slot after it
    """

    suffix: str
    key: tuple
    amounts: Mapping[int, int]
    traits: np.ndarray | None = None
    member: np.ndarray | None = None
    outside: np.ndarray | None = None
    tree: tuple[int, int] | None = None

    @property
    def crosses_trees(self) -> bool:
        """Whether a provider that shares may serve it for other trees than its own."""
        return bool(self.suffix) or self.tree is None

    def allows(self, index: CandidateIndex, slots: np.ndarray,
               roots: np.ndarray | None = None) -> np.ndarray:
        """Return an array of bool: whether providers may serve, whatever room they have.

        :param slots: the providers
        :param roots: for each of them the root of the tree that it is to serve
        """
        allowed = np.ones(len(slots), bool)
        if self.traits is not None:
            allowed &= self.traits[index.trait_set[slots]]
        if self.tree is not None:
            allowed &= (slots >= self.tree[0]) & (slots < self.tree[1])
        if self.member is None and self.outside is None:
            return allowed
        sets = index.aggregate_set[slots]
        # What the root is in, its whole tree is in, but for a group with a suffix.
        of_roots = None if self.suffix or roots is None else index.aggregate_set[roots]
        if self.member is not None:
            is_member = self.member[sets]
            if of_roots is not None:
                is_member |= self.member[of_roots] & (index.tree[slots] == index.tree[roots])
            allowed &= is_member
        if self.outside is not None:
            allowed &= self.outside[sets]
            if of_roots is not None:
                allowed &= self.outside[of_roots]
        return allowed


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Collective:
    """Traits that the providers of the unsuffixed group have to have together.

    :param needed: numbers, in which each requirement is a bit
    :param met: for each of them an array of the same kind by trait set: what a provider meets
    """

    needed: Sequence[int]
    met: Sequence[np.ndarray]


def root_mask(index: CandidateIndex, required: Sequence[str],
              forbidden: Sequence[str]) -> np.ndarray | None:
    """Return an array of bool by trait set: whether a root may be that of a candidate's tree.

    :returns: None if any may
    :raises TraitNotFound: if there is no such trait
    """
    check_traits(index, [required, forbidden])
    if not required and not forbidden:
        return None
    return index.trait_sets.meeting([[name] for name in required], forbidden)


def check_traits(index: CandidateIndex, names: Sequence[Sequence[str]]) -> None:
    """Check that traits exist.

    :param names: lists of names
    :raises TraitNotFound: for the first list that has an unknown one
    """
    for each in names:
        missing = sorted(set(each) - index.traits)
        if missing:
            raise exception.TraitNotFound(traits=", ".join(missing)[:1000])


def check_classes(index: CandidateIndex, group: Group) -> None:
    """Check that the classes of a group exist.

    :raises ResourceClassNotFound: for the first that does not
    """
    for name in group.amounts:
        if name not in index.class_ids:
            raise exception.ResourceClassNotFound(resource_class=name[:255])


def check_names(index: CandidateIndex, query: GroupsQuery) -> None:
    """Check that all names of a request exist, also those of groups that cannot be served.

    :raises ResourceClassNotFound: if there is no class of a name
    :raises TraitNotFound: if there is no trait of a name
    """
    check_traits(index, [query.root_required, query.root_forbidden])
    for group in query.groups:
        check_classes(index, group)
        check_traits(index, [*group.required, group.forbidden])


def is_possible(index: CandidateIndex, group: Group) -> bool:
    """Return False if no provider is in the aggregates that a group requires.

    The names of the group are checked too, but not its traits if the answer is False.

    :raises ResourceClassNotFound: if there is no such class
    :raises TraitNotFound: if there is no such trait
    """
    check_classes(index, group)
    if group.member_of and not index.aggregate_sets.meeting(
            group.member_of)[index.aggregate_set].any():
        return False
    check_traits(index, [*group.required, group.forbidden])
    return True


def parts_of(index: CandidateIndex, group: Group) -> Iterator[Part]:
    """Yield the parts of a group whose classes and traits exist; none if it cannot be served."""
    tree = _tree(index, group)
    if tree == (0, 0) or not (group.amounts or group.required or group.member_of):
        # A group without resources needs something positive to be found by.
        return
    is_collective = not group.suffix and len(group.amounts) > 1
    traits = None if not group.forbidden and (is_collective or not group.required) else (
        index.trait_sets.meeting([] if is_collective else group.required, group.forbidden))
    member = index.aggregate_sets.meeting(group.member_of) if group.member_of else None
    outside = (index.aggregate_sets.meeting([], group.not_member_of)
               if group.not_member_of else None)
    amounts = {index.class_ids[name]: amount for name, amount in group.amounts.items()}
    rest = (_frozen(group.required), frozenset(group.forbidden), _frozen(group.member_of),
            frozenset(group.not_member_of), tree)
    for each in ([amounts] if group.suffix else
                 [{class_id: amount} for class_id, amount in amounts.items()]):
        yield Part(group.suffix, (bool(group.suffix), frozenset(each.items()), *rest), each,
                   traits, member, outside, tree if group.amounts else None)


def _frozen(lists):
    return frozenset(map(frozenset, lists))


def _tree(index, group):
    """Return the first slot of the tree ``in_tree`` and the slot after it; 0 and 0 if unknown."""
    if group.in_tree is None:
        return None
    slot = index.slots_of_uuids([group.in_tree]).get(group.in_tree)
    if slot is None:
        return 0, 0
    root = int(index.root[index.tree[slot]])
    return root, int(index.subtree_end[root])


def collective_of(index: CandidateIndex, group: Group) -> Collective | None:
    """Return what the providers of the unsuffixed group have to meet together; None if nothing.

    A trait that one provider has to have is not among it: see :func:`parts_of`.
    """
    if group.suffix or len(group.amounts) < 2 or not group.required:
        return None
    # Requirements that the same trait sets meet are one.
    masks = {mask.tobytes(): mask for mask in map(
        index.trait_sets.having_any, {frozenset(each) for each in group.required})}
    needed: list[int] = []
    met: list[np.ndarray] = []
    for first in range(0, len(masks), _BITS):
        some = list(masks.values())[first:first + _BITS]
        needed.append((1 << len(some)) - 1)
        bits = 1 << np.arange(len(some), dtype=np.int64)
        met.append(bits @ np.array(some, np.int64))
    return Collective(needed, met)
