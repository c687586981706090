# SPDX-License-Identifier: Apache-2.0
"""Attempts at calls, counted in a process that has no store."""

import collections

from placement_rpc.service.attempts import Attempts


class CountedHere(Attempts):
    """Counts the attempts of one process.

    :param ends: bool, whether each attempt counts as one that ended a process, which this one
        plays
    """

    def __init__(self, ends=False):
        self._made, self._ends = collections.Counter(), ends

    def begin(self, counted):
        self._made[counted] += 1
        return self._made[counted]

    def survived(self, counted):
        if not self._ends:
            del self._made[counted]
