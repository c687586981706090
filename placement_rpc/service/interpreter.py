# SPDX-License-Identifier: Apache-2.0
"""How the threads of a program of the service share Python's interpreter."""

import contextlib
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator

# Seconds after which a thread that computes lets another one compute that waits. Python's own are
# ten times as many. A thread that works on a claim waits for the database and the broker often,
# and each time also for all threads that make large answers, each of them for so long.
_TURN = 0.0005
# A full collection of garbage stops all threads. It looks at all objects of the process: some
# 200,000 after the start, in 100 to 200 ms on a slow machine, several times a second while large
# answers are made. One that takes more seconds than this is too long.
_LONG = 0.01


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Collect no garbage in this block, and exempt what is alive at its end from collections.

    Hundreds of thousands of objects are made and hardly any is garbage. The first full collection
    after it would look at all of them, and stop a conductor for 70 ms or more.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


class Collections:
    """Makes full collections short: they look no more at what has survived a long one.

    Such objects are freed when nothing refers to them, as before, but no longer if only a cycle of
    theirs does. So that such cycles cannot add up, this happens the less often the longer the
    process runs: the waits double.

    :param clock: returns the time in seconds
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = 0.0
        self.restart()

    def restart(self) -> None:
        """Count from now on, in a process that was just started or forked."""
        self._started = self._clock()
        self._next = 0.0

    def note(self, phase: str, info: dict) -> None:
        """Notice that a collection begins or has ended; one of :data:`gc.callbacks`."""
        if info["generation"] < 2:
            return
        now = self._clock()
        if phase == "start":
            self._began = now
        elif now - self._began > _LONG and now >= self._next:
            gc.freeze()
            self._next = now + max(1.0, now - self._started)


_COLLECTIONS = Collections()


def prefer_quick_requests() -> None:
    """Let quick requests wait less for those that compute for long; for a whole process."""
    sys.setswitchinterval(_TURN)
    if _COLLECTIONS.note not in gc.callbacks:
        gc.callbacks.append(_COLLECTIONS.note)
        # A parent may be old when it starts another worker.
        os.register_at_fork(after_in_child=_COLLECTIONS.restart)
