# SPDX-License-Identifier: Apache-2.0
"""A line of threads that wait for places, of which there is a limited number."""

import collections
import contextlib
import math
import threading
import time
import weakref
from collections.abc import Callable

# Seconds between two looks of a thread that was not woken for a free place.
_LOOK = 1.0


class _Turn:
    """The place of a thread in the line; ``ends`` is when it stops waiting."""

    __slots__ = ("__weakref__", "ends", "wake")

    def __init__(self, ends):
        self.ends = ends
        self.wake = threading.Lock()
        self.wake.acquire()


class WaitingLine:
    """Threads that wait; the first that came takes the first place that is free.

    Its length is the number of threads that wait. A thread that takes a place without waiting
    makes sure before that it is 0; one that gives a place back calls :meth:`move`.

    A signal handler can raise an exception at any place of a waiting thread, also where it leaves
    the line. So the line holds turns weakly, and a thread looks from time to time without being
    woken.
    """

    def __init__(self) -> None:
        self._turns: collections.deque[weakref.ref[_Turn]] = collections.deque()

    def __len__(self) -> int:
        return len(self._turns)

    def wait(self, take: Callable[[], bool], ends: float) -> bool:
        """Wait for a place.

        :param take: takes a place if one is free, and returns whether it did
        :param ends: time of the monotonic clock at which waiting ends
        :returns: whether a place was taken
        """
        turn = _Turn(ends)
        try:
            self._turns.append(weakref.ref(turn))
            while not (self._first() is turn and take()):
                left = ends - time.monotonic()
                if left <= 0:
                    return False
                turn.wake.acquire(timeout=min(left, _LOOK))
            return True
        finally:
            turn.ends = -math.inf
            # There may be a second place.
            self.move()

    def move(self) -> None:
        """Let the first thread look whether there is a place."""
        first = self._first()
        if first is not None:
            # It may have been woken before.
            with contextlib.suppress(RuntimeError):
                first.wake.release()

    def _first(self):
        """Return the first turn, and remove those before it of threads that wait no more."""
        while True:
            try:
                reference = self._turns[0]
            except IndexError:
                return None
            turn = reference()
            if turn is not None and turn.ends > time.monotonic():
                return turn
            # Another thread may have removed it.
            with contextlib.suppress(ValueError):
                self._turns.remove(reference)
