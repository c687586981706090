# SPDX-License-Identifier: Apache-2.0
"""A check that a client's connection carries messages, both ways."""

import contextlib
import time

from placement_rpc.amqp.consumer import Consumer
from placement_rpc.amqp.outgoing import Outgoing

#: The correlation id of an echo, which no call has.
ID = "echo"
# Seconds without a message after which a client that waits for answers sends an echo.
_QUIET = 2.0
# Seconds within which it has to return.
_TIMEOUT = 5.0
# Seconds between two checks after which the thread that reads was held up: what has come
# meanwhile may not have been read yet.
_HELD_UP = 2.5


class Echo:
    """A message that a client sends to its own queue of answers.

    After another node is lost, a channel or a queue of a node may hang while the node goes on
    sending heartbeats. A client that waits for answers on such a connection would wait for ever.

    For the thread that reads.

    :param consumer: of the queue of answers
    :param queue: the name of the queue
    """

    def __init__(self, consumer: Consumer, queue: str) -> None:
        self._consumer = consumer
        self._queue = queue
        self._sent_at: float | None = None
        self._heard_at = self._checked_at = time.monotonic()

    def heard(self) -> None:
        """Take note of a message that came from the queue, of any kind."""
        self._sent_at, self._heard_at = None, time.monotonic()

    def check(self, is_waiting: bool) -> None:
        """Send an echo if it is time to; called once a second or more often.

        The time for which the process was suspended, or the thread was busy, does not count.

        :param is_waiting: whether answers are expected
        :raises TimeoutError: if the last echo has not returned in time
        :raises FAILURES: if the connection is lost
        """
        now = time.monotonic()
        since, self._checked_at = now - self._checked_at, now
        if self._sent_at is not None and since > _HELD_UP:
            self._sent_at += since
        if not is_waiting:
            self.heard()
        elif self._sent_at is None:
            if now > self._heard_at + _QUIET:
                self._send(now)
        elif now > self._sent_at + _TIMEOUT:
            raise TimeoutError(
                f"the broker did not return a message within {_TIMEOUT:.0f} s")

    def _send(self, now):
        # While another thread writes a long call, the next check sends it. If the write itself
        # fails, the next read does.
        with contextlib.suppress(TimeoutError):
            self._consumer.send(Outgoing(
                b"{}", "", self._queue, correlation_id=ID, durable=False), timeout=0)
            self._sent_at = now
