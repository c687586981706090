# SPDX-License-Identifier: Apache-2.0
"""Count answers that are cut at a maximum, and log them once in a while."""

import logging
import threading
import time
from collections.abc import Callable

from placement_rpc.telemetry.metrics import Metrics

LOG = logging.getLogger(__name__)
# Seconds between two lines of the log.
_INTERVAL = 60.0


class CutAnswers:
    """Counts the answers of one service that have fewer allocation candidates than there are.

    :param metrics: of the service
    :param clock: returns seconds
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic):
        self._metrics = metrics
        self._clock = clock
        self._lock = threading.Lock()
        self._since_last = 0
        self._not_before = clock()

    def count(self, maximum: int | None, wanted: str) -> None:
        """Count an answer, and log it unless another one was logged within a minute.

        :param maximum: the option's
        :param wanted: what was asked for
        """
        self._metrics.candidates_cut()
        with self._lock:
            self._since_last += 1
            if self._clock() < self._not_before:
                return
            self._not_before = self._clock() + _INTERVAL
            count, self._since_last = self._since_last, 0
        LOG.warning(
            "%d answers were cut at [placement] max_allocation_candidates = %s, or at the work "
            "that one search may do, since the last such message; the last request asked for "
            "%.500s. Clients can give a limit, or narrower conditions; a higher maximum makes "
            "larger answers.", count, maximum, wanted)
