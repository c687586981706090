# SPDX-License-Identifier: Apache-2.0
"""How many things fit, if each of several kinds takes something of several resources.

The question is an integer program. Its relaxation, in which fractions of things fit too, is solved
by the simplex method in floating point. What is answered does not rest on that: the lower bound is
a packing that was made in whole numbers, and the upper bound follows from the prices that the
relaxation gives to the resources, computed in whole numbers too. If the two differ, branch and
bound narrows the gap for a limited number of steps.
"""

from typing import NamedTuple

import numpy as np

# Relaxations that are solved to close a gap.
_MOST_STEPS = 40
# Numbers in the table of a relaxation.
_LARGEST = 200_000
_EPSILON = 1e-9
# Prices are rounded to fractions of this, which most denominators of small tables divide.
_SCALE = 55440


class Packed(NamedTuple):
    """How many things fit.

    :param least: so many fit for certain
    :param most: no more than these fit; equal to ``least`` if the number is exact
    """

    least: int
    most: int


def pack(uses: np.ndarray, room: np.ndarray, most: int) -> Packed:
    """Return how many things fit, of all kinds together.

    :param uses: array of int64, resources x kinds: what one thing of a kind takes; no kind takes
        nothing at all
    :param room: array of int64: what there is of each resource, 0 or more
    :param most: an upper bound that is known already
    """
    kinds = np.flatnonzero((uses <= room[:, None]).all(axis=0))
    if not len(kinds) or most <= 0:
        return Packed(0, 0)
    uses = np.unique(uses[:, kinds], axis=1)
    rows = np.flatnonzero(uses.any(axis=1))
    uses, room = uses[rows], room[rows]
    # Without resources of which there is more than could ever be taken, the numbers stay small.
    room = np.minimum(room, np.minimum(most, 2 ** 62 // uses.max(axis=1)) * uses.max(axis=1))
    if uses.shape[1] == 1:
        fit = min(most, int((room // uses[:, 0]).min()))
        return Packed(fit, fit)
    if uses.size > _LARGEST:
        return Packed(_filled(uses, room, np.zeros(uses.shape[1], np.int64), most), most)
    return _branch_and_bound(uses, room, most)


def _branch_and_bound(uses: np.ndarray, room: np.ndarray, most: int) -> Packed:
    least = 0
    # Each branch: the room that is left, what is packed already, and its upper bound.
    branches = [(uses, room, 0, most)]
    for _ in range(_MOST_STEPS):
        if not branches:
            break
        # The branch with the highest bound decides about the bound of all.
        branches.sort(key=lambda branch: branch[3])
        uses, room, packed, bound = branches.pop()
        if bound <= least:
            branches.clear()
            break
        amounts, prices = _relaxed(uses, room)
        bound = min(bound, packed + _bound(uses, room, prices))
        whole = np.floor(amounts + _EPSILON).astype(np.int64)
        least = max(least, min(bound, packed + _filled(uses, room, whole, bound - packed)))
        if bound > least:
            branches += _branches(uses, room, packed, bound, amounts)
    return Packed(least, max([least, *(branch[3] for branch in branches)]))


def _branches(uses, room, packed, bound, amounts):
    """Split a problem at the kind whose amount is farthest from a whole number."""
    off = np.abs(amounts - np.round(amounts))
    kind = int(off.argmax())
    at = int(np.floor(amounts[kind] + _EPSILON))
    is_kind = np.zeros((1, uses.shape[1]), np.int64)
    is_kind[0, kind] = 1
    # At most so many of the kind, or at least one more.
    found = [(np.vstack((uses, is_kind)), np.append(room, at), packed, bound)]
    left = room - uses[:, kind] * (at + 1)
    if (left >= 0).all():
        found.append((uses, left, packed + at + 1, bound))
    return found


def _filled(uses: np.ndarray, room: np.ndarray, whole: np.ndarray, most: int) -> int:
    """Return how many things fit if some are packed first, and then what there is room for.

    :param whole: how many of each kind to pack first; fewer, if so many do not fit
    """
    left, packed = room.copy(), 0
    for wanted in (whole, np.full(len(whole), 2 ** 62)):
        # The kinds that take least come first.
        for kind in np.argsort(uses.sum(axis=0), kind="stable").tolist():
            taken = uses[:, kind]
            used = taken > 0
            fit = min(int((left[used] // taken[used]).min()), int(wanted[kind]))
            left -= fit * taken
            packed += fit
            if packed >= most:
                return most
    return packed


def _bound(uses: np.ndarray, room: np.ndarray, prices: np.ndarray) -> int:
    """Return an upper bound that follows from prices of the resources.

    If no kind costs less than one price, no more things fit than all the room is worth at it.
    That holds for any prices, so that rounding them does not make the bound wrong.
    """
    whole = np.rint(np.maximum(prices, 0) * _SCALE).astype(np.int64)
    cheapest = int((whole @ uses).min())
    if cheapest <= 0:
        return 2 ** 62
    return sum(price * amount for price, amount in zip(
        whole.tolist(), room.tolist(), strict=True)) // cheapest


def _relaxed(uses: np.ndarray, room: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve the relaxation: return the amount of each kind, and the price of each resource."""
    rows, kinds = uses.shape
    table = np.hstack((uses.astype(float), np.eye(rows), room.astype(float)[:, None]))
    gains = np.concatenate((np.full(kinds, -1.0), np.zeros(rows + 1)))
    basis = np.arange(kinds, kinds + rows)
    for step in range(20 * (rows + kinds)):
        # After a while the first gain in place of the largest: that cannot go in circles.
        losing = np.flatnonzero(gains[:-1] < -_EPSILON)
        if not len(losing):
            break
        enters = int(losing[0] if step > 4 * (rows + kinds) else losing[gains[losing].argmin()])
        column = table[:, enters]
        ratios = np.full(rows, np.inf)
        np.divide(table[:, -1], column, out=ratios, where=column > _EPSILON)
        leaves = int(ratios.argmin())
        if not np.isfinite(ratios[leaves]):
            break
        table[leaves] /= table[leaves, enters]
        others = table[:, enters].copy()
        others[leaves] = 0
        table -= others[:, None] * table[leaves]
        gains -= gains[enters] * table[leaves]
        basis[leaves] = enters
    amounts = np.zeros(kinds + rows)
    amounts[basis] = np.maximum(table[:, -1], 0)
    return amounts[:kinds], gains[kinds:-1]
