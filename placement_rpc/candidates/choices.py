# SPDX-License-Identifier: Apache-2.0
"""Which providers may serve each part of a request, by the trees of a window."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from placement_rpc.candidates import fitting
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.parts import Collective, Part
from placement_rpc.candidates.windows import Window


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """Providers that may serve a part, by tree.

    The tree of number n may choose the ``slots`` from ``starts[n]`` up to ``ends[n]``.

    :param most: class id to an array by entry of ``slots``: the greatest sum of amounts of the
        class that each can give; only classes that several parts ask for are there
    """

    slots: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    most: dict[int, np.ndarray]

    def of(self, trees: slice | np.ndarray) -> "Choices":
        """Return the choices of some of the trees."""
        return Choices(self.slots, self.starts[trees], self.ends[trees], self.most)


class Pairs:
    """Providers that may serve a part, each with the number of a tree that it serves."""

    def __init__(self, numbers: np.ndarray, slots: np.ndarray):
        self.numbers, self.slots = numbers, slots

    def counts(self, trees: int) -> np.ndarray:
        """Return how many providers each tree has, array of int by its number."""
        return np.bincount(self.numbers, minlength=trees)

    def choices(self, index: CandidateIndex, keep: np.ndarray, places: np.ndarray,
                class_ids: Sequence[int]) -> Choices:
        """Return the choices of some trees.

        :param keep: array of bool by the number of a tree
        :param places: array of int: the new numbers of the trees that are kept
        :param class_ids: the classes for ``most``
        """
        kept = keep[self.numbers]
        numbers, slots = places[self.numbers[kept]], self.slots[kept]
        ends = np.cumsum(np.bincount(numbers, minlength=int(np.count_nonzero(keep))))
        starts = np.concatenate((ends[:0], [0], ends[:-1]))
        most = {}
        for class_id in class_ids:
            inventories = index.inventories[class_id]
            most[class_id] = fitting.most(inventories, inventories.rows_of(slots)[0])
        return Choices(slots, starts, ends, most)


def own_pairs(index: CandidateIndex, window: Window, part: Part) -> Pairs:
    """Return the providers of a window's trees that can serve a part, each for its own tree."""
    slots = _with_room(index, part, window)
    numbers = window.numbers_of(slots)
    allowed = part.allows(index, slots, window.roots[numbers])
    return Pairs(numbers[allowed], slots[allowed])


def _with_room(index, part, window):
    """Return the slots of a window that have room for all amounts of a part, ascending."""
    if not part.amounts:
        return np.arange(window.first, window.end, dtype=np.int32)[
            index.tree[window.first:window.end] >= 0]
    if any(class_id not in index.inventories for class_id in part.amounts):
        return np.empty(0, np.int32)
    tables = [(index.inventories[class_id], amount) for class_id, amount in part.amounts.items()]
    # The rarest class first leaves the fewest providers to check for the next one.
    tables.sort(key=lambda each: len(each[0].slots))
    first, amount = tables[0]
    rows = window.rows(first)
    slots = first.slots[rows][fitting.fits(first, rows, amount)]
    for table, amount in tables[1:]:
        slots = slots[_fits_at(table, slots, amount)]
    return slots


def _fits_at(inventories, slots, amount):
    rows, there = inventories.rows_of(slots)
    return there & fitting.fits(inventories, rows, amount)


def sharing_slots(index: CandidateIndex, part: Part) -> np.ndarray:
    """Return the sharing providers that can serve a part, for whichever trees."""
    slots = index.sharing
    if not len(slots) or not part.crosses_trees:
        return slots[:0]
    # The root that they serve may be in a forbidden aggregate still: see shared_pairs().
    fits = part.allows(index, slots)
    for class_id, amount in part.amounts.items():
        if class_id not in index.inventories:
            return slots[:0]
        fits &= _fits_at(index.inventories[class_id], slots, amount)
    return slots[fits]


class Anchors:
    """Which trees of a window the sharing providers serve.

    Providers of the same aggregates serve the same trees: they are one *kind*.

    :param slots: the sharing providers that can serve any part
    """

    def __init__(self, index: CandidateIndex, window: Window, slots: np.ndarray):
        self._index, self._window = index, window
        # A provider without aggregates serves its own tree only, and is in no kind.
        sets = index.aggregate_set[slots]
        self._sets, firsts = np.unique(sets, return_index=True)
        self.served = np.zeros((len(self._sets), len(window)), bool)
        for kind, slot in enumerate(slots[firsts].tolist()):
            if index.aggregate_sets[int(self._sets[kind])]:
                anchors = index.anchors(slot)
                places = np.minimum(anchors.searchsorted(window.trees), len(anchors) - 1)
                self.served[kind] = anchors[places] == window.trees

    def serve(self, slots: np.ndarray) -> np.ndarray:
        """Return an array of bool: whether some sharing providers serve each tree."""
        return self.served[np.unique(self._kinds(slots))].any(axis=0)

    def _kinds(self, slots):
        return self._sets.searchsorted(self._index.aggregate_set[slots])

    def pairs(self, part: Part, slots: np.ndarray, trees: np.ndarray) -> Pairs:
        """Return the pairs of trees of the window and sharing providers of other trees.

        :param slots: the sharing providers that can serve the part
        :param trees: array of bool: the trees that are wanted
        """
        index, window = self._index, self._window
        wanted = np.flatnonzero(trees)
        places, numbers = np.nonzero(self.served[:, wanted][self._kinds(slots)])
        numbers = wanted[numbers]
        slots = slots[places]
        # As a provider of its own tree it has been found already.
        kept = index.tree[slots] != window.trees[numbers]
        slots, numbers = slots[kept], numbers[kept]
        kept = part.allows(index, slots, window.roots[numbers])
        return Pairs(numbers[kept].astype(np.int32), slots[kept])


def joined(own: Pairs, shared: Pairs) -> Pairs:
    """Return all pairs in the order of the trees, a tree's own providers first."""
    numbers = np.concatenate((own.numbers, shared.numbers))
    order = np.argsort(numbers, kind="stable")
    return Pairs(numbers[order], np.concatenate((own.slots, shared.slots))[order])


class Batch:
    """Trees that have a provider for each part, with the choices of each.

    :param choices: those of each part, in the order of the parts; one object for equal parts
    """

    def __init__(self, trees: np.ndarray, choices: Sequence[Choices]):
        self.trees, self.choices = trees, choices

    def __len__(self) -> int:
        return len(self.trees)

    def part(self, first: int, end: int) -> "Batch":
        """Return a batch of the trees of a range of numbers."""
        return self._of(slice(first, end))

    def of_parts(self, parts: Sequence[int]) -> "Batch":
        """Return a batch with the choices of some parts of the request only."""
        return Batch(self.trees, [self.choices[part] for part in parts])

    def where(self, trees: np.ndarray) -> "Batch":
        """Return a batch of some of the trees.

        :param trees: array of bool
        """
        return self if trees.all() else self._of(trees)

    def _of(self, trees):
        by_id = {id(each): each for each in self.choices}
        by_id = {key: each.of(trees) for key, each in by_id.items()}
        return Batch(self.trees[trees], [by_id[id(each)] for each in self.choices])


class Finder:
    """Finds the choices of the trees of one window after the other.

    :param parts: those of the request
    :param roots: array of bool by trait set: whether a root may be that of a candidate's tree;
        None if any may
    :param collective: traits that the providers of the unsuffixed group have together
    :param contended: for each part the classes that other parts ask for too
    """

    def __init__(self, index: CandidateIndex, parts: Sequence[Part], roots: np.ndarray | None,
                 collective: Collective | None, contended: Sequence[Sequence[int]]):
        self._index, self._parts, self._roots = index, parts, roots
        self._collective, self._contended = collective, contended
        self._sharing = {part.key: sharing_slots(index, part) for part in parts}
        # Keys of trees that choose among sharing providers of other trees only, see _repeated().
        self._guests: set[bytes] = set()

    @property
    def sharing(self) -> int:
        """The greatest number of sharing providers that can serve a part."""
        return max(map(len, self._sharing.values()), default=0)

    def shares(self, part: Part) -> bool:
        """Return whether a sharing provider may serve a part for other trees than its own."""
        return len(self._sharing[part.key]) > 0

    def find(self, window: Window) -> Batch:
        """Return the trees of a window that have a provider for each part."""
        index = self._index
        viable = self._with_roots(window) & self._with_traits(window)
        if not viable.any():
            return Batch(window.trees[:0], [])
        shared = np.unique(np.concatenate(list(self._sharing.values())))
        anchors = Anchors(index, window, shared) if len(shared) else None
        pairs: dict[tuple, Pairs] = {}
        has_own = np.zeros(len(window), bool)
        for part in self._parts:
            if part.key not in pairs:
                pairs[part.key] = own_pairs(index, window, part)
                is_served = pairs[part.key].counts(len(window)) > 0
                has_own |= is_served
                if anchors is not None:
                    is_served |= anchors.serve(self._sharing[part.key])
                viable &= is_served
                if not viable.any():
                    return Batch(window.trees[:0], [])
        if anchors is not None:
            viable &= ~self._repeated(anchors, viable & ~has_own)
            for part in {part.key: part for part in self._parts if self.shares(part)}.values():
                pairs[part.key] = joined(pairs[part.key], anchors.pairs(
                    part, self._sharing[part.key], viable))
                viable &= pairs[part.key].counts(len(window)) > 0
        return self._batch(window, viable, pairs)

    def _with_roots(self, window):
        """Return an array of bool: whether the root of each tree allows candidates."""
        viable = np.ones(len(window), bool)
        if self._roots is not None:
            viable &= self._roots[self._index.trait_set[window.roots]]
        for part in self._parts:
            if not part.suffix and part.outside is not None:
                return viable & part.outside[self._index.aggregate_set[window.roots]]
        return viable

    def _with_traits(self, window):
        """Return whether each tree has the collective traits, on whichever providers."""
        index, has_all = self._index, np.ones(len(window), bool)
        if self._collective is None or not len(window):
            return has_all
        shared = index.trait_set[np.concatenate([
            self._sharing[part.key] for part in self._parts if not part.suffix])]
        # Up to the first root there are no living providers.
        sets = index.trait_set[window.roots[0]:window.end]
        for needed, met in zip(self._collective.needed, self._collective.met, strict=True):
            has = np.bitwise_or.reduceat(met[sets], window.roots - window.roots[0])
            has |= np.bitwise_or.reduce(met[shared], initial=0)
            has_all &= has & needed == needed
        return has_all

    def _repeated(self, anchors, guests):
        """Return which of some trees have the same choices as one that was found before.

        :param guests: array of bool: trees that choose among providers of other trees only
        """
        repeated = np.zeros(len(guests), bool)
        keys = np.packbits(anchors.served[:, guests], axis=0).T
        for number, key in zip(np.flatnonzero(guests).tolist(), keys, strict=True):
            repeated[number] = key.tobytes() in self._guests
            self._guests.add(key.tobytes())
        return repeated

    def _batch(self, window, viable, pairs):
        trees = window.trees[viable]
        if not len(trees):
            return Batch(trees, [])
        places = np.cumsum(viable, dtype=np.int32) - np.int32(1)
        classes: dict[tuple, set[int]] = {}
        for part, class_ids in zip(self._parts, self._contended, strict=True):
            classes.setdefault(part.key, set()).update(class_ids)
        choices = {key: found.choices(self._index, viable, places, sorted(classes[key]))
                   for key, found in pairs.items()}
        return Batch(trees, [choices[part.key] for part in self._parts])
