# SPDX-License-Identifier: Apache-2.0
"""Track which releases clients call from, so that an operator knows when one can be dropped."""

import time

from placement_rpc.versions import releases


class SeenClients:
    """The time of the last call from a client of each release.

    :param seconds: float, how long a client counts after its last call
    """

    def __init__(self, seconds=3600.0):
        self._seconds = seconds
        self._seen = {}

    def note(self, manifest):
        """Record a call.

        :param manifest: the ``manifest`` of the caller's context
        """
        if isinstance(manifest, str):
            release = releases.of_contract(manifest)
            if release is not None:
                self._seen[release] = time.monotonic()

    def oldest(self):
        """Return the name of the oldest release that called recently; None if there is none."""
        since = time.monotonic() - self._seconds
        return next((release.name for release in releases.RELEASES
                     if self._seen.get(release, since) > since), None)
