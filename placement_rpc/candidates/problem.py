# SPDX-License-Identifier: Apache-2.0
"""The rules that the providers of a request's parts have to obey together."""

import dataclasses
import functools
import operator
from collections.abc import Iterable, Sequence

import numpy as np

from placement_rpc.candidates.choices import Choices
from placement_rpc.candidates.contention import Contention
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.parts import Collective, Part

# How many lists of same_subtree are checked before they are complete, and how many ancestors of a
# provider are looked at then; the rest is left to the check of complete lists.
_MAX_TOPS, _MAX_CLIMB = 16, 64


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a request about the relations of its groups.

    :param isolate: whether no two groups with a suffix may have the same provider
    :param nested: whether a candidate may have several providers of one tree
    :param subtrees: sets of suffixes: of the providers of each set one is an ancestor of all
        others, or is each of them
    :param collective: traits that the providers of the unsuffixed group have together
    """

    isolate: bool = False
    nested: bool = True
    subtrees: frozenset[frozenset[str]] = frozenset()
    collective: Collective | None = None

    def apart(self, one: Part, other: Part) -> bool:
        """Return whether two parts need different providers."""
        return self.isolate and bool(one.suffix) and bool(other.suffix)

    def in_other_trees(self, one: Part, other: Part) -> bool:
        """Return whether different providers of two parts have to be of different trees."""
        return not self.nested and bool(one.amounts) and bool(other.amounts)

    def related(self, one: Part, other: Part) -> bool:
        """Return whether the provider of one part restricts that of the other."""
        return (self.apart(one, other) or self.in_other_trees(one, other)
                or not one.amounts.keys().isdisjoint(other.amounts)
                or any({one.suffix, other.suffix} <= each for each in self.subtrees)
                or (self.collective is not None and not one.suffix and not other.suffix))

    def equal(self, one: Part, other: Part) -> bool:
        """Return whether two parts can swap their providers in every candidate."""
        return bool(one.suffix) and one.key == other.key and all(
            (one.suffix in each) == (other.suffix in each) for each in self.subtrees)


@dataclasses.dataclass(frozen=True, slots=True)
class _Relation:
    """What an earlier part means for the providers of a part.

    :param amounts: class id to how much the earlier part takes of a class that both ask for
    """

    earlier: int
    apart: bool
    in_other_trees: bool
    amounts: dict[int, int]


@dataclasses.dataclass(frozen=True, slots=True)
class _Subtree:
    """What is to be checked of a list of same_subtree when a part has its provider.

    :param number: of the list
    :param levels: the parts of the list that have providers, the new one last
    :param is_complete: whether these are all of the list
    """

    number: int
    levels: list[int]
    is_complete: bool


class Problem:
    """Parts in the order in which providers are chosen for them, and the rules between them.

    :param parts: in that order
    """

    def __init__(self, parts: Sequence[Part], rules: Rules):
        self.parts, self.rules = parts, rules
        levels = range(len(parts))
        #: Whether each part is equal to the one before.
        self.repeats = [level > 0 and rules.equal(parts[level - 1], parts[level])
                        for level in levels]
        #: 1 if equal parts need different providers, else 0.
        self.is_apart = int(rules.isolate)
        #: How many later providers each part leaves to equal parts that need others.
        self.reserved = [0] * len(parts)
        for level in reversed(levels[:-1]):
            if rules.isolate and self.repeats[level + 1]:
                self.reserved[level] = self.reserved[level + 1] + 1
        self._relations = [list(self._relations_of(level)) for level in levels]
        self._subtrees = [list(self._subtrees_of(level)) for level in levels]
        self._together = [level for level in levels if not parts[level].suffix]
        #: About how much work it is to try a provider, in units of 4 ns.
        self.work = [5 + level // 2 + 2 * len(self._relations[level])
                     + 3 * sum(len(each.levels) for each in self._subtrees[level])
                     + (5 * level * len(rules.collective.needed) if rules.collective else 0)
                     for level in levels]

    def _relations_of(self, level):
        part, is_equal = self.parts[level], self.repeats[level]
        for earlier in reversed(range(level)):
            other = self.parts[earlier]
            each = _Relation(
                # Equal parts take later providers each.
                earlier, self.rules.apart(part, other) and not is_equal,
                self.rules.in_other_trees(part, other),
                {} if self.rules.apart(part, other) else {
                    class_id: amount for class_id, amount in other.amounts.items()
                    if class_id in part.amounts})
            if each.apart or each.in_other_trees or each.amounts:
                yield each
            is_equal = is_equal and self.repeats[earlier]

    def _subtrees_of(self, level):
        """Yield what is to be checked of same_subtree when a part has its provider."""
        for number, members in enumerate(self._lists):
            levels = [each for each in members if each <= level]
            if level in levels and len(levels) > 1:
                yield _Subtree(number, levels, len(levels) == len(members))

    @functools.cached_property
    def _lists(self) -> list[list[int]]:
        """The lists of same_subtree as parts."""
        of_suffix = {part.suffix: level for level, part in enumerate(self.parts)}
        lists = {frozenset(of_suffix[suffix] for suffix in each if suffix in of_suffix)
                 for each in self.rules.subtrees}
        return sorted(sorted(each) for each in lists if len(each) > 1)

    @property
    def contended(self) -> list[list[int]]:
        """For each part the ids of the classes that another part may ask of the same provider."""
        class_ids: list[set[int]] = [set() for _ in self.parts]
        for level, relations in enumerate(self._relations):
            for each in relations:
                class_ids[level].update(each.amounts)
                class_ids[each.earlier].update(each.amounts)
        return list(map(sorted, class_ids))

    @property
    def equal(self) -> list[list[int]]:
        """Lists of the numbers of equal parts, each of two at the least."""
        found: list[list[int]] = []
        for level, repeats in enumerate(self.repeats):
            if repeats:
                found[-1].append(level)
            else:
                found.append([level])
        return [each for each in found if len(each) > 1]

    @functools.cached_property
    def contentions(self) -> list[Contention]:
        """What a provider may serve only some parts of."""
        found = []
        suffixed = [level for level, part in enumerate(self.parts) if part.suffix]
        if self.rules.isolate and len(suffixed) > 1:
            found.append(Contention(suffixed, [1] * len(suffixed), None))
        contended = self.contended
        for class_id in sorted(set().union(*contended)):
            levels = [level for level, each in enumerate(contended) if class_id in each]
            found.append(Contention(
                levels, [self.parts[level].amounts[class_id] for level in levels], class_id))
        return found

    @functools.cached_property
    def components(self) -> list[list[int]]:
        """The parts, by their numbers, that restrict each other; not those that none restricts."""
        found: list[list[int]] = []
        for level, part in enumerate(self.parts):
            near = [each for each in found
                    if any(self.rules.related(part, self.parts[other]) for other in each)]
            found = [each for each in found if each not in near]
            found.append(sorted([level, *(other for each in near for other in each)]))
        return [each for each in found if len(each) > 1]

    def rest(self, index: CandidateIndex, choices: Sequence[Choices],
             trees: int) -> list[list[np.ndarray]]:
        """Return which collective requirements the later parts may meet.

        :returns: for each number of bits a list, by level, of an array by tree
        """
        collective = self.rules.collective
        if collective is None:
            return []
        found = []
        for met in collective.met:
            rest = np.zeros(trees, np.int64)
            levels = []
            for level in reversed(range(len(choices))):
                levels.append(rest)
                if level in self._together:
                    rest = rest | _any_of(choices[level], met, index.trait_set)
            found.append(levels[::-1])
        return found

    def tops(self, choices: Sequence[Choices]) -> list[np.ndarray]:
        """Return, for each list of same_subtree, the slots of all providers for its groups.

        :returns: ascending arrays; empty ones for those that are not checked before all of the
            list have providers
        """
        return [np.unique(np.concatenate([choices[level].slots for level in members]))
                if len(members) > 2 and number < _MAX_TOPS else np.empty(0, np.int32)
                for number, members in enumerate(self._lists)]

    def obeys(self, index: CandidateIndex, level: int, choices: Sequence[Choices],
              entries: Sequence[np.ndarray], rows: np.ndarray, new: np.ndarray,
              rest: Sequence[np.ndarray], tops: Sequence[np.ndarray]) -> np.ndarray | None:
        """Return an array of bool: whether partial candidates obey the rules with one part more.

        :param entries: for each part before, the entry in its choices, by partial candidate
        :param rows: the partial candidate of each new one
        :param new: its entry in the choices of the part
        :param rest: for each number of collective bits an array by partial candidate, see
            :meth:`rest`
        :param tops: see :meth:`tops`
        :returns: None if all do
        """
        slots = choices[level].slots[new]

        def slots_of(earlier):
            return choices[earlier].slots[entries[earlier][rows]]

        tests = [*self._in_other_trees(index, level, slots, slots_of),
                 *self._fits(level, choices, entries, rows, new, slots, slots_of),
                 *self._in_subtrees(index, level, slots, slots_of, tops),
                 *self._meets(index, level, slots, slots_of, rows, rest)]
        return functools.reduce(operator.and_, tests) if tests else None

    def _in_other_trees(self, index, level, slots, slots_of) -> Iterable[np.ndarray]:
        for each in self._relations[level]:
            if each.in_other_trees:
                other = slots_of(each.earlier)
                yield (slots == other) | (index.tree[slots] != index.tree[other])

    def _fits(self, level, choices, entries, rows, new, slots,
              slots_of) -> Iterable[np.ndarray]:
        taken: dict[int, np.ndarray] = {}
        for each in self._relations[level]:
            if not each.apart and not each.amounts:
                continue
            if choices[each.earlier] is choices[level]:
                is_same = entries[each.earlier][rows] == new
            else:
                is_same = slots_of(each.earlier) == slots
            if each.apart:
                yield ~is_same
            for class_id, amount in each.amounts.items():
                before = taken.get(class_id, self.parts[level].amounts[class_id])
                taken[class_id] = before + is_same * np.int64(amount)
        for class_id, amount in taken.items():
            yield amount <= choices[level].most[class_id][new]

    def _in_subtrees(self, index, level, slots, slots_of, tops) -> Iterable[np.ndarray]:
        for each in self._subtrees[level]:
            if not each.is_complete and not len(tops[each.number]):
                continue
            highest = lowest = slots
            for earlier in each.levels[:-1]:
                other = slots_of(earlier)
                highest, lowest = np.minimum(highest, other), np.maximum(lowest, other)
            # A tree is in the order of depth first, so an ancestor comes before its subtree.
            is_subtree = lowest < index.subtree_end[highest]
            if not each.is_complete:
                apart = np.flatnonzero(~is_subtree)
                is_subtree[apart] = _have_top(
                    index, tops[each.number], highest[apart], lowest[apart])
            yield is_subtree

    def _meets(self, index, level, slots, slots_of, rows, rest) -> Iterable[np.ndarray]:
        if self.rules.collective is None or level not in self._together:
            return
        before = [slots_of(earlier) for earlier in self._together if earlier < level]
        for needed, met, later in zip(
                self.rules.collective.needed, self.rules.collective.met, rest, strict=True):
            has = functools.reduce(
                operator.or_, [met[index.trait_set[each]] for each in [slots, *before]],
                later[rows])
            yield has & needed == needed


def _have_top(index, tops, highest, lowest):
    """Return whether any of some providers is an ancestor of the first and the last of others."""
    found = np.zeros(len(highest), bool)
    left, above = np.arange(len(highest)), highest
    for _ in range(_MAX_CLIMB):
        above = index.parent[above]
        left, above = left[above >= 0], above[above >= 0]
        if not len(left):
            return found
        covers = index.subtree_end[above] > lowest[left]
        places = np.minimum(tops.searchsorted(above), len(tops) - 1)
        is_top = covers & (tops[places] == above)
        found[left[is_top]] = True
        left, above = left[~is_top], above[~is_top]
    found[left] = True
    return found


def _any_of(choices, met, trait_set):
    """Return what any of the choices of each tree meets."""
    # Each pair of numbers begins and ends a tree; what is between two trees is not used.
    values = np.append(met[trait_set[choices.slots]], 0)
    borders = np.stack((choices.starts, choices.ends), axis=1).ravel()
    return np.bitwise_or.reduceat(values, borders)[::2]


def in_order(parts: Sequence[Part], rules: Rules, sizes: Sequence[int]) -> list[int]:
    """Return the numbers of parts in a good order to choose providers for them.

    A part comes after those that restrict it, since the sooner a rule is checked, the less is
    tried in vain; those of few providers come before others; equal parts come together, and parts
    that nothing restricts last.

    :param sizes: about how many providers can serve each part
    """
    related = [{other for other in range(len(parts))
                if other != part and rules.related(parts[part], parts[other])}
               for part in range(len(parts))]
    left, order = list(range(len(parts))), list[int]()
    while left:
        placed = set(order)
        best = min(left, key=lambda part: (
            not related[part], -len(related[part] & placed), sizes[part]))
        equal = [part for part in left
                 if part == best or rules.equal(parts[part], parts[best])]
        order += equal
        left = [part for part in left if part not in equal]
    return order
