# SPDX-License-Identifier: Apache-2.0
"""Messages that cannot be handled, on their way from a queue to the dead letters."""

import collections
import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from placement_rpc.amqp.connection import Connection
from placement_rpc.amqp.consumer import Consumer
from placement_rpc.amqp.dead_letters import DeadLetterQueue
from placement_rpc.amqp.publisher import CONFIRM_TIMEOUT, ConfirmedChannel, Unconfirmed

LOG = logging.getLogger(__name__)


class _Rejected(NamedTuple):
    """A message, why it is rejected, whether all of it is kept, and who makes the answer."""

    message: Any
    reason: str
    whole: bool
    answer: Callable[[], tuple[str | None, str] | None]


class Rejections:
    """Dead-letters messages, acknowledges them when that is confirmed, and then answers them.

    Nothing waits for the broker's confirm: the thread that reads calls :meth:`settle` from time
    to time. A message is answered last, since finding out who sent it may end the process.

    :param connection: the connection of the consumer
    :param consumer: from which the messages come
    :param dead_letters: where they go
    :raises FAILURES: if the connection is lost
    """

    def __init__(self, connection: Connection, consumer: Consumer,
                 dead_letters: DeadLetterQueue) -> None:
        dead_letters.declare(connection)
        self._channel = ConfirmedChannel(connection)
        self._consumer = consumer
        self._dead_letters = dead_letters
        # Any thread adds to these; those that were sent belong to the thread that reads.
        self._new: collections.deque[_Rejected] = collections.deque()
        self._sent: list[_Rejected] = []
        self._sent_at = 0.0

    def add(self, message: Any, reason: str,
            answer: Callable[[], tuple[str | None, str] | None] = lambda: None,
            whole: bool = False) -> None:
        """Reject a message; from any thread.

        :param reason: for a person
        :param answer: returns the queue of the client and the body of the answer; None if no
            client is to be answered
        :param whole: whether to keep all of the body instead of an excerpt
        """
        LOG.error("A message of queue %s goes to the dead letters: %s",
                  self._consumer.queue_of(message), reason)
        self._new.append(_Rejected(message, reason, whole, answer))

    @property
    def pending(self) -> bool:
        """Whether messages wait for their confirm."""
        return bool(self._new or self._sent)

    def settle(self) -> None:
        """Send the messages that were added, and acknowledge those that were confirmed.

        For the thread that reads.

        :raises Unconfirmed: if the broker refuses a message or does not confirm it in time
        :raises FAILURES: if the connection is lost
        """
        if self._sent:
            if self._channel.is_settled():
                self._conclude()
            elif time.monotonic() > self._sent_at + CONFIRM_TIMEOUT:
                raise Unconfirmed(f"no confirm of a dead letter within {CONFIRM_TIMEOUT} s")
        if self._new and not self._sent:
            self._sent_at = time.monotonic()
            while self._new:
                rejected = self._new.popleft()
                self._sent.append(rejected)
                self._channel.send(self._dead_letters.outgoing(
                    rejected.message, self._consumer.queue_of(rejected.message), rejected.reason,
                    rejected.whole))

    def _conclude(self):
        sent, self._sent = self._sent, []
        self._consumer.acknowledge([rejected.message for rejected in sent])
        for rejected in sent:
            self._dead_letters.on_kept()
            try:
                answer = rejected.answer()
            except Exception as error:
                LOG.info("A message that was rejected does not say who sent it: %r", error)
            else:
                if answer is not None:
                    self._consumer.answer(*answer)
