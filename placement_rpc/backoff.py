# SPDX-License-Identifier: Apache-2.0
"""Pauses between attempts at something that failed."""

import random


class Backoff:
    """Pauses that grow from one attempt to the next.

    :param first: seconds, the first pause
    :param longest: seconds that no pause exceeds
    :param factor: how many times longer each pause is than the one before
    :param jitter: the random share of a pause, 0 to 1, so that many clients of one server do not
        return at the same moment: 0.5 is between half of the pause and all of it
    """

    def __init__(self, first: float = 0.1, longest: float = 2.0, factor: float = 2.0,
                 jitter: float = 0.5) -> None:
        self._first = first
        self._longest = longest
        self._factor = factor
        self._jitter = jitter
        self._pause = first

    def next(self) -> float:
        """Return the seconds to wait before the next attempt, and lengthen the pause after it."""
        pause = self._pause
        self._pause = min(self._longest, pause * self._factor)
        return random.uniform(pause * (1 - self._jitter), pause)  # noqa: S311

    def reset(self) -> None:
        """Start again with the first pause, after an attempt that succeeded."""
        self._pause = self._first


def spread(seconds: float) -> float:
    """Return a random time that is up to half as long again, so that many do not act together."""
    return random.uniform(seconds, 1.5 * seconds)  # noqa: S311
