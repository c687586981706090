# SPDX-License-Identifier: Apache-2.0
"""A pool of threads, of which the one that worked last gets the next function."""

import collections
import logging
import threading
from collections.abc import Callable
from typing import NamedTuple

LOG = logging.getLogger(__name__)


class _Task(NamedTuple):
    """A function to run, and what is called when its thread is free again."""

    function: Callable[..., object]
    arguments: tuple[object, ...]
    then: Callable[[], object] | None


class _Worker:
    """What a thread of the pool waits on while it is idle: a task, or None to end."""

    __slots__ = ("task", "woken")

    def __init__(self):
        self.task: _Task | None = None
        self.woken = threading.Lock()
        self.woken.acquire()


class ThreadPool:
    """A bounded number of threads, which start when no other one is idle.

    The idle threads of a :class:`concurrent.futures.ThreadPoolExecutor` wait at one queue, whose
    lock in Python 3.11 wakes two of them for each function: the second one finds nothing, and
    takes the interpreter from the first one for that. Here each waits on a lock of its own.

    The threads are daemons: a process ends without those that it has not waited for.

    :param most: how many functions run at a time; others wait
    :param name: prefix of the names of the threads
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._mutex = threading.Lock()
        self._idle: list[_Worker] = []
        # Only while no thread is idle.
        self._waiting: collections.deque[_Task] = collections.deque()
        self._threads: list[threading.Thread] = []
        self._has_ended = False

    @property
    def idle(self) -> int:
        """How many threads wait for a function."""
        return len(self._idle)

    @property
    def threads(self) -> int:
        """How many threads were started."""
        return len(self._threads)

    def submit(self, function: Callable[..., object], *arguments: object,
               then: Callable[[], object] | None = None) -> None:
        """Run a function in a thread; an error of it is logged.

        :param then: is called by the thread once it counts as idle, or has its next function
        :raises RuntimeError: if the pool was shut down, or if its first thread cannot be started
        """
        task = _Task(function, arguments, then)
        with self._mutex:
            if self._has_ended:
                raise RuntimeError(f"the threads {self._name} were ended")
            if self._idle:
                worker = self._idle.pop()
                worker.task = task
                worker.woken.release()
                return
            self._waiting.append(task)
            if len(self._threads) < self._most:
                self._start()

    def _start(self):
        """Start a thread for what waits; without it, the others work on that later."""
        thread = threading.Thread(
            target=self._work, name=f"{self._name}_{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        try:
            thread.start()
        except Exception:
            # The system has no room for one more.
            self._threads.pop()
            if not self._threads:
                self._waiting.pop()
                raise
            LOG.exception("The thread %s cannot be started", thread.name)

    def shutdown(self, wait: bool = True) -> None:
        """End the threads when nothing waits.

        :param wait: whether to wait for that
        """
        with self._mutex:
            self._has_ended = True
            for worker in self._idle:
                worker.woken.release()
            self._idle.clear()
        if wait:
            for each in self._threads:
                each.join()

    def _work(self):
        worker, then = _Worker(), None
        while True:
            with self._mutex:
                task = self._waiting.popleft() if self._waiting else None
                is_last = task is None and self._has_ended
                if task is None and not is_last:
                    self._idle.append(worker)
            if then is not None:
                then()
                then = None
            if is_last:
                return
            if task is None:
                worker.woken.acquire()
                task, worker.task = worker.task, None
                if task is None:
                    return
            then = task.then
            try:
                task.function(*task.arguments)
            except BaseException:
                # Whatever it is, the thread is needed for the next function.
                LOG.exception("A function of the thread %s failed",
                              threading.current_thread().name)
            # Not kept while the thread is idle, and not freed under the lock.
            task = None
