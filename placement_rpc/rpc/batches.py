# SPDX-License-Identifier: Apache-2.0
"""Calls that wait to be answered together, as many as have arrived when the last ones are done."""

import collections
import concurrent.futures
import itertools
import logging
import threading
from collections.abc import Callable, Hashable
from typing import Any

from placement_rpc.amqp.frames import FAILURES
from placement_rpc.rpc import envelope
from placement_rpc.rpc.fair_queue import FairQueue
from placement_rpc.rpc.session import Session

LOG = logging.getLogger(__name__)
# Once no call of another client waits, a client has one in so many of the places of its share: its
# calls would delay the next calls of the others.
_PART = 2

_Batch = list[tuple[Any, envelope.Call]]


class Batches:
    """Has calls answered in batches, one batch at a time, in which each client has its share.

    :param size: the most calls in a batch
    :param answer: answers a batch; callable of the session and a list of messages and calls
    :param pool: a thread of it answers the batches; None if the caller's does
    """

    def __init__(self, size: int, answer: Callable[[Session, _Batch], None],
                 pool: concurrent.futures.Executor | None) -> None:
        self._size = size
        self._answer = answer
        self._pool = pool
        #: The calls that wait or are being answered; only this object changes it.
        self.queue = FairQueue(size, part=_PART)
        self._mutex = threading.Lock()
        # Whether a thread of the pool is at work.
        self._is_working = False

    def add(self, session: Session, message: Any, call: envelope.Call, client: Hashable) -> None:
        """Have a call wait for the next batch."""
        with self._mutex:
            self.queue.add(client, (session, message, call))

    def work(self) -> None:
        """Answer what waits: the next batch, or in a thread of the pool all of it.

        Calls that are added while that thread is at work become its next batch.
        """
        if not self.queue.is_ready:
            return
        if self._pool is None:
            self._answer_next(self._answer)
            return
        with self._mutex:
            if self._is_working:
                return
            self._is_working = True
        self._pool.submit(self._work)

    def _work(self):
        while True:
            with self._mutex:
                if not self.queue.is_ready:
                    self._is_working = False
                    return
            self._answer_next(self._answer_aside)

    def _answer_aside(self, session, batch):
        try:
            self._answer(session, batch)
        except FAILURES as error:
            LOG.info("Answers are lost with the connection: %s", error)
        except Exception:
            LOG.exception("A batch cannot be answered")
            session.consumer.end()

    def _answer_next(self, answer):
        with self._mutex:
            taken = list(itertools.islice(iter(self.queue.take, None), self._size))
        # After a reconnection, earlier calls belong to another session.
        batches = collections.defaultdict(list)
        for _, (session, message, call) in taken:
            batches[session].append((message, call))
        try:
            # Those that are over first: the answers of the other one may be lost with it.
            for session in sorted(batches, key=lambda each: not each.is_over):
                answer(session, batches[session])
        finally:
            with self._mutex:
                for client, _ in taken:
                    self.queue.done(client)
