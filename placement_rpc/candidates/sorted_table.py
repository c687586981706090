# SPDX-License-Identifier: Apache-2.0
"""Rows by an ascending whole-number key, each column an array: small, and quick to go through."""

import numpy as np

# Room to grow into is an eighth of what there is.
_SLACK = 8


class SortedTable:
    """Rows in the order of their keys.

    :param dtypes: NumPy type of each column, by its name
    """

    def __init__(self, **dtypes):
        self._names = tuple(dtypes)
        self._arrays = {name: np.empty(0, dtype) for name, dtype in dtypes.items()}
        self._keys = np.empty(0, np.int64)
        self._size = 0

    def __len__(self):
        return self._size

    def __getitem__(self, name):
        """:returns: array of a column's values, in the order of the keys; a view"""
        return self._arrays[name][:self._size]

    @property
    def keys(self):
        """array of int64, ascending; a view"""
        return self._keys[:self._size]

    @property
    def nbytes(self):
        """int, bytes of all arrays, without what is behind the references of one of objects"""
        return self._keys.nbytes + sum(array.nbytes for array in self._arrays.values())

    def row_of(self, key):
        """:returns: int, the row of a key; None where it has none"""
        row = int(self.keys.searchsorted(key))
        return row if row < self._size and self._keys[row] == key else None

    def rows_of(self, keys):
        """Rows of many keys.

        :param keys: array of int64
        :returns: tuple of an array of rows and one of bool, whether the key is there; where it is
            not, the row means nothing
        """
        if not self._size:
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
        rows = np.minimum(self.keys.searchsorted(keys), self._size - 1)
        return rows, self._keys[rows] == keys

    def put(self, keys, **values):
        """Write rows: those that are there anew, others between them or at the end.

        :param keys: array of int64, each once, in any order
        :param values: for every column an array as long
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
        """:returns: array with values put in before the rows of these places"""
        size = self._size + len(values)
        if places[0] == self._size and size <= len(array):
            array[self._size:size] = values
            return array
        grown = np.empty(size + size // _SLACK, array.dtype)
        if places[0] == self._size:
            grown[:self._size] = array[:self._size]
            grown[self._size:size] = values
        else:
            grown[:size] = np.insert(array[:self._size], places, values)
        return grown

    def remove(self, keys):
        """Take rows away; keys that are not there are none's loss."""
        rows, there = self.rows_of(np.unique(keys))
        gone = rows[there]
        if not len(gone):
            return
        self._keys = np.delete(self.keys, gone)
        for name in self._names:
            self._arrays[name] = np.delete(self[name], gone)
        self._size -= len(gone)
