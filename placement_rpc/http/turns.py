# SPDX-License-Identifier: Apache-2.0
"""Requests of clients that make very many at a time: they wait for their turns, or are refused.

Each request that is worked on occupies a thread, and so does one that waits. A request that finds
no free thread waits behind all that came before it, whichever clients sent them. A client
therefore has a bounded number of threads, which is lower while other clients make requests too; a
further request is refused with 503, so that it leaves its thread to others.

A request that waits costs nothing but its thread. A refusal costs as much as a small answer, and a
client that ignores it sends the next request at once. So there are many more threads than requests
that are worked on at a time, and most of the requests that are too many wait.
"""

import random
import threading

from placement_rpc import exception
from placement_rpc.rpc.fair_queue import FairQueue

# How many times as many places there are as one client may occupy while others make requests.
_SHARES = 4
# How many times as many requests are worked on at a time in all. A client that is alone leaves
# room for one other.
_AT_A_TIME = 6
# While others make requests, too, a client may have so many here for each free thread. So there
# are some for others: one such client has two thirds of the threads, two have two fifths each.
_FOR_EACH_FREE = 2
# Seconds after which a request that was refused may come back: the lower and the upper bound.
_SOONEST, _LATEST = 1, 10
# Seconds for which a client counts after its last answer. Longer than on the bus, where a server
# sees the calls that wait behind those of another client.
_RECENT = 10.0


class RequestTurns:
    """The requests that a process works on, by client.

    :param for_one: int, how many requests of one client are worked on at a time while others make
        requests too; 0 for no limit
    :param threads: int, for requests that are worked on and for those that wait; a client that is
        alone leaves ``for_one`` of them free
    :param patience: seconds that a request waits for its turn
    :param on_refusal: called for each request that is refused
    """

    def __init__(self, for_one, threads, patience, on_refusal):
        self._for_one, self._threads = for_one, threads
        self._patience = patience
        self._on_refusal = on_refusal
        self._queue = FairQueue(_SHARES * for_one, recent=_RECENT)
        self._mutex = threading.Lock()

    @property
    def held(self):
        """How many requests are here: those that are worked on and those that wait."""
        return self.working + self._queue.waiting

    @property
    def working(self):
        """How many requests are worked on."""
        return self._queue.in_hand

    def begin(self, client):
        """Wait until a request may be worked on; :meth:`end` has to follow.

        :param client: hashable, whose request it is
        :raises ServiceOverloaded: if as many of the client are here as may, or its turn does not
            come
        """
        if not self._for_one:
            return
        turn = threading.Lock()
        turn.acquire()
        with self._mutex:
            held = self._queue.held(client)
            if held >= self._most(client):
                self._refuse(client, f"this client already has {held} requests under way")
            self._queue.add(client, turn)
            self._give_turns(client)
        if turn.acquire(timeout=self._patience):
            return
        with self._mutex:
            # Otherwise it was given its turn just now.
            if self._queue.discard(client, turn):
                self._refuse(client, f"its turn did not come within {self._patience:g} s")

    def _most(self, client):
        """Return how many requests of a client may be here; ``for_one`` always may."""
        if self._queue.has_others(client):
            free = self._threads - self.held
            return max(self._for_one, _FOR_EACH_FREE * free)
        return max(self._for_one, self._threads - self._for_one)

    def _refuse(self, client, reason):
        seconds = self._queue.wait(client)
        self._on_refusal()
        raise exception.ServiceOverloaded(reason=reason, retry_after=_retry_after(seconds))

    def end(self, client):
        """Let the next request be worked on."""
        if not self._for_one:
            return
        with self._mutex:
            self._queue.done(client)
            self._give_turns(client)

    def _give_turns(self, client):
        times = _AT_A_TIME if self._queue.has_others(client) else _AT_A_TIME - 1
        while self.working < times * self._for_one and (
                taken := self._queue.take()) is not None:
            taken[1].release()


def _retry_after(seconds):
    """Return a whole number of seconds, spread so that not all return at the same moment."""
    least = min(_LATEST - 1, max(_SOONEST, int(seconds)))
    return random.randint(least, min(_LATEST, 2 * least))  # noqa: S311
