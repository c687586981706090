# SPDX-License-Identifier: Apache-2.0
"""Threads that run functions; of those that are idle, the one that was busy last."""

import collections
import logging
import threading
from collections.abc import Callable

from placement_rpc import exception

LOG = logging.getLogger(__name__)

_Task = tuple[Callable[..., object], tuple[object, ...]]


class _Idle:
    """A thread that waits for a task; None ends it."""

    __slots__ = ("task", "woken")

    def __init__(self):
        self.task: _Task | None = None
        self.woken = threading.Lock()
        self.woken.acquire()


class ThreadPool:
    """A bounded number of threads, which start when they are needed.

    The idle threads of a :class:`concurrent.futures.ThreadPoolExecutor` wait in turn at one queue,
    whose lock wakes two of them for each function: the second one finds nothing, and takes the
    interpreter from the first one for that. Here each waits on a lock of its own.

    The threads are daemons: a process that has waited for long enough ends without them.

    :param most: how many functions run at a time; others wait
    :param name: prefix of the names of the threads
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._mutex = threading.Lock()
        self._idle: list[_Idle] = []
        self._waiting: collections.deque[_Task] = collections.deque()
        self._threads: list[threading.Thread] = []
        self._has_ended = False

    @property
    def idle(self) -> int:
        """How many threads wait for a function."""
        return len(self._idle)

    def submit(self, function: Callable[..., object], *arguments: object) -> None:
        """Run a function in a thread; an error of it is logged.

        :raises ServiceUnavailable: if the pool was shut down
        """
        task = function, arguments
        with self._mutex:
            if self._has_ended:
                raise exception.ServiceUnavailable(reason="its threads have ended")
            if self._idle:
                thread = self._idle.pop()
                thread.task = task
                thread.woken.release()
            elif len(self._threads) < self._most:
                started = threading.Thread(
                    target=self._work, args=(task,), name=f"{self._name}_{len(self._threads)}",
                    daemon=True)
                started.start()
                self._threads.append(started)
            else:
                self._waiting.append(task)

    def shutdown(self, wait: bool = True) -> None:
        """End the threads when nothing waits.

        :param wait: whether to wait for that
        """
        with self._mutex:
            self._has_ended = True
            for thread in self._idle:
                thread.woken.release()
            self._idle.clear()
        if wait:
            for each in self._threads:
                each.join()

    def _work(self, task):
        idle = _Idle()
        while task is not None:
            function, arguments = task
            try:
                function(*arguments)
            except BaseException:
                # Whatever it is, the thread is needed for the next one.
                LOG.exception("A function in a thread failed")
            # Not kept while the thread is idle.
            task = function = arguments = None
            with self._mutex:
                if self._waiting:
                    task = self._waiting.popleft()
                elif self._has_ended:
                    return
                else:
                    idle.task = None
                    self._idle.append(idle)
            if task is None:
                idle.woken.acquire()
                task = idle.task
