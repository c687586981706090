# SPDX-License-Identifier: Apache-2.0
"""A table in NumPy arrays that grows at its end, and is compacted."""

from typing import Any

import numpy as np

# The spare room of an array that grows is an eighth of its size.
_SLACK = 8


class GrowingTable:
    """Rows by their position, one array for each column.

    :param dtypes: NumPy type of each column, by its name
    """

    def __init__(self, **dtypes: Any) -> None:
        self._arrays = {name: np.empty(0, dtype) for name, dtype in dtypes.items()}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a view of the values of a column."""
        return self._arrays[name][:self._size]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self._arrays.values())

    def append(self, count: int, **values: Any) -> None:
        """Add rows at the end.

        :param count: the number of rows
        :param values: for every column an array of this length, or one value for all rows
        """
        size = self._size + count
        for name, array in self._arrays.items():
            if size > len(array):
                # The first rows come all at once, when an index is built.
                grown = np.empty(size + (size // _SLACK if self._size else 0), array.dtype)
                grown[:self._size] = array[:self._size]
                self._arrays[name] = array = grown
            array[self._size:size] = values[name]
        self._size = size

    def keep(self, rows: np.ndarray) -> None:
        """Keep these rows only, in this order."""
        for name, array in self._arrays.items():
            self._arrays[name] = array[:self._size][rows]
        self._size = len(rows) if rows.dtype != bool else int(np.count_nonzero(rows))
