# SPDX-License-Identifier: Apache-2.0
"""A line of threads that wait for places, of which there is a limited number."""

import collections
import contextlib
import threading
import time
from collections.abc import Callable


class WaitingLine:
    """Threads that wait; the first that came takes the first place that is free.

    Its length is the number of threads that wait. Who takes a place without waiting makes sure
    before that it is 0, and who gives one back calls :meth:`move`.
    """

    def __init__(self) -> None:
        self._turns: collections.deque[threading.Lock] = collections.deque()

    def __len__(self) -> int:
        return len(self._turns)

    def wait(self, take: Callable[[], bool], ends: float) -> bool:
        """Wait for a place.

        :param take: takes a place if one is free, and returns whether it did
        :param ends: time of the monotonic clock at which waiting ends
        :returns: whether a place was taken
        """
        turn = threading.Lock()
        turn.acquire()
        try:
            self._turns.append(turn)
            while not (self._turns[0] is turn and take()):
                left = ends - time.monotonic()
                if left <= 0 or not turn.acquire(timeout=left):
                    return False
            return True
        finally:
            # An interrupt can come before it is in the line.
            with contextlib.suppress(ValueError):
                self._turns.remove(turn)
            # There may be a second place.
            self.move()

    def move(self) -> None:
        """Let the first thread look whether there is a place."""
        # Nobody waits, or the first thread has been told before.
        with contextlib.suppress(IndexError, RuntimeError):
            self._turns[0].release()
