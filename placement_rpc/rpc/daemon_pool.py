# SPDX-License-Identifier: Apache-2.0
"""Daemon threads that make blocking calls, so that the caller's deadline holds.

While a broker does not answer, connecting to it may block for longer than the caller's deadline.
The caller therefore waits for a thread of this pool. The threads are daemons: a program can end
while one of them is still blocked.
"""

import threading
from collections.abc import Callable
from typing import Any

from placement_rpc import exception
from placement_rpc.rpc.thread_pool import ThreadPool


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
        self._places = threading.Semaphore(limit)
        self._pool = ThreadPool(limit, "placement_call")
        self._is_closed = False

    def run(self, call: Callable[[], Any], timeout: float) -> Any:
        """Make a call in a thread and wait for it.

        :param call: callable without arguments
        :param timeout: seconds
        :returns: what the call returned
        :raises TimeoutError: if the call has not ended in time; it continues in its thread
        :raises ServiceUnavailable: if every thread is occupied by an earlier call, if none can be
            started, or after :meth:`close`
        """
        if not self._places.acquire(blocking=False):
            raise exception.ServiceUnavailable(
                reason=f"all {self._limit} calls that may be under way are waiting")
        task = _Task(call)
        try:
            self._pool.submit(self._work, task, then=task.done.release)
        except Exception as error:
            self._places.release()
            raise exception.ServiceUnavailable(
                reason="this client was closed" if self._is_closed
                else f"no thread can make the call: {error}") from error
        if not task.done.acquire(timeout=timeout):
            raise TimeoutError
        if task.error is not None:
            raise task.error
        return task.result

    def _work(self, task):
        task.run()
        self._places.release()

    def close(self) -> None:
        """End idle threads, and the others when their calls return."""
        self._is_closed = True
        self._pool.shutdown(wait=False)
