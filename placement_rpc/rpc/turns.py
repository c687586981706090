# SPDX-License-Identifier: Apache-2.0
"""A bounded number of threads, which work for clients in turns."""

import logging
import threading
import time
from collections.abc import Callable, Hashable

from placement_rpc.rpc.fair_queue import FairQueue
from placement_rpc.rpc.thread_pool import thread_pool

LOG = logging.getLogger(__name__)
# How many calls a client has that asks for more than it can use at a time.
_MANY = 4


class Turns:
    """Runs functions for clients, in the order of a :class:`FairQueue`.

    Its threads start at once, so it has to be made in the process that uses it, after a fork.

    :param threads: how many functions run at a time
    :param name: prefix of the names of the threads
    :param give_way: called after a function for a client that has four others or more
        here, with the processor time that it took, in seconds
    """

    def __init__(self, threads: int, name: str,
                 give_way: Callable[[float], object] = lambda _seconds: None) -> None:
        self._threads = threads
        #: What waits or runs; only this object changes it.
        self.queue = FairQueue(threads)
        self._give_way = give_way
        self._running = 0
        self._mutex = threading.Lock()
        self._pool = thread_pool(threads, name)

    def submit(self, client: Hashable, function: Callable[..., object],
               *arguments: object) -> None:
        """Run a function when it is the client's turn."""
        with self._mutex:
            self.queue.add(client, (function, arguments))
            if self._running == self._threads or not self.queue.is_ready:
                return
            self._running += 1
        self._pool.submit(self._work)

    def shutdown(self, wait: bool) -> None:
        """End the threads when nothing waits.

        :param wait: whether to wait for that
        """
        self._pool.shutdown(wait=wait)

    def _work(self):
        while True:
            with self._mutex:
                taken = self.queue.take()
                if taken is None:
                    self._running -= 1
                    return
            client, (function, arguments) = taken
            began = time.thread_time()
            try:
                function(*arguments)
            except Exception:
                LOG.exception("A call failed in a thread that works on calls")
            finally:
                with self._mutex:
                    self.queue.done(client)
            if self.queue.held(client) >= _MANY:
                self._give_way(time.thread_time() - began)
