# SPDX-License-Identifier: Apache-2.0
"""What nova knows, in a form that takes little memory: 50 bytes for a server."""

import array
import bisect
from collections.abc import Iterable, Iterator

import numpy as np

from placement_rpc.audit.listings import Migration, Server

_HALF = (1 << 64) - 1
#: Of servers that nova is working on, or that wait for their users to confirm a move.
MOVING = frozenset((
    "BUILD", "REBUILD", "MIGRATING", "RESIZE", "VERIFY_RESIZE", "REVERT_RESIZE"))
#: Of servers that are on no host
ON_NO_HOST = frozenset(("SHELVED_OFFLOADED", "DELETED"))
ERROR = "ERROR"
#: Of migrations that hold nothing any more
OVER = frozenset((
    "completed", "confirmed", "reverted", "done", "cancelled", "failed", "error"))


class _Names:
    """Texts by small numbers; 0 is None."""

    def __init__(self) -> None:
        self._texts: list[str | None] = [None]
        self._numbers: dict[str | None, int] = {None: 0}

    def number(self, text: str | None) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self._texts)
            self._texts.append(text)
        return self._numbers[text]

    def __getitem__(self, number: int) -> str | None:
        return self._texts[number]


class Servers:
    """The servers that nova knows, by uuid.

    If a list names a server twice, or several lists do, the last entry counts.

    :param servers: in any order
    :ivar have_status: whether the lists have the status of every server
    """

    def __init__(self, servers: Iterable[Server]):
        self._names = _Names()
        high, low, place = array.array("Q"), array.array("Q"), array.array("I")
        columns = [array.array("I") for _ in range(4)]
        self.have_status = True
        for number, each in enumerate(servers):
            value = int(each.uuid.replace("-", ""), 16)
            high.append(value >> 64)
            low.append(value & _HALF)
            place.append(number)
            for column, text in zip(columns, each[1:], strict=True):
                column.append(self._names.number(text))
            self.have_status = self.have_status and each.status is not None
        self._fill(high, low, place, columns)

    def _fill(self, high, low, place, columns):
        highs, lows = (np.frombuffer(each, np.uint64) if each else np.empty(0, np.uint64)
                       for each in (high, low))
        order = np.lexsort((np.arange(len(place)), lows, highs))
        if len(order):
            # The last of equal ones.
            same = (highs[order][1:] == highs[order][:-1]) & (lows[order][1:] == lows[order][:-1])
            order = order[np.append(~same, True)]
        self._high, self._low = (array.array("Q", each[order].tobytes()) for each in (
            highs, lows))
        self._columns = [array.array("I", np.frombuffer(each, np.uint32)[order].tobytes())
                         if len(each) else each for each in columns]
        # All before this are smaller than the last uuid that was looked for.
        self._place = 0
        self.holds = bytearray(len(self._high))
        self._signatures = array.array("q", bytes(8 * len(self._high)))

    def __len__(self) -> int:
        return len(self._high)

    def find(self, uuid: str) -> int | None:
        """Return the number of a server; None if nova does not know it.

        It goes on from the last that was found, so that it is fast in the order of uuids.
        """
        value = int(uuid.replace("-", ""), 16)
        high, low = value >> 64, value & _HALF
        highs, lows, place = self._high, self._low, self._place
        if place and (highs[place - 1], lows[place - 1]) >= (high, low):
            # Not in the order of uuids.
            place = bisect.bisect_left(
                range(len(highs)), (high, low), key=lambda each: (highs[each], lows[each]))
        while place < len(highs) and (
                highs[place] < high or (highs[place] == high and lows[place] < low)):
            place += 1
        self._place = place
        is_there = place < len(highs) and highs[place] == high and lows[place] == low
        return place if is_there else None

    def get(self, number: int) -> Server:
        """Return a server by its number."""
        text = f"{self._high[number]:016x}{self._low[number]:016x}"
        uuid = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
        host, status, task, project = (self._names[column[number]] for column in self._columns)
        return Server(uuid, host, status, task, project)

    def __iter__(self) -> Iterator[Server]:
        return map(self.get, range(len(self)))

    def hosts(self) -> set[str]:
        """Return the names of all hosts that have servers."""
        return {self._names[number] or "" for number in set(self._columns[0])} - {""}

    def sign(self, number: int, signature: int) -> None:
        """Note what a server holds, as a number that depends on its owner and the amounts."""
        self._signatures[number] = signature

    def signed(self, signature: int, most: int = 2) -> list[Server]:
        """Return the first servers that hold the same."""
        if not len(self):
            return []
        places = np.flatnonzero(np.frombuffer(self._signatures, np.int64) == signature)
        return [self.get(int(place)) for place in places[:most]]


def _is_at_work(server: Server) -> bool:
    """Return whether nova is working on a server, as far as the list says it."""
    return server.status in MOVING or bool(server.task)


class Known:
    """All that nova said.

    :param servers: :class:`Servers`
    :param migrations: None if they are not given
    :param services: names of services and of their nodes; None if they are not given
    """

    def __init__(self, servers: Servers, migrations: Iterable[Migration] | None = None,
                 services: Iterable[str] | None = None):
        self.servers = servers
        self.migrations = None if migrations is None else {
            each.uuid: each for each in migrations}
        self.services = None if services is None else frozenset(
            name.lower() for name in services)
        #: uuids of the servers that a migration moves now
        self.moved = frozenset(each.server for each in (self.migrations or {}).values()
                               if each.status not in OVER)

    def is_moving(self, server: Server) -> bool:
        """Return whether a server is being moved."""
        return _is_at_work(server) or server.uuid in self.moved

    @property
    def shows_moves(self) -> bool:
        """Whether a server that is being moved can be told from one that is not."""
        return self.migrations is not None or self.servers.have_status
