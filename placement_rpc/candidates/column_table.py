# SPDX-License-Identifier: Apache-2.0
"""What the tables of the candidate index have in common: NumPy arrays with spare room."""

from typing import Any

import numpy as np

# The spare room of an array that grows is an eighth of its size.
_SLACK = 8


def with_room(size: int) -> int:
    """Return the length of an array for so many values, with spare room."""
    return size + size // _SLACK


class ColumnTable:
    """Rows in one array for each column, which may be longer than the table.

    :param dtypes: NumPy type of each column, by its name
    """

    def __init__(self, **dtypes: Any) -> None:
        self._arrays = {name: np.empty(0, dtype) for name, dtype in dtypes.items()}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a view of the values of a column, in the order of the rows."""
        return self._arrays[name][:self._size]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, without the objects that a column of objects refers to."""
        return sum(array.nbytes for array in self._arrays.values())
