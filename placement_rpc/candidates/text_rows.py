# SPDX-License-Identifier: Apache-2.0
"""Many rows of text at once, as matrices of ASCII bytes with one row for each record.

The rows of a matrix have one width. Text that differs in width between records is padded with
spaces on its left, so only values around which JSON allows spaces may differ in width.
"""

from collections.abc import Iterable

import numpy as np

_ZERO, _SPACE, _DASH = b"0"[0], b" "[0], b"-"[0]
# Where the groups of a UUID's hexadecimal digits begin and end, and where they begin in its text.
_UUID_GROUPS = ((0, 8, 0), (8, 12, 9), (12, 16, 14), (16, 20, 19), (20, 32, 24))
UUID_WIDTH = 36
# Fewer numbers than this are written faster one by one.
_FEW = 64
# Products of radices stay below this, so that codes fit into int64.
_MOST_CODES = 2 ** 62


def of_uuids(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Return the texts of UUIDs.

    :param high: array of uint64 of the upper halves
    :param low: of the lower halves
    """
    halves = np.empty((len(high), 2), ">u8")
    halves[:, 0], halves[:, 1] = high, low
    digits = np.frombuffer(halves.tobytes().hex().encode(), np.uint8).reshape(-1, 32)
    texts = np.empty((len(high), UUID_WIDTH), np.uint8)
    texts[:] = _DASH
    for first, end, place in _UUID_GROUPS:
        texts[:, place:place + end - first] = digits[:, first:end]
    return texts


def of_numbers(values: np.ndarray) -> np.ndarray:
    """Return the decimal texts of an array of int64, as wide as the widest of them.

    :param values: none of them is negative
    """
    least, greatest = int(values.min()), int(values.max())
    if least == greatest:
        # Providers of a kind have equal capacities, and nothing is used of many.
        return np.broadcast_to(np.frombuffer(str(least).encode(), np.uint8),
                               (len(values), len(str(least))))
    if len(values) < _FEW:
        width = len(str(greatest))
        return np.frombuffer("".join([str(value).rjust(width) for value in values.tolist()]
                                     ).encode(), np.uint8).reshape(-1, width)
    if greatest < 2 ** 32:
        # Of which the processor divides twice as many at a time.
        values = values.astype(np.uint32)
    texts = np.empty((len(values), len(str(greatest))), np.uint8)
    for place in range(texts.shape[1] - 1, -1, -1):
        remaining = values // 10
        texts[:, place] = values - 10 * remaining + _ZERO
        if place < texts.shape[1] - 1:
            texts[values == 0, place] = _SPACE
        values = remaining
    return texts


def joined(count: int, pieces: Iterable[bytes | np.ndarray]) -> np.ndarray:
    """Return rows that are made of pieces, one after the other.

    :param count: the number of rows
    :param pieces: text of all rows, or a matrix of the texts of the rows
    """
    pieces = list(pieces)
    every_row = b"".join(
        piece if isinstance(piece, bytes) else bytes(piece.shape[1]) for piece in pieces)
    rows = np.empty((count, len(every_row)), np.uint8)
    rows[:] = np.frombuffer(every_row, np.uint8)
    place = 0
    for piece in pieces:
        if isinstance(piece, bytes):
            place += len(piece)
        else:
            rows[:, place:place + piece.shape[1]] = piece
            place += piece.shape[1]
    return rows


def text_of(rows: np.ndarray) -> str:
    """Return all rows of a matrix as one text."""
    return str(rows.data, "ascii")


def kinds(count: int, columns: Iterable[tuple[np.ndarray, int]]) -> list[np.ndarray]:
    """Group records that have the same values in all of some columns.

    :param count: the number of records
    :param columns: of each an array of whole numbers from 0, and their end
    :returns: for each kind an ascending array of the numbers of its records
    """
    codes, end = np.zeros(count, np.int64), 1
    for values, radix in columns:
        if end * radix >= _MOST_CODES:
            known, codes = np.unique(codes, return_inverse=True)
            end = len(known)
        codes = codes * radix + values
        end *= radix
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    return np.split(order, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)
