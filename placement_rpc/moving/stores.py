# SPDX-License-Identifier: Apache-2.0
"""What import, verification and export need of a store: a stream of rows for each kind."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from placement_rpc.moving import rows


class Finding(NamedTuple):
    """A row of a store that the other cannot hold as it is, and what is done about it."""

    #: stable name of the sort of finding
    what: str
    #: one of :data:`rows.KINDS`, or ``projects``, ``users`` and such for what is no row
    kind: str
    #: of the row as the store has it
    key: tuple[str, ...]
    #: one sentence
    done: str


Report = Callable[[Finding], None]


class Store(Protocol):
    """A snapshot of one store. It reads one stream at a time."""

    def rows(self, kind: str, report: Report | None = None) -> Iterator[rows.Row]:
        """Yield the rows of a kind in ascending order of keys, in bounded memory.

        The stream before it ends, if it was not read to its end.

        :param kind: one of :data:`rows.KINDS`
        :param report: called for each finding, before the row that it is about is yielded
        """
