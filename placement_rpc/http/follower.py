# SPDX-License-Identifier: Apache-2.0
"""Waiting for events: one poll of the newest position for all requests that wait."""

import collections
import contextlib
import logging
import random
import threading

from placement_rpc import exception

LOG = logging.getLogger(__name__)

_POLL_INTERVAL = 0.2
# Seconds after which a request that was refused may come back: the lower and the upper bound.
_COME_BACK = (5, 20)
# Seconds after which an unanswered poll times out, so that an outage is noticed.
_POLL_TIMEOUT = 5


class TooManyWaiting(exception.PlacementException):
    code = "placement.events.too_many_waiting"
    http_status = 503
    message = (
        "Too many requests are waiting for events (limit {limit} {scope}); try again in "
        "{retry_after} seconds"
    )


class Places:
    """The places of requests that wait for events: a limit for all, and a share for each user.

    :param limit: int, the maximum number of requests that wait at a time
    :param percent: int, the share of one user, which is one place at least
    """

    def __init__(self, limit, percent):
        self._limit = limit
        self._share = max(1, limit * percent // 100)
        self._taken = collections.Counter()
        self._mutex = threading.Lock()

    @contextlib.contextmanager
    def place(self, user):
        """Hold one of the places; a context manager.

        :param user: str, the user whose request waits
        :raises TooManyWaiting: if all places are taken, or this user's share of them
        """
        with self._mutex:
            if self._taken.total() >= self._limit:
                raise _too_many(self._limit, "in one process")
            if self._taken[user] >= self._share:
                raise _too_many(self._share, "for one user")
            self._taken[user] += 1
        try:
            yield
        finally:
            with self._mutex:
                self._taken[user] -= 1
                if not self._taken[user]:
                    del self._taken[user]


def _too_many(limit, scope):
    # Spread, so that those that are refused do not come back at the same moment.
    return TooManyWaiting(limit=limit, scope=scope, retry_after=random.randint(  # noqa: S311
        *_COME_BACK))


class Follower:
    """Block requests until the next event.

    One thread polls the service for all waiting requests, and only while there are any.

    :param api: :class:`placement_rpc.api.PlacementAPI`
    :param limit: int, the maximum number of requests that wait at a time
    :param percent: int, the share of one user
    :ivar places: :class:`Places` of the requests that wait
    """

    def __init__(self, api, limit, percent):
        self._api = api
        self.places = Places(limit, percent)
        self._changed = threading.Condition()
        self._waiting = 0
        self._last = 0
        self._polling = False
        self.closed = False

    def wait(self, after, seconds):
        """Wait for an event after a position.

        :param after: int
        :param seconds: float, the time limit
        :returns: bool, whether there is one
        """
        with self._changed:
            self._waiting += 1
            try:
                if not self._polling:
                    self._start_polling()
                self._changed.wait_for(lambda: self._last > after or self.closed, seconds)
                return self._last > after
            finally:
                self._waiting -= 1

    def _start_polling(self):
        try:
            threading.Thread(target=self._poll, name="follower", daemon=True).start()
        except RuntimeError:
            # The stream of events, which also waits here, has to go on.
            LOG.warning("No thread can be started that polls for new events; the next request "
                        "tries again", exc_info=True)
        else:
            self._polling = True

    def close(self):
        """End all waits."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def _poll(self):
        while True:
            last = self._newest()
            with self._changed:
                if last is not None and last != self._last:
                    self._last = last
                    self._changed.notify_all()
                if not self._waiting or self.closed:
                    self._polling = False
                    return
                # Only closing ends the pause early.
                self._changed.wait_for(lambda: self.closed, _POLL_INTERVAL)

    def _newest(self):
        try:
            return self._api.get_event_positions(None, timeout=_POLL_TIMEOUT).last
        except exception.PlacementException as error:
            LOG.warning("Polling for new events failed; retrying: %s", error)
            return None
        except Exception:
            LOG.exception("Polling for new events failed unexpectedly; retrying")
            return None
