# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C that Python ignores is sent again."""

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
    before, ended, sending = sys.unraisablehook, threading.Event(), threading.Lock()

    def send():
        with sending:
            if not ended.is_set():
                # Sent to this thread, it would not end what the main thread waits for.
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def again(ignored):
        if not issubclass(ignored.exc_type, KeyboardInterrupt):
            before(ignored)
            return
        # Later, since an exception in this hook is ignored, too.
        timer = threading.Timer(_SOON, send)
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:
            # There is no room for a thread: Python says that it ignores the interrupt.
            before(ignored)

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before
        with sending:
            ended.set()
