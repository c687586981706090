# SPDX-License-Identifier: Apache-2.0
"""The two halves of an answer about allocation candidates, as JSON text.

Records that have the same keys and the same texts apart from UUIDs and numbers are of one *kind*;
their texts are rows of one width, which are filled for many records at a time.
"""

import functools
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placement_rpc.candidates import text_rows
from placement_rpc.candidates.query import Column

# Bytes of text of one kind that are made at a time, so that they stay in the processor's cache.
_AT_A_TIME = 2 ** 18
# Records that are divided into kinds at a time, so that the first part comes soon and no call
# holds the interpreter for long.
_CANDIDATES = 1024
_SUMMARIES = 2 ** 14
_ENCODER = json.JSONEncoder(separators=(",", ":"))


class Shape(NamedTuple):
    """The form of an answer.

    :param lists: whether allocations are a list in place of an object
    :param mappings: whether requests have mappings
    :param traits: whether summaries have traits
    :param all_classes: whether summaries have all classes, or the requested ones only
    :param trees: whether there is a summary of each provider of the used trees, with its parent
        and its root, or of the used providers only
    """

    lists: bool
    mappings: bool
    traits: bool
    all_classes: bool
    trees: bool

    @classmethod
    def of_microversion(cls, minor: int) -> "Shape":
        """Return the form of microversion 1.``minor``."""
        return cls(lists=minor < 12, mappings=minor >= 34, traits=minor >= 17,
                   all_classes=minor >= 27, trees=minor >= 29)


class Requests(NamedTuple):
    """What allocation requests show, by candidate and column.

    :param rows: matrix of slots, which only tell whether two providers are the same
    :param high: matrix of the upper halves of the UUIDs of these providers
    :param low: matrix of their lower halves
    """

    columns: Sequence[Column]
    class_names: Mapping[int, str]
    rows: np.ndarray
    high: np.ndarray
    low: np.ndarray


class Inventories(NamedTuple):
    """The inventories of one class.

    :param of: ascending array of the numbers of the summaries that they belong to
    """

    name: str
    of: np.ndarray
    capacity: np.ndarray
    used: np.ndarray


class Summaries(NamedTuple):
    """What provider summaries show, in arrays with an entry for each provider.

    :param parent: number of the summary of the parent; negative for none
    :param root: number of the summary of the root
    :param trait_set: number in ``trait_sets``
    """

    high: np.ndarray
    low: np.ndarray
    parent: np.ndarray
    root: np.ndarray
    trait_set: np.ndarray
    trait_sets: Sequence[frozenset[str]]
    inventories: Sequence[Inventories]


# -- requests -------------------------------------------------------------------------------


def of_requests(requests: Requests, shape: Shape) -> Iterator[str]:
    """Yield texts of the requests in their order, each request followed by a comma."""
    for first in range(0, len(requests.rows), _CANDIDATES):
        some = slice(first, first + _CANDIDATES)
        yield _some_requests(requests._replace(
            rows=requests.rows[some], high=requests.high[some], low=requests.low[some]), shape)


def _some_requests(requests, shape):
    rows = requests.rows
    # For each column the first one that the same provider serves.
    first_of = [(rows[:, :number + 1] == rows[:, number, None]).argmax(axis=1)
                for number in range(rows.shape[1])]
    kinds = text_rows.kinds(len(rows), [
        (column, number + 1) for number, column in enumerate(first_of)])
    texts = [""] * len(rows)
    for kind in kinds:
        serving = [int(column[kind[0]]) for column in first_of]
        uuids = {number: text_rows.of_uuids(
            requests.high[kind, number], requests.low[kind, number]) for number in set(serving)}
        matrix = text_rows.joined(len(kind), _request(requests, serving, uuids, shape))
        text, width = text_rows.text_of(matrix), matrix.shape[1]
        if len(kinds) == 1:
            return text
        for place, number in enumerate(kind.tolist()):
            texts[number] = text[place * width:(place + 1) * width]
    return "".join(texts)


def _request(requests, serving, uuids, shape):
    """Return the pieces of requests of one kind.

    :param serving: for each column the first one that the same provider serves
    :param uuids: dict of such a first column to the texts of the UUIDs of its providers
    """
    resources, mappings = {}, {}
    for column, number in zip(requests.columns, serving, strict=True):
        for class_id, amount in column.amounts.items():
            of_provider = resources.setdefault(number, {})
            name = requests.class_names[class_id]
            of_provider[name] = of_provider.get(name, 0) + amount
        mapped = mappings.setdefault(column.suffix, [])
        if number not in mapped:
            mapped.append(number)
    before, after = (b'{"resource_provider":{"uuid":"', b'"},"resources":') if shape.lists else (
        b'"', b'":{"resources":')
    allocations = _separated([before, uuids[number], after + _json(amounts) + b"}"]
                             for number, amounts in resources.items())
    yield from (b'{"allocations":', b"[" if shape.lists else b"{", *allocations,
                b"]" if shape.lists else b"}")
    if shape.mappings:
        mapped_texts = _separated([_json(suffix) + b":[", *_separated(
            [b'"', uuids[number], b'"'] for number in numbers), b"]"]
            for suffix, numbers in mappings.items())
        yield from (b',"mappings":{', *mapped_texts, b"}")
    yield b"},"


# -- summaries ------------------------------------------------------------------------------


def of_summaries(summaries: Summaries, shape: Shape) -> Iterator[str]:
    """Yield texts of the summaries in any order, each summary followed by a comma."""
    for block in _blocks(summaries):
        uuids = text_rows.of_uuids(block.high, block.low)
        inventories = [_inventory_texts(each, len(uuids)) for each in block.inventories]
        for kind in _kinds_of_summaries(block, shape, inventories):
            yield from _summaries_of_kind(block, shape, kind, uuids, inventories)


def _blocks(summaries):
    """Yield the summaries of whole trees, some trees at a time."""
    count = len(summaries.root)
    roots = np.flatnonzero(summaries.root == np.arange(count))
    firsts = np.unique(roots[np.minimum(
        roots.searchsorted(np.arange(0, count, _SUMMARIES)), len(roots) - 1)])
    for first, end in itertools.pairwise([*firsts.tolist(), count]):
        some = slice(first, end)
        high, low, parent, root, trait_set = (each[some] for each in summaries[:5])
        yield Summaries(high, low, parent - first, root - first, trait_set, summaries.trait_sets, [
            found for each in summaries.inventories
            if len((found := _inventories_of_block(each, first, end)).of)])


def _inventories_of_block(inventories, first, end):
    rows = slice(*inventories.of.searchsorted((first, end)))
    return Inventories(inventories.name, inventories.of[rows] - first, inventories.capacity[rows],
                       inventories.used[rows])


class _InventoryTexts(NamedTuple):
    """The texts of all inventories of a class.

    :param row_of: array by the number of the summary: the row of its inventory, -1 for none
    """

    rows: np.ndarray
    row_of: np.ndarray


def _inventory_texts(inventories, summaries):
    count = len(inventories.of)
    row_of = np.full(summaries, -1, np.int32)
    row_of[inventories.of] = np.arange(count)
    return _InventoryTexts(text_rows.joined(count, [
        _json(inventories.name) + b':{"capacity":', text_rows.of_numbers(inventories.capacity),
        b',"used":', text_rows.of_numbers(inventories.used), b"}"]), row_of)


def _kinds_of_summaries(summaries, shape, inventories):
    """Return arrays of the numbers of summaries of each kind."""
    columns = []
    if shape.traits:
        columns.append((summaries.trait_set, len(summaries.trait_sets)))
    if shape.trees:
        columns.append((summaries.parent >= 0, 2))
    columns += [(each.row_of >= 0, 2) for each in inventories]
    return text_rows.kinds(len(summaries.high), columns)


def _summaries_of_kind(summaries, shape, kind, uuids, inventories):
    """Yield texts of summaries of one kind.

    :param kind: ascending array of the numbers of the summaries
    :param uuids: texts of the UUIDs of all summaries
    :param inventories: list of _InventoryTexts of each class
    """
    pieces = list(_summary(summaries, shape, kind, uuids, inventories))
    width = sum(len(piece) if isinstance(piece, bytes) else piece.shape[1] for piece in pieces)
    rows = max(1, _AT_A_TIME // width)
    for first in range(0, len(kind), rows):
        some = slice(first, first + rows)
        yield text_rows.text_of(text_rows.joined(len(kind[some]), [
            piece if isinstance(piece, bytes) else piece[some] for piece in pieces]))


def _summary(summaries, shape, kind, uuids, inventories):
    """Return the pieces of summaries of one kind."""
    one = kind[0]
    # take() of rows is several times as fast as an index in brackets.
    resources = [[each.rows.take(each.row_of[kind], axis=0)] for each in inventories
                 if each.row_of[one] >= 0]
    yield from (b'"', uuids.take(kind, axis=0), b'":{"resources":{', *_separated(resources), b"}")
    if shape.traits:
        yield b',"traits":' + _of_traits(summaries.trait_sets[summaries.trait_set[one]])
    if shape.trees:
        parent = summaries.parent[kind]
        yield from (b',"parent_provider_uuid":null',) if parent[0] < 0 else (
            b',"parent_provider_uuid":"', uuids.take(parent, axis=0), b'"')
        yield from (b',"root_provider_uuid":"', uuids.take(summaries.root[kind], axis=0), b'"')
    yield b"},"


@functools.lru_cache(maxsize=1024)
def _of_traits(traits: frozenset[str]) -> bytes:
    return _json(sorted(traits, key=_standard_first))


def _standard_first(trait):
    return trait.startswith("CUSTOM_"), trait


# -- pieces ---------------------------------------------------------------------------------


def _separated(lists):
    """Return the pieces of all lists as one list, with commas between the lists."""
    found = []
    for pieces in lists:
        if found:
            found.append(b",")
        found += pieces
    return found


def _json(value):
    return _ENCODER.encode(value).encode()
