# SPDX-License-Identifier: Apache-2.0
"""Refuse input and output to unit tests: sockets, child processes, and files that are written."""

import contextlib
import os
import sys
import threading

_REFUSED = {"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "socket.bind",
            "socket.connect", "socket.sendto", "subprocess.Popen"}
_WRITING = os.O_WRONLY | os.O_RDWR
_state = threading.local()


class InputOutputRefused(AssertionError):
    """A unit test opened a socket, started a process or wrote a file."""


def _audit(event, arguments):
    if not getattr(_state, "refuses", False):
        return
    if event in _REFUSED or (event == "open" and _writes(*arguments)):
        raise InputOutputRefused(f"A unit test does no I/O, but this one did: {event}{arguments}")


def _writes(path, _mode, flags):
    # The interpreter writes the byte code of modules that a test imports.
    return bool(flags & _WRITING) and "__pycache__" not in str(path) and path != os.devnull


@contextlib.contextmanager
def refused():
    """Refuse input and output of the calling thread; other threads are not checked."""
    _state.refuses = True
    try:
        yield
    finally:
        _state.refuses = False


# An audit hook cannot be removed; outside of refused() it does nothing.
sys.addaudithook(_audit)
