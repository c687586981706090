# SPDX-License-Identifier: Apache-2.0
"""Quick calls come before large answers, which share Python's interpreter and the processor.

A client that asks for many large answers at a time would take as much of the processor as all
claims of a process together. The threads that make them therefore rest after each of them, while
there are quick calls, in proportion to what they have computed.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

# Seconds after a quick call for which there still are some: the clients decide, and call again.
_RECENT = 0.5
# Seconds of rest for each second of work; no rest is longer, since others wait for large answers.
_REST, _LONGEST = 8.0, 0.25


class Precedence:
    """Whether there are quick calls in a process, and the rests of the threads that give way.

    :param clock: returns the time in seconds
    :param pause: waits for a number of seconds
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic,
                 pause: Callable[[float], object] = time.sleep) -> None:
        self._clock = clock
        self._pause = pause
        self._counting = threading.Lock()
        self._under_way = 0
        self._last = -_RECENT

    @contextlib.contextmanager
    def quick(self) -> Iterator[None]:
        """Work on quick calls, for a block."""
        with self._counting:
            self._under_way += 1
        try:
            yield
        finally:
            with self._counting:
                self._under_way -= 1
                self._last = self._clock()

    def give_way(self, seconds: float) -> None:
        """Rest after work on a large answer, if there are quick calls.

        :param seconds: of processor time that the work took
        """
        if self._under_way or self._clock() - self._last < _RECENT:
            self._pause(min(_LONGEST, _REST * seconds))


#: Of this process: all its servers share the interpreter.
of_process = Precedence()
