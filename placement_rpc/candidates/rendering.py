# SPDX-License-Identifier: Apache-2.0
"""The answer to a request for allocation candidates: copied from the index, written as JSON.

:func:`take` copies under the lock of the index what the answer shows, and :meth:`Answer.parts`
writes the text after that. No text is kept between answers: writing it takes less than a
microsecond for each provider, and a cache of the texts of all trees would take several times the
memory of the index.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from placement_rpc.candidates import answer_text
from placement_rpc.candidates.index import CandidateIndex
from placement_rpc.candidates.query import Found

# Bytes of a part. Fewer and larger parts would make the first wait longer for the others.
_PART = 2 ** 17


class Answer:
    """What an answer shows, copied from the index; ``count`` is the number of candidates."""

    def __init__(self, shape: answer_text.Shape, requests: answer_text.Requests,
                 summaries: answer_text.Summaries):
        self._shape, self._requests, self._summaries = shape, requests, summaries
        self.count = len(requests.rows)

    def parts(self) -> Iterator[str]:
        """Yield compact JSON text in parts, each after a few milliseconds of work at most.

        Numbers may have spaces before them.
        """
        return _parts(self._texts())

    def _texts(self):
        yield '{"allocation_requests":['
        yield from _without_last_comma(answer_text.of_requests(self._requests, self._shape))
        yield '],"provider_summaries":{'
        yield from _without_last_comma(answer_text.of_summaries(self._summaries, self._shape))
        yield "}}"


def take(index: CandidateIndex, found: Found, minor: int) -> Answer:
    """Copy what an answer shows; the caller holds the lock of the index.

    :param minor: of the microversion 1.``minor`` that the answer is for
    """
    shape = answer_text.Shape.of_microversion(minor)
    names = {class_id: name for name, class_id in index.class_ids.items()}
    classes = index.inventories if shape.all_classes else dict.fromkeys(
        class_id for column in found.columns for class_id in column.amounts)
    requests = answer_text.Requests(
        found.columns, names, found.rows, index.high[found.rows], index.low[found.rows])
    starts, ends = _ranges(index, found, shape.trees)
    return Answer(shape, requests, _summaries(index, starts, ends, {
        class_id: names[class_id] for class_id in classes if class_id in index.inventories}))


def _ranges(index, found, trees):
    """Return the slots that have summaries as ranges: ascending arrays of starts and of ends.

    :param trees: whether all providers of a tree have summaries
    """
    gives = [number for number, column in enumerate(found.columns) if column.amounts]
    slots = np.unique(found.rows[:, gives])
    if not trees:
        return slots, slots + 1
    starts = np.unique(index.root[index.tree[slots]])
    return starts, index.subtree_end[starts]


def _summaries(index, starts, ends, names):
    """Copy what the summaries of ranges of slots show.

    :param names: dict of the id to the name of each class to show
    """
    lengths = ends - starts
    offsets = np.cumsum(lengths) - lengths
    slots = _expanded(starts, lengths)
    # A tree is one range, so its summaries are as far apart as its slots.
    parent = index.parent[slots]
    parent = np.where(parent < 0, -1, parent - slots + np.arange(len(slots)))
    trait_sets, trait_set = _numbered(index.trait_set[slots], len(index.trait_sets))
    return answer_text.Summaries(
        index.high[slots], index.low[slots], parent, np.repeat(offsets, lengths), trait_set,
        [index.trait_sets[number] for number in trait_sets],
        [found for class_id, name in names.items() if len((found := _inventories(
            index.inventories[class_id], name, starts, ends, offsets)).of)])


def _expanded(starts, lengths):
    """Return the numbers of some ranges as one array."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


def _numbered(values, end):
    """Number the distinct values of an array of whole numbers from 0.

    :returns: list of the values, and array of the numbers
    """
    occurs = np.zeros(end, bool)
    occurs[values] = True
    return np.flatnonzero(occurs).tolist(), (np.cumsum(occurs) - 1)[values]


def _inventories(inventories, name, starts, ends, offsets):
    """Copy the inventories of a class of some ranges of slots.

    :param offsets: the number of the first summary of each range
    """
    first, end = (inventories.slots.searchsorted(each) for each in (starts, ends))
    rows = _expanded(first, end - first)
    of = inventories.slots[rows] + np.repeat(offsets - starts, end - first)
    return answer_text.Inventories(name, of, inventories.capacity[rows], inventories.used[rows])


def _without_last_comma(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts that each end with a comma, the last one without it."""
    last = ""
    for text in texts:
        if last:
            yield last
        last = text
    if last:
        yield last[:-1]


def _parts(texts: Iterable[str]) -> Iterator[str]:
    """Yield the same text in fewer parts."""
    waiting: list[str] = []
    size = 0
    for text in texts:
        waiting.append(text)
        size += len(text)
        if size >= _PART:
            yield "".join(waiting)
            waiting, size = [], 0
    yield "".join(waiting)
