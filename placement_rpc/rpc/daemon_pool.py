# SPDX-License-Identifier: Apache-2.0
"""Threads that make a blocking call on somebody's behalf, who waits no longer than he wants.

While the broker is away, the bus library waits for it without end, whatever time-out a call
has. The caller's own deadline holds only if it waits elsewhere. The threads are daemons: a
program can end while one of them still waits for a broker.
"""

import queue
import threading

from placement_rpc import exception


class _Task:
    """A call, what came of it, and the lock that its caller waits on."""

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
    """A bounded number of threads, started as they are needed.

    :param limit: int, the most calls under way, those included that nobody waits for any more
    """

    def __init__(self, limit):
        self._limit = limit
        self._tasks = queue.SimpleQueue()
        self._mutex = threading.Lock()
        self._threads = 0
        self._idle = 0

    def run(self, call, timeout):
        """Make a call and wait for it.

        :param call: callable without arguments
        :param timeout: float, seconds
        :returns: what the call returned
        :raises TimeoutError: when it has not ended by then; it goes on alone
        :raises ServiceUnavailable: when every thread is still held by an earlier call
        """
        task = _Task(call)
        with self._mutex:
            if self._idle:
                self._idle -= 1
            elif self._threads < self._limit:
                self._threads += 1
                threading.Thread(target=self._work, daemon=True).start()
            else:
                raise exception.ServiceUnavailable(
                    reason=f"all {self._limit} calls that may be under way are waiting")
        self._tasks.put(task)
        if not task.done.acquire(timeout=timeout):
            raise TimeoutError
        if task.error is not None:
            raise task.error
        return task.result

    def _work(self):
        while True:
            task = self._tasks.get()
            if task is None:
                return
            task.run()
            with self._mutex:
                self._idle += 1
            task.done.release()

    def close(self):
        """Let idle threads end."""
        with self._mutex:
            for _ in range(self._threads):
                self._tasks.put(None)
            self._threads = self._idle = 0
