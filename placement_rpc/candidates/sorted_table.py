# SPDX-License-Identifier: Apache-2.0
"""A table in NumPy arrays, sorted by a whole-number key: small in memory and fast to scan."""

import numpy as np

from placement_rpc.candidates.column_table import ColumnTable, with_room


class SortedTable(ColumnTable):
    """Rows in ascending order of their keys, one array for each column.

    :param dtypes: NumPy type of each column, by its name
    """

    def __init__(self, **dtypes):
        super().__init__(**dtypes)
        self._names = tuple(dtypes)
        self._keys = np.empty(0, np.int64)

    @property
    def keys(self) -> np.ndarray:
        """A view of the keys: array of int64, ascending."""
        return self._keys[:self._size]

    @property
    def nbytes(self) -> int:
        """As of a :class:`ColumnTable`, with the keys."""
        return self._keys.nbytes + super().nbytes

    def row_of(self, key: int) -> int | None:
        """Return the row of a key; None if the key is missing."""
        row = int(self.keys.searchsorted(key))
        return row if row < self._size and self._keys[row] == key else None

    def rows_of(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of many keys.

        :param keys: array of int64
        :returns: an array of rows, and an array of bool, whether each key is in the table; the
            row of a missing key has no meaning
        """
        if not self._size:
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
        rows = np.minimum(self.keys.searchsorted(keys), self._size - 1)
        return rows, self._keys[rows] == keys

    def between(self, first: int, last: int) -> slice:
        """Return the rows of the keys from the first to the last, both included."""
        return slice(int(self.keys.searchsorted(first)),
                     int(self.keys.searchsorted(last, side="right")))

    def put(self, keys: np.ndarray, **values: np.ndarray) -> None:
        """Write rows: replace those that are in the table, and insert the others.

        :param keys: array of int64, without duplicates, in any order
        :param values: for every column an array of the same length
        """
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        values = {name: values[name][order] for name in self._names}
        rows, there = self.rows_of(keys)
        for name in self._names:
            self._arrays[name][rows[there]] = values[name][there]
        new = ~there
        if not new.any():
            return
        added = keys[new]
        places = self.keys.searchsorted(added)
        self._keys = self._with(self._keys, places, added)
        for name in self._names:
            self._arrays[name] = self._with(self._arrays[name], places, values[name][new])
        self._size += len(added)

    def _with(self, array, places, values):
        """Return the array with values inserted before the rows of some places."""
        size = self._size + len(values)
        if places[0] == self._size and size <= len(array):
            array[self._size:size] = values
            return array
        grown = np.empty(with_room(size), array.dtype)
        if places[0] == self._size:
            grown[:self._size] = array[:self._size]
            grown[self._size:size] = values
        else:
            grown[:size] = np.insert(array[:self._size], places, values)
        return grown

    def remove(self, keys: np.ndarray) -> None:
        """Remove rows; missing keys are ignored."""
        rows, there = self.rows_of(np.unique(keys))
        gone = rows[there]
        if not len(gone):
            return
        self._keys = np.delete(self.keys, gone)
        for name in self._names:
            self._arrays[name] = np.delete(self[name], gone)
        self._size -= len(gone)
