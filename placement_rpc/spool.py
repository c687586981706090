# SPDX-License-Identifier: Apache-2.0
"""Values that wait in a temporary file, so that their number does not matter for the memory."""

import itertools
import pickle
import sqlite3
import tempfile
from collections.abc import Iterator
from typing import Any, Self


class Spool:
    """A list of plain values to append to, and to read from the beginning as often as needed."""

    def __init__(self) -> None:
        # It has no name, and is gone when it is closed.
        self._file = tempfile.TemporaryFile()                               # noqa: SIM115
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._size

    def append(self, value: Any) -> None:
        """Append a value of Python's own types."""
        pickle.dump(value, self._file, pickle.HIGHEST_PROTOCOL)
        self._size += 1

    def __iter__(self) -> Iterator[Any]:
        self._file.seek(0)
        for _ in range(self._size):
            # Written above by this process, and no other has the file.
            yield pickle.load(self._file)                                   # noqa: S301

    def batches(self, size: int) -> Iterator[list[Any]]:
        """Yield lists of values, in order.

        :param size: how many a list has at most
        """
        found = iter(self)
        while some := list(itertools.islice(found, size)):
            yield some

    def close(self) -> None:
        """Remove the file."""
        self._file.close()


class SpooledTexts:
    """Texts that are kept under keys; a text that is kept under a key again replaces the first."""

    def __init__(self) -> None:
        # SQLite keeps a database without a name in a file that is gone when it is closed, and 2
        # MiB of it in memory. It is not read after an error, and needs neither a journal nor a
        # commit.
        self._database = sqlite3.connect("", isolation_level=None)
        for statement in (
                "PRAGMA temp_store = FILE", "PRAGMA cache_size = -2048",
                "PRAGMA journal_mode = OFF",
                "CREATE TABLE texts (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID", "BEGIN"):
            self._database.execute(statement)

    def __setitem__(self, key: str, value: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO texts VALUES (?, ?)", (key, value))

    def get(self, key: str) -> str | None:
        """Return the text of a key; None if there is none."""
        row = self._database.execute("SELECT value FROM texts WHERE name = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def close(self) -> None:
        """Remove the file."""
        self._database.close()
