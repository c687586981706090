# SPDX-License-Identifier: Apache-2.0
"""Of which releases those are who call: what an operator asks before a release is left behind."""

import time

from placement_rpc.versions import releases


class SeenClients:
    """Remembers when somebody of each release called last.

    :param seconds: float, for how long
    """

    def __init__(self, seconds=3600.0):
        self._seconds = seconds
        self._seen = {}

    def note(self, manifest):
        """:param manifest: what a caller's context says that it reads"""
        if isinstance(manifest, str):
            release = releases.of_contract(manifest)
            if release is not None:
                self._seen[release] = time.monotonic()

    def oldest(self):
        """:returns: str, name of the oldest release that called lately; None for none"""
        since = time.monotonic() - self._seconds
        return next((release.name for release in releases.RELEASES
                     if self._seen.get(release, since) > since), None)
