# SPDX-License-Identifier: Apache-2.0
"""Calls that wait, taken in turns among the clients that made them.

A queue of RabbitMQ returns its messages in the order in which they came, so that a client with
many calls under way makes all others wait for each of them. A server therefore takes more messages
than it works on, and chooses among them: one call of each client in turn. While other clients make
calls, too, a client occupies no more than its share of the places. A client that is alone may
occupy all of them.
"""

import collections
import math
import time
from collections.abc import Callable, Hashable
from typing import Any

# Seconds for which a client counts after its last answer, unless the caller says otherwise.
_RECENT = 1.0
# While other clients make calls, one client occupies at most one in _MOST of the places. However
# many clients there are, it may occupy one in _LEAST.
_MOST, _LEAST = 4, 16
# The weight of the last call in the usual time from one answer to the next.
_WEIGHT = 1 / 64


class _Client:
    """What a client has here: calls that wait, in order, and how many are being worked on."""

    __slots__ = ("in_hand", "in_turn", "name", "waiting")

    def __init__(self, name):
        self.name = name
        self.waiting = collections.deque()
        self.in_hand = 0
        # Whether it is among those of which a call may be taken.
        self.in_turn = False


class FairQueue:
    """Calls that wait or are being worked on. Each operation takes constant time,
    except :meth:`discard`, which searches the calls of one client.

    One thread at a time may change it; :meth:`held`, :meth:`wait` and :meth:`has_others` may be
    called by any thread meanwhile.

    :param places: of which each client has a share while there are others; the caller takes no
        more calls than it can work on
    :param clock: returns the time in seconds
    :param recent: for how many seconds a client counts after its last answer
    :param part: a client that is the only one with calls that wait has one in so many of the
        places of its share
    """

    def __init__(self, places: int, clock: Callable[[], float] = time.monotonic,
                 recent: float = _RECENT, part: int = 1) -> None:
        self._places = places
        self._part = part
        self._clock = clock
        self._recent = recent
        self._clients: dict[Hashable, _Client] = {}
        # Clients whose calls are all answered, and since when; the longest ago first.
        self._answered: dict[Hashable, float] = {}
        # When the last one of those was answered.
        self._left = 0.0
        self._turns: collections.deque[_Client] = collections.deque()
        #: How many calls wait.
        self.waiting = 0
        # How many clients they are of.
        self._clients_waiting = 0
        #: How many calls are being worked on.
        self.in_hand = 0
        # Seconds from one answer to the next while there are calls, and when that last one was.
        self._interval = 0.0
        self._last = 0.0

    @property
    def is_ready(self) -> bool:
        """Whether a call may be taken."""
        return bool(self._turns)

    def has_others(self, name: Hashable) -> bool:
        """Return whether clients other than this one have calls here, or had some just now."""
        if len(self._clients) > (name in self._clients):
            return True
        return (len(self._answered) > (name in self._answered)
                and self._clock() - self._left <= self._recent)

    def held(self, name: Hashable) -> int:
        """Return how many calls of a client wait or are being worked on."""
        client = self._clients.get(name)
        return len(client.waiting) + client.in_hand if client is not None else 0

    def wait(self, name: Hashable) -> float:
        """Return in about how many seconds one more call of a client would be answered."""
        in_turn = (self.held(name) + 1) * max(1, len(self._clients))
        return self._interval * min(in_turn, self.waiting + self.in_hand + 1)

    def add(self, name: Hashable, call: Any) -> None:
        """Add a call.

        :param name: its client
        """
        client = self._clients.get(name)
        if client is None:
            if not self._clients:
                self._last = self._clock()
            self._answered.pop(name, None)
            client = self._clients[name] = _Client(name)
        self._clients_waiting += not client.waiting
        client.waiting.append(call)
        self.waiting += 1
        self._give_turn(client)

    def discard(self, name: Hashable, call: Any) -> bool:
        """Remove a call that waits; return False if it was taken.

        :param name: its client
        """
        client = self._clients.get(name)
        if client is None or call not in client.waiting:
            return False
        client.waiting.remove(call)
        self.waiting -= 1
        self._clients_waiting -= not client.waiting
        if not client.in_hand and not client.waiting:
            del self._clients[name]
        return True

    def take(self) -> tuple[Any, Any] | None:
        """Take the next call to work on.

        :returns: its client, for :meth:`done`, and the call; None if no call waits, or those that
            wait are of clients that occupy their shares
        """
        while self._turns:
            client = self._turns.popleft()
            client.in_turn = False
            # Another call of the client is being worked on, after which it gets a turn again.
            if client.in_hand and client.in_hand >= self._share():
                continue
            if not client.waiting:
                # They were discarded.
                continue
            call = client.waiting.popleft()
            client.in_hand += 1
            self.waiting -= 1
            self._clients_waiting -= not client.waiting
            self.in_hand += 1
            self._give_turn(client)
            return client.name, call
        return None

    def done(self, name: Hashable) -> None:
        """Release the place of a call that was taken.

        :param name: its client
        """
        client = self._clients[name]
        client.in_hand -= 1
        self.in_hand -= 1
        now = self._clock()
        self._interval += _WEIGHT * (now - self._last - self._interval)
        self._last = now
        self._give_turn(client)
        if not client.in_hand and not client.waiting:
            del self._clients[name]
            self._answered[name] = self._left = now
            self._forget(now)

    def _give_turn(self, client):
        if client.waiting and not client.in_turn:
            client.in_turn = True
            self._turns.append(client)

    def _forget(self, now):
        """Forget the clients that do not count any more."""
        while self._answered:
            name, since = next(iter(self._answered.items()))
            if since > now - self._recent:
                break
            del self._answered[name]

    def _share(self):
        """Return how many places one client may occupy now."""
        self._forget(self._clock())
        clients = len(self._clients) + len(self._answered)
        if clients <= 1:
            return math.inf
        part = self._part if self._clients_waiting == 1 else 1
        return max(1, self._places // (_LEAST * part), min(
            self._places // _MOST, self._places // (clients * part)))
