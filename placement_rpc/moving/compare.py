# SPDX-License-Identifier: Apache-2.0
"""Compare two streams of rows in one pass, in memory that does not depend on their lengths."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from placement_rpc import exception
from placement_rpc.moving import rows

_END: tuple[tuple[str, ...], None] = ((), None)


class Difference(NamedTuple):
    """A key whose rows differ; ``source`` or ``target`` is None if the row is missing there."""

    kind: str
    key: tuple[str, ...]
    source: rows.Row | None
    target: rows.Row | None

    @property
    def change(self) -> str:
        """What makes the target equal: ``created``, ``changed`` or ``deleted``, as in Counts."""
        if self.source is None:
            return "deleted"
        return "changed" if self.target else "created"


def compare(kind: str, source: Iterable[rows.Row],
            target: Iterable[rows.Row]) -> Iterator[Difference]:
    """Yield the differences between two streams, in ascending order of keys.

    :param kind: one of :data:`rows.KINDS`
    :param source: rows in ascending order of keys, by code point
    :param target: rows in the same order
    :raises StreamOutOfOrder: if the keys of a stream do not ascend
    """
    key_size, size = rows.KINDS[kind].key_size(), rows.KINDS[kind].compared_size()
    lefts, rights = _ascending(kind, source, key_size), _ascending(kind, target, key_size)
    (key, left), (other, right) = next(lefts, _END), next(rights, _END)
    while left is not None and right is not None:
        if key == other:
            if left[:size] != right[:size]:
                yield Difference(kind, key, left, right)
            (key, left), (other, right) = next(lefts, _END), next(rights, _END)
        elif key < other:
            yield Difference(kind, key, left, None)
            key, left = next(lefts, _END)
        else:
            yield Difference(kind, other, None, right)
            other, right = next(rights, _END)
    while left is not None:
        yield Difference(kind, key, left, None)
        key, left = next(lefts, _END)
    while right is not None:
        yield Difference(kind, other, None, right)
        other, right = next(rights, _END)


def _ascending(kind, stream, key_size):
    """Yield tuples of key and row.

    :raises StreamOutOfOrder: if a key is not greater than the one before it
    """
    last = ()
    for row in stream:
        key = row[:key_size]
        if key <= last:
            raise exception.StreamOutOfOrder(kind=kind, key="/".join(key), last="/".join(last))
        last = key
        yield key, row
