# SPDX-License-Identifier: Apache-2.0
"""Daemon threads that make blocking calls, so that the caller's deadline holds.

While a broker does not answer, connecting to it may block for longer than the caller's deadline.
The caller therefore waits for a thread of this pool. The threads are daemons: a program can end
while one of them is still blocked.
"""

import _thread
import queue
import threading
from collections.abc import Callable
from typing import Any

from placement_rpc import exception


class _Task:
    """A call, its result or error, and the lock that the caller waits on."""

    __slots__ = ("began", "call", "done", "error", "result")

    def __init__(self, call):
        self.call = call
        self.began = False
        self.result = None
        self.error = None
        self.done = threading.Lock()
        self.done.acquire()

    def run(self):
        """Make the call, unless its caller waits no more."""
        call = self.call
        if call is None:
            return
        self.began = True
        try:
            self.result = call()
        except BaseException as error:
            self.error = error


class DaemonPool:
    """A bounded number of threads, started when they are needed.

    Calls that find no thread wait for one, and get it in the order in which they came.

    :param limit: the most calls under way, including calls whose caller has timed out
    """

    def __init__(self, limit: int):
        self._limit = limit
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        # Only the threads change the counters: a caller can be interrupted at any place.
        self._mutex = threading.Lock()
        self._threads = 0
        self._idle = 0
        self._closed = False

    @property
    def idle(self) -> int:
        """How many threads wait for a call."""
        return self._idle

    @property
    def waiting(self) -> int:
        """How many calls wait for a thread."""
        return self._tasks.qsize()

    def run(self, call: Callable[[], Any], timeout: float) -> Any:
        """Make a call in a thread and wait for it.

        :param call: callable without arguments
        :param timeout: seconds
        :returns: what the call returned
        :raises TimeoutError: if the call has not ended in time; it continues in its thread
        :raises ServiceUnavailable: if all threads were occupied by other calls for so long, or
            none can be started
        """
        task = _Task(call)
        try:
            self._tasks.put(task)
            trouble = self._start_if_needed()
            if not task.done.acquire(timeout=timeout):
                if task.began:
                    raise TimeoutError
                raise exception.ServiceUnavailable(reason=trouble or (
                    f"all {self._limit} calls that may be under way are waiting"
                    if timeout > 0 else "no time was left for it"))
        finally:
            # A thread that comes to it later has nothing to do.
            task.call = None
        if task.error is not None:
            raise task.error
        return task.result

    def _start_if_needed(self):
        """Start a thread if more calls wait than threads.

        :returns: why there cannot be another thread, while there are some; otherwise None
        :raises ServiceUnavailable: if there cannot be any
        """
        with self._mutex:
            if self._threads >= self._limit or self._tasks.qsize() <= self._idle:
                return None
        try:
            # If a signal handler raises within threading.Thread.start(), that can leave a thread
            # that never works, and its caller gets an error of threading's own.
            _thread.start_new_thread(self._work, ())
        except RuntimeError as error:
            trouble = f"there is no thread for the call: {error}"
            if not self._threads:
                raise exception.ServiceUnavailable(reason=trouble) from error
            return trouble
        return None

    def _work(self):
        with self._mutex:
            # Several callers may have started one for the last place.
            if self._threads >= self._limit:
                return
            self._threads += 1
            self._idle += 1
        while (task := self._next()) is not None:
            # A caller that came before this thread was counted as occupied relied on it.
            self._start_if_needed()
            task.run()
            with self._mutex:
                self._idle += 1
            task.done.release()

    def _next(self):
        """Return the next task; None when the pool is closed and all its calls are made."""
        task = None if self._closed else self._tasks.get()
        with self._mutex:
            self._idle -= 1
            while task is None:
                try:
                    task = self._tasks.get_nowait()
                except queue.Empty:
                    self._threads -= 1
                    if self._threads:
                        # Another thread's sign of the end may have been taken here.
                        self._tasks.put(None)
                    return None
        return task

    def close(self) -> None:
        """End idle threads, and the others when no call waits any more."""
        with self._mutex:
            self._closed = True
            for _ in range(self._threads):
                self._tasks.put(None)
