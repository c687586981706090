# SPDX-License-Identifier: Apache-2.0
"""A database that keeps its readers waiting."""

import contextlib
import threading


class HeldStore:
    """A database whose reading transactions wait until ``release`` is set.

    :param database: :class:`placement_rpc.db.api.Database`
    :param thread: str, name of the thread whose transactions wait; None for all
    :param after: int, how many of its transactions do not wait
    """

    def __init__(self, database, thread=None, after=0):
        self.database = database
        self._thread = thread
        self._after = after
        self.asked, self.release = threading.Event(), threading.Event()

    @contextlib.contextmanager
    def reader(self, snapshot=False, causal=True):
        if self._thread in (None, threading.current_thread().name):
            self._after -= 1
            if self._after < 0:
                self.asked.set()
                self.release.wait()
        with self.database.reader(snapshot, causal) as tx:
            yield tx
