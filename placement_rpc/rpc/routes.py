# SPDX-License-Identifier: Apache-2.0
"""A check that calls reach their queue, although the connection carries messages."""

import math
import time
from collections.abc import Callable

# Seconds without an answer to any call by a routing key after which a connection is replaced.
_PATIENCE = 4.0
# Longest time between two replacements.
_LONGEST = 60.0


class Routes:
    """Notices that no call by some routing key is answered.

    A channel that sends its first message to a quorum queue while the queue's leader ends, in an
    orderly way too, may go on sending to that leader: RabbitMQ 3.10 loses the messages without a
    word, although the queue has another leader within a second. A new connection helps.

    If there is simply no service, or it takes long, a new connection does not help, so the time
    until the next one doubles each time.

    Any thread may call the methods.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Of each routing key: when the first and the last call were sent since the last answer.
        self._unanswered: dict[str, tuple[float, float]] = {}
        # Of routing keys whose connection was replaced: seconds until it may be again.
        self._patience: dict[str, float] = {}

    def opened(self) -> None:
        """Take note of a new connection."""
        self._unanswered.clear()

    def sending(self, routing_key: str) -> None:
        """Take note of a call that is sent now."""
        now = self._clock()
        first, last = self._unanswered.get(routing_key, (now, now))
        # What was sent long before says nothing about now.
        self._unanswered[routing_key] = (first if now - last < _PATIENCE else now, now)

    def answered(self, routing_key: str) -> None:
        """Take note of an answer of any kind to a call."""
        self._unanswered.pop(routing_key, None)
        self._patience.pop(routing_key, None)

    def is_lost(self, routing_key: str) -> bool:
        """Return whether the connection is to be replaced; true once for each connection."""
        patience = self._patience.get(routing_key, _PATIENCE)
        first, _ = self._unanswered.get(routing_key, (math.inf, None))
        if self._clock() - first < patience:
            return False
        self._unanswered.pop(routing_key, None)
        self._patience[routing_key] = min(2 * patience, _LONGEST)
        return True
