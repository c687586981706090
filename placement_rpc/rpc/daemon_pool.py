# SPDX-License-Identifier: Apache-2.0
"""Daemon threads that make blocking calls, so that the caller's deadline holds.

While a broker does not answer, connecting to it may block for longer than the caller's deadline.
The caller therefore waits for a thread of this pool. The threads are daemons: a program can end
while one of them is still blocked.
"""

import queue
import threading
from collections.abc import Callable
from typing import Any

from placement_rpc import exception


class _Task:
    """A call, its result or error, and the lock that the caller waits on."""

    __slots__ = ("call", "done", "error", "result")

    def __init__(self, call):
        self.call = call
        self.result = None
        self.error = None
        self.done = threading.Lock()
        self.done.acquire()

    def run(self):
        try:
            self.result = self.call()
        except BaseException as error:
            self.error = error


class DaemonPool:
    """A bounded number of threads, started when they are needed.

    :param limit: the most calls under way, including calls whose caller has timed out
    """

    def __init__(self, limit: int):
        self._limit = limit
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._mutex = threading.Lock()
        self._threads = 0
        self._idle = 0

    @property
    def idle(self) -> int:
        """How many threads wait for a call."""
        return self._idle

    def run(self, call: Callable[[], Any], timeout: float) -> Any:
        """Make a call in a thread and wait for it.

        :param call: callable without arguments
        :param timeout: seconds
        :returns: what the call returned
        :raises TimeoutError: if the call has not ended in time; it continues in its thread
        :raises ServiceUnavailable: if every thread is occupied by an earlier call, or no further
            one can be started
        """
        task = _Task(call)
        with self._mutex:
            if self._idle:
                self._idle -= 1
            elif self._threads < self._limit:
                self._start()
                self._threads += 1
            else:
                raise exception.ServiceUnavailable(
                    reason=f"all {self._limit} calls that may be under way are waiting")
        self._tasks.put(task)
        if not task.done.acquire(timeout=timeout):
            raise TimeoutError
        if task.error is not None:
            raise task.error
        return task.result

    def _start(self):
        try:
            threading.Thread(target=self._work, daemon=True).start()
        except RuntimeError as error:
            raise exception.ServiceUnavailable(
                reason=f"there is no thread for the call: {error}") from error

    def _work(self):
        while True:
            task = self._tasks.get()
            if task is None:
                return
            task.run()
            with self._mutex:
                self._idle += 1
            task.done.release()

    def close(self) -> None:
        """End idle threads, and the others when their calls return."""
        with self._mutex:
            for _ in range(self._threads):
                self._tasks.put(None)
            self._threads = self._idle = 0
