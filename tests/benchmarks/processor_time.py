# SPDX-License-Identifier: Apache-2.0
"""Processor time of other processes in nanoseconds; /proc counts hundredths of a second only."""

import contextlib
import time

import psutil

# The clock of a process on Linux: clock_getcpuclockid(3).
_SCHEDULER = 2


class Meter:
    """Reads how much processor time groups of processes have used.

    :param parts: dict of the name of a group to a list of process ids; their descendants belong to
        the group
    """

    def __init__(self, parts):
        self._parts = parts

    def read(self):
        """Return a dict of group to dict of process id to seconds."""
        return {name: {process.pid: seconds for pid in pids for process in _descendants(pid)
                       if (seconds := _seconds(process.pid)) is not None}
                for name, pids in self._parts.items()}

    def since(self, before):
        """Return a dict of group to seconds since an earlier reading.

        The time of processes that have ended in the meantime is not included.
        """
        return {name: sum(seconds - before[name].get(pid, 0.0) for pid, seconds in group.items())
                for name, group in self.read().items()}


def _descendants(pid):
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def _seconds(pid):
    """Return the processor time of all threads of a process; None if it has ended."""
    with contextlib.suppress(OSError):
        return time.clock_gettime(~pid << 3 | _SCHEDULER)
    return None
