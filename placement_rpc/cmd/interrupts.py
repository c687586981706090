# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends a program, whatever the program is at when it comes."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator

# Seconds after which a signal is sent again.
_SOON = 0.05


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Send SIGINT again for each KeyboardInterrupt that Python ignores within the block.

    Python ignores an exception in a destructor or in a callback of a library in C, and the
    program would go on.
    """
    before, timers = sys.unraisablehook, []

    def again(ignored):
        if not issubclass(ignored.exc_type, KeyboardInterrupt):
            before(ignored)
            return
        # Later, since an exception in this hook is ignored, too.
        timers.append(threading.Timer(_SOON, _interrupt))
        timers[-1].daemon = True
        timers[-1].start()

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before
        for each in timers:
            each.cancel()


def _interrupt():
    # Sent to this thread, it would not end what the main thread waits for.
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
