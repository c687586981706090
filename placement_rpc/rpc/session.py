# SPDX-License-Identifier: Apache-2.0
"""A connection of a server of calls: what it rejects, and the calls that it works on one by one.

A call that was delivered before may have ended the process that worked on it. The broker counts a
delivery of everything that such a process held, so attempts at one call are counted here, while
nothing else that was delivered before is worked on.
"""

import collections
import contextlib
import logging
from collections.abc import Iterator
from typing import Any, Self

from placement_rpc import bodies
from placement_rpc.amqp.consumer import Consumer
from placement_rpc.amqp.rejections import Rejections
from placement_rpc.rpc import received

LOG = logging.getLogger(__name__)


class _Died(Exception):
    """Processes ended while they worked on a call."""


class Session:
    """What belongs to one connection of a server.

    :param consumer: on the connection
    :param rejections: of the messages of this consumer
    :param attempts: :class:`placement_rpc.service.attempts.Attempts`
    :param limit: after how many attempts a call is rejected
    :param bodies_limits: of the bodies of calls
    """

    def __init__(self, consumer: Consumer, rejections: Rejections, attempts: Any,
                 limit: int, bodies_limits: bodies.Limits) -> None:
        self.consumer = consumer
        self.rejections = rejections
        self._attempts = attempts
        self._limit = limit
        self._bodies = bodies_limits
        #: Messages that were delivered before and are not worked on yet.
        self.doubtful: collections.deque[Any] = collections.deque()
        #: Whether a thread works on them.
        self.trying = False
        #: Whether the connection is no longer served: what waits is delivered again.
        self.is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.is_over = True

    def reject(self, message: Any, reason: str, error: Exception, whole: bool = False) -> None:
        """Dead-letter a message, and answer it with an error if it says who sent it.

        :param reason: for a person
        :param whole: whether to keep all of its body
        """
        self.rejections.add(
            message, reason[:500],
            lambda: received.answer_to(message, error, self._bodies), whole)

    def take_doubtful(self) -> Iterator[Any]:
        """Yield the messages that were delivered before, and forget them."""
        with contextlib.suppress(IndexError):
            while True:
                yield self.doubtful.popleft()

    @contextlib.contextmanager
    def attempt(self, message: Any) -> Iterator[bool]:
        """Count an attempt at a message for as long as this process may end during it.

        :returns: whether to make it; if not, the message is rejected
        """
        counted, made = self._begun(message)
        if made > self._limit:
            error = received.expected("a call", _Died(
                f"{self._limit} processes ended while they worked on it"))
            self.reject(message, "each process that worked on it died (incident "
                        f"{error.kwargs['incident']})", error, whole=True)
            yield False
            return
        try:
            yield True
        finally:
            self._survived(counted)

    def _begun(self, message):
        """Return the id under which an attempt is counted, None if it is not, and the number."""
        counted = self._attempts.id_of(message)
        try:
            return counted, self._attempts.begin(counted)
        except Exception as error:
            # Whatever is wrong with the count, the call has to be answered.
            LOG.warning("An attempt at a call is not counted: %s", error or repr(error))
            return None, 1

    def _survived(self, counted):
        if counted is None:
            return
        try:
            self._attempts.survived(counted)
        except Exception as error:
            LOG.warning("An attempt at a call stays counted: %s", error or repr(error))
