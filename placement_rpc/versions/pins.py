# SPDX-License-Identifier: Apache-2.0
"""The pin: the release whose messages a client sends while services of several releases answer.

A service understands every client that is not newer than itself. The pin keeps a newer client from
sending what an older service does not understand yet.
"""

import threading
import time

from placement_rpc import exception
from placement_rpc.versions import releases

AUTO = "auto"
# Seconds after a failed query of the services during which the query is not repeated.
_FAILURE_PAUSE = 1.0


def fixed(text):
    """Return the release that an option names.

    :param text: str, a release, a version of the contract, or ``auto``
    :returns: :class:`placement_rpc.versions.releases.Release`; None for ``auto``
    :raises InvalidInput: if there is no such release
    """
    if text == AUTO:
        return None
    found = releases.named(text)
    if found is None:
        known = ", ".join(f"{each.name} ({each.contract})" for each in releases.RELEASES)
        raise exception.InvalidInput(
            what="pin", reason=f"{text!r} is not a release; use one of {known}, or {AUTO}")
    return found


def lowest(services):
    """Return the newest release that all live services understand.

    :param services: iterable of :class:`placement_rpc.objects.service.Service`
    :returns: :class:`placement_rpc.versions.releases.Release`. If no heartbeat is fresh, although
        a service answered, the oldest release of all that ever reported; this release if there is
        none
    :raises ServiceTooOld: if a live service is older than every known release
    """
    found, services = releases.CURRENT, list(services)
    alive = [each for each in services if each.alive]
    for each in alive or services:
        release = releases.of_contract(each.rpc_version)
        if release is None and not each.alive:
            continue
        if release is None:
            raise exception.ServiceTooOld(
                what="calls", needed=releases.RELEASES[0].contract, found=each.rpc_version,
                who=f"{each.binary} {each.worker} on {each.host}")
        found = min(found, release, key=lambda each: each.number)
    return found


class FixedPin:
    """A release that the operator chose.

    :param release: :class:`placement_rpc.versions.releases.Release`
    """

    def __init__(self, release):
        self.last = release

    def release(self, _timeout=None):
        """Return the :class:`placement_rpc.versions.releases.Release`."""
        return self.last

    def forget(self):
        """Do nothing: the operator's choice does not change."""


class AutoPin:
    """The release of the oldest live service, determined again at intervals.

    :param list_services: callable of a time-out in seconds that returns the services
    :param interval: float, seconds for which an answer is used
    """

    def __init__(self, list_services, interval):
        self._list_services = list_services
        self._interval = interval
        self._mutex = threading.Lock()
        self._until = self._failed_until = 0
        #: The release that was determined last; None before the first time
        self.last = None

    def release(self, timeout):
        """Return the release, after listing the services if the last answer is too old.

        :param timeout: float, seconds
        :returns: :class:`placement_rpc.versions.releases.Release`
        :raises PlacementException: if the services cannot be listed, such as ServiceUnavailable
        """
        if self.last is not None and time.monotonic() < self._until:
            return self.last
        ends = time.monotonic() + timeout
        if time.monotonic() < self._failed_until:
            raise exception.ServiceUnavailable(
                reason="the release of its services could not be determined a moment ago")
        if not self._mutex.acquire(timeout=timeout):
            raise exception.ServiceUnavailable(
                reason="the release of its services was not determined in time")
        try:
            if self.last is None or time.monotonic() >= self._until:
                self.last = lowest(self._services(max(0.0, ends - time.monotonic())))
                self._until = time.monotonic() + self._interval
            return self.last
        finally:
            self._mutex.release()

    def _services(self, seconds):
        try:
            return self._list_services(seconds)
        except exception.PlacementException:
            # The threads that wait for the same answer fail at once instead of asking again.
            self._failed_until = time.monotonic() + _FAILURE_PAUSE
            raise

    def forget(self):
        """List the services again before the next call that needs the release."""
        self._until = 0
