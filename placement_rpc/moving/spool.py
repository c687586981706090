# SPDX-License-Identifier: Apache-2.0
"""Tuples of texts that wait in a temporary file."""

import itertools
import json
import tempfile
from collections.abc import Iterator
from typing import Self


class Spool:
    """A list of tuples of str and None: written once, and then read any number of times."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def add(self, values: tuple[str | None, ...]) -> None:
        """Append a tuple."""
        self._file.write(json.dumps(values) + "\n")

    def __iter__(self) -> Iterator[tuple]:
        self._file.seek(0)
        for line in self._file:
            yield tuple(json.loads(line))

    def batches(self, size: int) -> Iterator[list[tuple]]:
        """Yield lists of tuples, in order.

        :param size: how many a list has at most
        """
        found = iter(self)
        while some := list(itertools.islice(found, size)):
            yield some

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
