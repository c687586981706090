# SPDX-License-Identifier: Apache-2.0
"""Waiting for events: one look at the newest position for all who wait."""

import contextlib
import logging
import threading

from placement_rpc import exception

LOG = logging.getLogger(__name__)

_LOOK_EVERY = 0.2
# Who asks is not kept longer than this from learning that the service is away.
_LOOK_TIMEOUT = 5


class TooManyWaiting(exception.PlacementException):
    code = "placement.events.too_many_waiting"
    http_status = 503
    message = "As many requests as may wait for events at a time ({limit}) do already"


class Follower:
    """Lets requests wait for the next event.

    However many wait, the service is asked once each time, and not at all while nobody waits.

    :param api: :class:`placement_rpc.api.PlacementAPI`
    :param limit: int, how many may wait at a time
    """

    def __init__(self, api, limit):
        self._api = api
        self._limit = limit
        self._changed = threading.Condition()
        self._places = 0
        self._waiting = 0
        self._last = 0
        self._looking = False
        self.closed = False

    @contextlib.contextmanager
    def place(self):
        """A place among those who may wait, for a block.

        :raises TooManyWaiting:
        """
        with self._changed:
            if self._places >= self._limit:
                raise TooManyWaiting(limit=self._limit)
            self._places += 1
        try:
            yield
        finally:
            with self._changed:
                self._places -= 1

    def wait(self, after, seconds):
        """Wait for an event behind a position.

        :param after: int
        :param seconds: float, for so long at the most
        :returns: bool, whether there is one
        """
        with self._changed:
            self._waiting += 1
            if not self._looking:
                self._looking = True
                threading.Thread(target=self._look, name="follower", daemon=True).start()
            try:
                self._changed.wait_for(lambda: self._last > after or self.closed, seconds)
                return self._last > after
            finally:
                self._waiting -= 1

    def close(self):
        """Let everybody go who waits."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def _look(self):
        while True:
            last = self._newest()
            with self._changed:
                if last is not None and last != self._last:
                    self._last = last
                    self._changed.notify_all()
                if not self._waiting or self.closed:
                    self._looking = False
                    return
                # Nobody wakes it before its time but the end.
                self._changed.wait_for(lambda: self.closed, _LOOK_EVERY)

    def _newest(self):
        try:
            return self._api.get_event_positions(None, timeout=_LOOK_TIMEOUT).last
        except exception.PlacementException as error:
            LOG.warning("Looking for new events is put off: %s", error)
            return None
        except Exception:
            LOG.exception("Looking for new events failed; it goes on")
            return None
