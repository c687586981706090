# SPDX-License-Identifier: Apache-2.0
"""Names in one array of bytes, which take a third of the memory of Python strings."""

from collections.abc import Sequence

import numpy as np

# Names are packed again when this part of their bytes is unused.
_SHARE = 8


class PackedNames:
    """Names by where they start, and how many bytes they have."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        #: Bytes of names that are not used any more.
        self.unused = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._bytes.__sizeof__()

    def add(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Add names.

        :returns: array of int64 of where each starts, and array of uint16 of its bytes
        """
        encoded = [name.encode() for name in names]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        starts = len(self._bytes) + np.cumsum(lengths) - lengths
        self._bytes += b"".join(encoded)
        return starts, lengths.astype(np.uint16)

    def get(self, start: int, length: int) -> str:
        """Return a name."""
        return self._bytes[start:start + length].decode()

    def keep(self, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Forget all names but these, if many bytes are unused; return where they start then."""
        if self.unused * _SHARE < len(self._bytes):
            return starts
        known = memoryview(self._bytes)
        kept = bytearray().join(known[start:start + length] for start, length in zip(
            starts.tolist(), lengths.tolist(), strict=True))
        known.release()
        self._bytes, self.unused = kept, 0
        return np.cumsum(lengths, dtype=np.int64) - lengths
