# SPDX-License-Identifier: Apache-2.0
"""JSON values in a temporary file, so that their number does not matter for the memory."""

import json
import tempfile
from collections.abc import Iterator
from typing import Any


class Spool:
    """A list of JSON values to append to, and to read from the beginning as often as needed."""

    def __init__(self) -> None:
        # It has no name, and is gone when it is closed.
        self._file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        self._size = 0

    def append(self, value: Any) -> None:
        """Append a value."""
        json.dump(value, self._file, separators=(",", ":"))
        self._file.write("\n")
        self._size += 1

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        self._file.seek(0)
        for line in self._file:
            yield json.loads(line)

    def close(self) -> None:
        """Remove the file."""
        self._file.close()
