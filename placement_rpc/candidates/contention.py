# SPDX-License-Identifier: Apache-2.0
"""Trees that have too little for all parts of a request together, found without enumerating.

A provider may be able to serve each of several parts, but not all of them: they ask for the same
class, or the policy wants a provider of its own for each. By Hall's theorem, any of these parts
need as many units as they are, of all providers that one of them may choose. This decides for
parts that ask for equal amounts, such as those of eight devices. In other cases a tree that is
left may still have no candidate, which the enumeration finds out.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from placement_rpc.candidates.choices import Batch, Choices

# With more kinds of parts than this, only each kind by itself and all of them together are
# checked, since the number of sets of kinds is 2 to the power of their number.
_MAX_KINDS = 5


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Kind:
    """Parts that have the same choices and ask for the same amount of a class."""

    choices: Choices
    amount: int
    parts: int


@dataclasses.dataclass(frozen=True, slots=True)
class Contention:
    """Parts of which a provider may serve only some.

    :param parts: the numbers of the parts
    :param amounts: how much each asks for
    :param class_id: of which class; None if each needs a provider of its own
    """

    parts: Sequence[int]
    amounts: Sequence[int]
    class_id: int | None


def enough(batch: Batch, contentions: Sequence[Contention]) -> Batch:
    """Return the trees of a batch that are not known to have too little."""
    for each in contentions:
        for kinds in _sets(_kinds(batch, each)):
            if not len(batch):
                return batch
            has_enough = _has_enough(len(batch), kinds, each.class_id)
            if not has_enough.all():
                return enough(batch.where(has_enough), contentions)
    return batch


def _kinds(batch, contention):
    counts: dict[tuple[int, int], int] = {}
    choices = {}
    for part, amount in zip(contention.parts, contention.amounts, strict=True):
        key = id(batch.choices[part]), amount
        choices[key] = batch.choices[part]
        counts[key] = counts.get(key, 0) + 1
    return [_Kind(choices[key], key[1], count) for key, count in counts.items()]


def _sets(kinds: list[_Kind]) -> Iterator[Sequence[_Kind]]:
    """Yield the sets of kinds to check, those of most parts first."""
    sizes = (range(len(kinds), 0, -1) if len(kinds) <= _MAX_KINDS else (len(kinds), 1))
    for size in sizes:
        for each in itertools.combinations(kinds, size):
            if sum(kind.parts for kind in each) > 1:
                yield each


def _has_enough(trees: int, kinds: Sequence[_Kind], class_id: int | None) -> np.ndarray:
    """Return an array of bool: whether each tree has enough for some kinds of parts."""
    numbers, most = _together(kinds, class_id)
    amounts = [kind.amount for kind in kinds]
    least, parts = min(amounts), sum(kind.parts for kind in kinds)
    units = most if least == 1 else most // least
    # More than all of the parts is no use; and sums cannot exceed what a number can hold.
    units = np.minimum(units, parts)
    has_enough = np.bincount(numbers, units, trees) >= parts
    if max(amounts) > least:
        wanted = sum(kind.parts * kind.amount for kind in kinds)
        has_enough &= np.bincount(numbers, np.minimum(most, wanted), trees) >= wanted
    return has_enough


def _together(kinds, class_id):
    """Return the trees and the greatest amounts of all providers that some kinds may choose."""
    found = [_entries(kind.choices) for kind in kinds]
    numbers, entries = found[0]
    if len({id(kind.choices) for kind in kinds}) == 1:
        return numbers, _most(kinds[0].choices, entries, class_id)
    keys = [numbers.astype(np.int64) << 32 | kind.choices.slots[entries]
            for kind, (numbers, entries) in zip(kinds, found, strict=True)]
    most = [_most(kind.choices, entries, class_id)
            for kind, (_, entries) in zip(kinds, found, strict=True)]
    _, firsts = np.unique(np.concatenate(keys), return_index=True)
    return (np.concatenate([numbers for numbers, _ in found])[firsts],
            np.concatenate(most)[firsts])


def _entries(choices):
    """Return the number of the tree of each choice, and its entry in the arrays."""
    lengths = choices.ends - choices.starts
    numbers = np.repeat(np.arange(len(lengths)), lengths)
    before = np.cumsum(lengths) - lengths
    entries = np.arange(len(numbers)) + (choices.starts - before)[numbers]
    return numbers, entries


def _most(choices, entries, class_id):
    if class_id is None:
        return np.ones(len(entries), np.int64)
    return choices.most[class_id][entries]
