# SPDX-License-Identifier: Apache-2.0
"""A table in NumPy arrays that grows at its end, and is compacted."""

from typing import Any

import numpy as np

from placement_rpc.candidates.column_table import ColumnTable, with_room


class GrowingTable(ColumnTable):
    """Rows by their position, one array for each column."""

    def append(self, count: int, **values: Any) -> None:
        """Add rows at the end.

        :param count: the number of rows
        :param values: for every column an array of this length, or one value for all rows
        """
        size = self._size + count
        for name, array in self._arrays.items():
            if size > len(array):
                # The first rows come all at once, when an index is built.
                grown = np.empty(with_room(size) if self._size else size, array.dtype)
                grown[:self._size] = array[:self._size]
                self._arrays[name] = array = grown
            array[self._size:size] = values[name]
        self._size = size

    def keep(self, rows: np.ndarray) -> None:
        """Keep these rows only, in this order."""
        for name, array in self._arrays.items():
            self._arrays[name] = array[:self._size][rows]
        self._size = len(rows) if rows.dtype != bool else int(np.count_nonzero(rows))
