# SPDX-License-Identifier: Apache-2.0
"""A check that calls reach their queue, although the connection carries messages."""

import dataclasses
import time
from collections.abc import Callable

# Seconds for which calls by a routing key wait without an answer before their connection is
# replaced; they count when a call stops waiting.
_PATIENCE = 4.0
# Longest time between two replacements.
_LONGEST = 60.0


@dataclasses.dataclass(slots=True)
class _Route:
    """A routing key since its last answer.

    ``waited`` is for how long calls have waited without an answer, ``since`` when those began that
    wait now, None if none does, and ``patience`` how long they may wait on this connection.
    """

    waited: float = 0.0
    since: float | None = None
    patience: float = _PATIENCE


class Routes:
    """Notices that no call by some routing key is answered.

    A channel that sends its first message to a quorum queue while the queue's leader ends, in an
    orderly way too, may go on sending to that leader: RabbitMQ 3.10 loses the messages without a
    word, although the queue has another leader within a second. A new connection helps.

    If there is simply no service, or it takes long, a new connection does not help, so the time
    until the next one doubles each time.

    :meth:`check` is for the thread that reads, the others are for any.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._routes: dict[str, _Route] = {}

    def opened(self) -> None:
        """Take note of a new connection, or of a broker that reads again."""
        for route in list(self._routes.values()):
            route.waited, route.since = 0.0, None

    def sending(self, routing_key: str) -> None:
        """Take note of a call that is sent now."""
        route = self._routes.setdefault(routing_key, _Route())
        if route.since is None:
            route.since = self._clock()

    def stopped(self, routing_key: str) -> None:
        """Take note of a call that stopped waiting without an answer."""
        route = self._routes.get(routing_key)
        if route is not None and route.since is not None:
            route.waited += self._clock() - route.since
            route.since = None

    def answered(self, routing_key: str) -> None:
        """Take note of an answer of any kind, even if nobody waits for it any more."""
        self._routes.pop(routing_key, None)

    def check(self) -> None:
        """Check all routes; called when everything that has come was read.

        :raises TimeoutError: if the connection is to be replaced
        """
        for routing_key, route in list(self._routes.items()):
            if route.waited >= route.patience:
                route.patience = min(2 * route.patience, _LONGEST)
                raise TimeoutError(f"no call to {routing_key} was answered")
