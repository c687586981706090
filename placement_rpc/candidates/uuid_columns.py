# SPDX-License-Identifier: Apache-2.0
"""UUIDs as two columns of whole numbers, which take a third of the memory of their texts."""

import numpy as np

# So many slots, or this part of them, are compared one by one before they are put in order.
_FEW, _SHARE = 1024, 16


def to_halves(uuids: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return arrays of uint64 of the upper and of the lower halves of UUIDs."""
    digits = "".join(uuids).replace("-", "")
    halves = np.frombuffer(bytes.fromhex(digits), ">u8").reshape(-1, 2).astype(np.uint64)
    return halves[:, 0], halves[:, 1]


def from_halves(high: np.ndarray, low: np.ndarray) -> list[str]:
    """Return the UUIDs of arrays of their upper and lower halves."""
    digits = np.stack((high, low), axis=1).astype(">u8").tobytes().hex()
    return [f"{digits[at:at + 8]}-{digits[at + 8:at + 12]}-{digits[at + 12:at + 16]}-"
            f"{digits[at + 16:at + 20]}-{digits[at + 20:at + 32]}"
            for at in range(0, len(digits), 32)]


class UuidOrder:
    """The order of the upper halves of UUIDs, which finds the slots of UUIDs.

    Slots that were added since it was made are compared one by one, until they are many.
    """

    def __init__(self) -> None:
        self._order = np.empty(0, np.intp)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._order.nbytes

    def clear(self) -> None:
        """Forget the order, after UUIDs got other slots."""
        self._order = np.empty(0, np.intp)

    def prepare(self, high: np.ndarray) -> None:
        """Put all slots in order.

        :param high: the upper halves by slot
        """
        self._order = np.argsort(high, kind="stable")

    def find(self, high: np.ndarray, low: np.ndarray, is_alive: np.ndarray,
             wanted: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the slots of UUIDs: array of int64; -1 for those that are unknown.

        :param high: the upper halves by slot, which do not change
        :param low: the lower halves by slot
        :param is_alive: array by slot that is 0 where the slot is dead
        :param wanted: upper and lower halves of the UUIDs to find
        """
        if len(high) - len(self._order) > max(_FEW, len(self._order) // _SHARE):
            self.prepare(high)
        order, known = self._order, high[:len(self._order)]
        first = np.searchsorted(known, wanted[0], "left", sorter=order)
        last = np.searchsorted(known, wanted[0], "right", sorter=order)
        recent = len(order) + np.flatnonzero(np.isin(high[len(order):], wanted[0]))
        found = np.full(len(first), -1)
        for at, (begin, end) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            slots = np.concatenate((order[begin:end], recent))
            slots = slots[(high[slots] == wanted[0][at]) & (low[slots] == wanted[1][at])
                          & (is_alive[slots] != 0)]
            if len(slots):
                found[at] = slots[0]
        return found
