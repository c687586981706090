# SPDX-License-Identifier: Apache-2.0
"""Which rule of a request leaves how many providers and trees of the whole fleet.

The rules are applied one after the other: those about roots, then those of each group, then those
between groups. A tree is left if it can still serve all that was applied so far.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from placement_rpc.candidates import capacity as rule
from placement_rpc.candidates import counting, fitting, parts, taking
from placement_rpc.candidates.dependent_trees import PackingBudget
from placement_rpc.candidates.explanation import any_of
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.query import Group, GroupsQuery
from placement_rpc.candidates.taking import Taken

_SHOWN = 300


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A rule, and what it leaves.

    :param group: the suffix of the group whose rule it is; None for a rule about all
    """

    rule: str
    group: str | None
    resource_class: str | None
    detail: str
    providers: int
    trees: int


@dataclasses.dataclass(frozen=True, slots=True)
class Funnel:
    """The steps up to the rules between groups, and what these are applied to.

    :param left: array of bool by tree: whether it is left by the steps
    """

    steps: Sequence[Step]
    taken: Taken
    left: np.ndarray

    def finished(self, seconds: float) -> list[dict]:
        """Return all steps, as dicts.

        :param seconds: of processor time, for trees whose groups compete for providers
        """
        steps = list(self.steps)
        if counting.may_depend(self.taken.columns, self.taken.rules):
            serving, is_certain = counting.serving(
                self.taken.columns, self.taken.rules, self.taken.trees, PackingBudget(seconds))
            left = self.left & serving
            text = "can serve all of it together" + (
                "" if is_certain else "; not all trees were tried, this is the most that can")
            slots = [column.slots[(column.units > 0) & left[column.anchors]]
                     for column in self.taken.columns]
            steps.append(Step("together", None, None, text,
                              len(np.unique(np.concatenate(slots))), int(left.sum())))
        return [dataclasses.asdict(step) for step in steps]


def funnel(index: CandidateIndex, query: GroupsQuery) -> Funnel:
    """Apply the rules of a request to the fleet.

    :raises ResourceClassNotFound: if there is no class of a name
    :raises TraitNotFound: if there is no trait of a name
    :raises RequestTooComplex: if the request concerns too many inventories
    """
    parts.check_names(index, query)
    taken = taking.take(index, query)
    alive = index.tree >= 0
    providers = np.bincount(index.tree[alive], minlength=len(index.root))
    left = providers > 0
    steps = [Step("fleet", None, None, "exist", int(providers.sum()), int(left.sum()))]
    for rule_name, text, trait, is_required in (
            *(("root_required", "with", each, True) for each in query.root_required),
            *(("root_forbidden", "without", each, False) for each in query.root_forbidden)):
        has = index.trait_sets.having_any([trait])[index.trait_set[index.root]]
        left = left & (has == is_required)
        steps.append(Step(rule_name, None, None, f"have a root {text} {trait}",
                          int(providers[left].sum()), int(left.sum())))
    for group, others in _equal(query.groups):
        narrowing = _Narrowing(index, group, left)
        text = f", for each of {others + 1} equal groups" if others else ""
        steps += [dataclasses.replace(step, detail=step.detail + text)
                  for step in narrowing.steps()]
        left = narrowing.left
    return Funnel(steps, taken, left)


def _equal(groups: Sequence[Group]) -> list[tuple[Group, int]]:
    """Return one of each equal groups, with the number of its equals."""
    found: dict[str, tuple[Group, int]] = {}
    for group in groups:
        key = repr(dataclasses.replace(group, suffix="same")) if group.suffix else ""
        first, others = found.get(key, (group, -1))
        found[key] = first, others + 1
    return list(found.values())


class _Narrowing:
    """Applies the rules of one group.

    :param left: array of bool by tree: whether it is left by the rules before
    """

    def __init__(self, index: CandidateIndex, group: Group, left: np.ndarray):
        self._index, self._group = index, group
        self.left = left
        # Each provider that has something of what is asked for, once for each of its anchors.
        slots = self._with_inventories()
        self._anchors, places = taking.pairs_of(index, slots)
        self._slots = slots if places is None else slots[places]
        self._allowed = np.ones(len(self._slots), bool)

    def _with_inventories(self):
        """Return the slots with inventories of all classes, or of any for the unsuffixed group."""
        index, slots = self._index, None
        for name in self._group.amounts:
            inventories = index.inventories.get(index.class_ids[name])
            some = np.empty(0, np.int32) if inventories is None else inventories.slots
            some = some[index.tree[some] >= 0]
            if slots is None:
                slots = some
            elif self._group.suffix:
                slots = np.intersect1d(slots, some, assume_unique=True)
            else:
                slots = np.union1d(slots, some)
        return np.flatnonzero(index.tree >= 0).astype(np.int32) if slots is None else slots

    def steps(self) -> Iterator[Step]:
        """Yield a step for each rule."""
        group = self._group
        if group.amounts:
            classes = sorted(group.amounts)
            joint = " and " if group.suffix else " or "
            yield self._step("inventory", f"have {joint.join(classes)}", self._allowed)
        for rule_name, text, some in self._filters():
            yield self._step(rule_name, text, self._allowed & self._meeting(some))
        if self._is_collective:
            for names in group.required:
                has = self._index.trait_sets.having_any(names)[self._index.trait_set[self._slots]]
                self._keep_trees(self._allowed & has)
                yield self._step("required", f"are in trees with {any_of(names)}", self._allowed)
        yield from self._class_steps()

    @property
    def _is_collective(self):
        """Whether traits may be on different providers."""
        return not self._group.suffix and len(self._group.amounts) > 1

    def _filters(self) -> Iterator[tuple[str, str, Group]]:
        """Yield the rules about single providers, each with a group that has those up to it.

        A group without resources is found by what it requires, so that comes first.
        """
        group = self._group
        some = Group(group.suffix, dict(list(group.amounts.items())[:1]))
        # A group without resources may be served from any tree, if the one that is named exists.
        if group.in_tree is not None and (
                group.amounts or not self._index.slots_of_uuids([group.in_tree])):
            some = dataclasses.replace(some, in_tree=group.in_tree)
            yield "in_tree", f"are in the tree of {group.in_tree}", some
        for number, uuids in enumerate(group.member_of, 1):
            some = dataclasses.replace(some, member_of=group.member_of[:number])
            yield "member_of", f"are in {any_of(uuids)}", some
        if not self._is_collective:
            for number, names in enumerate(group.required, 1):
                some = dataclasses.replace(some, required=group.required[:number])
                yield "required", f"have {any_of(names)}", some
        if group.not_member_of:
            some = dataclasses.replace(some, not_member_of=group.not_member_of)
            yield "not_member_of", f"are not in {any_of(group.not_member_of)}", some
        if group.forbidden:
            some = dataclasses.replace(some, forbidden=group.forbidden)
            yield "forbidden", f"do not have {any_of(group.forbidden)}", some
        if not group.amounts and not group.required and not group.member_of:
            yield "required", "are found by a trait or an aggregate, and none is asked for", some

    def _meeting(self, group: Group) -> np.ndarray:
        """Return an array of bool: whether the provider of each pair meets a part of the rules."""
        for part in parts.parts_of(self._index, group):
            allowed = part.allows(self._index, self._slots, self._index.root[self._anchors])
            return allowed & (part.crosses_trees | (
                self._index.tree[self._slots] == self._anchors))
        return np.zeros(len(self._slots), bool)

    def _class_steps(self) -> Iterator[Step]:
        index = self._index
        before = self._allowed
        for name, amount in self._group.amounts.items():
            inventories = index.inventories.get(index.class_ids[name])
            if not self._group.suffix:
                # Each class may come from another provider.
                self._allowed = before
            if inventories is None:
                yield self._step("inventory", f"have {name}", self._allowed & False, name)
                continue
            rows, has = inventories.rows_of(self._slots)
            trees = int(self.left.sum())
            step = self._step("inventory", f"have {name}", self._allowed & has, name)
            if step.trees < trees:
                yield step
            meets = self._allowed & has & fitting.meets_units(inventories, rows, amount)
            if np.any(self._allowed & has & ~meets):
                yield self._step("units", f"allow {amount} of {name} at a time", meets, name)
            yield self._step("capacity", f"have {amount} of {name} left",
                             meets & rule.has_room(
                                 inventories.capacity[rows], inventories.used[rows], amount), name)

    def _step(self, name: str, text: str, allowed: np.ndarray,
              resource_class: str | None = None) -> Step:
        """Keep the pairs that a rule allows, and the trees that have any."""
        self._allowed = allowed
        self._keep_trees(allowed)
        slots = self._slots[allowed & self.left[self._anchors]]
        providers = len(np.unique(slots)) if self._index.sharing_ids else len(slots)
        return Step(name, self._group.suffix, resource_class, text[:_SHOWN], providers,
                    int(self.left.sum()))

    def _keep_trees(self, allowed):
        able = np.zeros(len(self.left), bool)
        able[self._anchors[allowed]] = True
        self.left = self.left & able
