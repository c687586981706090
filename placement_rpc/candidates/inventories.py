# SPDX-License-Identifier: Apache-2.0
"""The inventories of one resource class, in columns."""

import numpy as np

from placement_rpc.candidates.growing_table import GrowingTable

#: The columns besides the slot, in the order of rows.
VALUES = {"capacity": np.int64, "used": np.int64, "min_unit": np.int32, "max_unit": np.int32,
          "step_size": np.int32, "reserved": np.int32}
_NOT_THERE = -1


class Inventories(GrowingTable):
    """Inventories in the ascending order of the slots of their providers.

    Rows of dead slots remain until the index is compacted. Their capacity and ``max_unit`` are
    -1, so that nothing fits.
    """

    def __init__(self) -> None:
        super().__init__(slots=np.int32, **VALUES)
        #: Whether every amount up to ``max_unit`` can be allocated: all min_unit and step_size
        #: are 1.
        self.is_simple = True
        self._dead = 0

    @property
    def living(self) -> int:
        """The number of rows without those of dead slots."""
        return len(self) - self._dead

    @property
    def slots(self) -> np.ndarray:
        """A view of the slots, int32, ascending."""
        return self["slots"]

    @property
    def capacity(self) -> np.ndarray:
        """A view of the capacities, int64."""
        return self["capacity"]

    @property
    def used(self) -> np.ndarray:
        """A view of what is used, int64."""
        return self["used"]

    @property
    def min_unit(self) -> np.ndarray:
        """A view of the smallest amounts, int32."""
        return self["min_unit"]

    @property
    def max_unit(self) -> np.ndarray:
        """A view of the largest amounts, int32."""
        return self["max_unit"]

    @property
    def step_size(self) -> np.ndarray:
        """A view of the steps, int32."""
        return self["step_size"]

    @property
    def reserved(self) -> np.ndarray:
        """A view of what is not part of the capacity, int32."""
        return self["reserved"]

    def row_of(self, slot: int) -> int | None:
        """Return the row of a slot; None if it has no inventory of the class."""
        row = int(self.slots.searchsorted(np.int32(slot)))
        return row if row < len(self) and self.slots[row] == slot else None

    def rows_of(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of many slots.

        :param slots: array of int32
        :returns: an array of rows, and an array of bool, whether each slot has an inventory of
            the class; the row of a slot that has none has no meaning
        """
        if not len(self):
            return np.zeros(len(slots), np.int64), np.zeros(len(slots), bool)
        known = self.slots
        rows = np.minimum(known.searchsorted(slots), len(known) - 1)
        return rows, known[rows] == slots

    def add(self, slots: np.ndarray, **values: np.ndarray) -> None:
        """Add inventories of slots that are greater than all in the table.

        :param slots: array of int32, ascending
        :param values: an array for each column of :data:`VALUES`
        """
        self.append(len(slots), slots=slots, **values)
        self._note_units(values)

    def write(self, rows: np.ndarray, **values: np.ndarray) -> None:
        """Replace the values of rows.

        :param values: an array for each column of :data:`VALUES`
        """
        for name in VALUES:
            self[name][rows] = values[name]
        self._note_units(values)

    def _note_units(self, values):
        self.is_simple = self.is_simple and bool(
            np.all(values["min_unit"] == 1) and np.all(values["step_size"] == 1))

    def take(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the values of rows: dict of column to array."""
        return {name: self[name][rows] for name in VALUES}

    def is_living(self, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return an array of bool: whether each row, of all or some, is that of an inventory."""
        return self["max_unit"][rows] != _NOT_THERE

    def remove(self, rows: np.ndarray) -> None:
        """Remove inventories; their rows remain, and the slots of the rows must be dead soon."""
        self._dead += int(np.count_nonzero(self.is_living(rows)))
        self["used"][rows] = 0
        for name in ("capacity", "max_unit"):
            self[name][rows] = _NOT_THERE

    def compact(self, is_alive: np.ndarray, new_slots: np.ndarray) -> None:
        """Remove the rows of dead slots, and give the others their new slots.

        :param is_alive: array of bool by slot
        :param new_slots: array of int32: the new slot of each slot
        """
        self.keep(is_alive[self.slots])
        self._dead = 0
        self["slots"][:] = new_slots[self.slots]
        self.is_simple = bool(np.all(self.min_unit == 1) and np.all(self.step_size == 1))
