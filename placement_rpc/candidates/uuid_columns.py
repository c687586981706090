# SPDX-License-Identifier: Apache-2.0
"""UUIDs as two columns of whole numbers, which take a third of the memory of their texts."""

import numpy as np


def to_halves(uuids: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return arrays of uint64 of the upper and of the lower halves of UUIDs."""
    digits = "".join(uuids).replace("-", "")
    halves = np.frombuffer(bytes.fromhex(digits), ">u8").reshape(-1, 2).astype(np.uint64)
    return halves[:, 0], halves[:, 1]


def from_halves(high: np.ndarray, low: np.ndarray) -> list[str]:
    """Return the UUIDs of arrays of their upper and lower halves."""
    digits = np.stack((high, low), axis=1).astype(">u8").tobytes().hex()
    return [f"{digits[at:at + 8]}-{digits[at + 8:at + 12]}-{digits[at + 12:at + 16]}-"
            f"{digits[at + 16:at + 20]}-{digits[at + 20:at + 32]}"
            for at in range(0, len(digits), 32)]
