# SPDX-License-Identifier: Apache-2.0
"""Which release calls are made in, while services of several releases answer.

A client of any release is understood by every service that is as new as it: the pin is what
keeps it from saying something that an older one does not know yet.
"""

import threading
import time

from placement_rpc import exception
from placement_rpc.versions import releases

AUTO = "auto"
# Seconds for which an answer that did not come is not waited for again.
_IN_VAIN = 1.0


def fixed(text):
    """The release that an option names.

    :param text: str, a release, a version of the contract, or ``auto``
    :returns: :class:`placement_rpc.versions.releases.Release`; None for ``auto``
    :raises InvalidInput: when there is no such release
    """
    if text == AUTO:
        return None
    found = releases.named(text)
    if found is None:
        known = ", ".join(f"{each.name} ({each.contract})" for each in releases.RELEASES)
        raise exception.InvalidInput(
            what="pin", reason=f"{text!r} is no release; there are {known}, and {AUTO}")
    return found


def lowest(services):
    """The release that all live services know.

    :param services: iterable of :class:`placement_rpc.objects.service.Service`
    :returns: :class:`placement_rpc.versions.releases.Release`; where no heartbeat is fresh, and
        yet somebody answered, the lowest of all that ever reported; this one where nobody did
    :raises ServiceTooOld: when one is older than every release that is known
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
    """The release that an operator chose.

    :param release: :class:`placement_rpc.versions.releases.Release`
    """

    def __init__(self, release):
        self.chosen = release

    def release(self, _timeout=None):
        """:returns: :class:`placement_rpc.versions.releases.Release`"""
        return self.chosen

    last = property(release)

    def forget(self):
        """What an operator chose stays."""


class AutoPin:
    """The lowest of the live services, found out again from time to time.

    :param ask: callable of seconds that returns the services
    :param interval: float, seconds for which an answer holds
    """

    def __init__(self, ask, interval):
        self._ask = ask
        self._interval = interval
        self._mutex = threading.Lock()
        self._until = self._in_vain_until = 0
        #: The release that was found last; None before the first
        self.last = None

    def release(self, timeout):
        """:param timeout: float, seconds; :returns: a release

        :raises ServiceUnavailable: and others, where it can not be found out
        """
        if self.last is not None and time.monotonic() < self._until:
            return self.last
        ends = time.monotonic() + timeout
        if time.monotonic() < self._in_vain_until:
            raise exception.ServiceUnavailable(reason="its release could not be found out")
        if not self._mutex.acquire(timeout=timeout):
            raise exception.ServiceUnavailable(reason="its release is not known yet")
        try:
            if self.last is None or time.monotonic() >= self._until:
                self.last = lowest(self._asked(max(0.0, ends - time.monotonic())))
                self._until = time.monotonic() + self._interval
            return self.last
        finally:
            self._mutex.release()

    def _asked(self, seconds):
        try:
            return self._ask(seconds)
        except exception.PlacementException:
            # Whoever waits for the same need not find out the same.
            self._in_vain_until = time.monotonic() + _IN_VAIN
            raise

    def forget(self):
        """Find it out anew before the next call that needs it."""
        self._until = 0
