# SPDX-License-Identifier: Apache-2.0
"""When a client sends a call once more, because the server that took it may be stopped.

A repeat costs a busy service work, so the pause grows with the usual time of an answer. That is
the lower quartile of the last answers. While a server is stopped, half of the answers may be late:
those of the calls that it holds, and those of the calls that wait for its locks. If the whole
service is slow, all answers are.

The broker hands each copy to the next worker, which may be the stopped one again. So the first
copies follow at equal, short pauses: with one of four workers stopped, one call in a thousand
needs more than five copies.
"""

import collections
import itertools
import math
from collections.abc import Iterator

from placement_rpc.versions import contract

# The first pause is at least so many times as long as an answer usually takes.
_USUAL = 4
# A call whose answer may take long is repeated so many times later than others.
_LATER = 8
_GROWTH = 1.5
# The number of pauses that are equal, before they grow.
_EQUAL = 3
# The number of answers of which the lower quartile is taken.
_ANSWERS = 31


class Repeats:
    """The pauses between the copies of a client's calls. Thread-safe.

    :param first: seconds, the shortest first pause
    """

    def __init__(self, first: float):
        self._first = first
        self._took: dict[bool, collections.deque[float]] = {
            slow: collections.deque(maxlen=_ANSWERS) for slow in (False, True)}

    def pauses(self, method: str) -> Iterator[float]:
        """Yield the seconds after which each further copy of a call is sent."""
        known = contract.CALLS.get(method)
        if known is None:
            # Nothing says that a repeat is harmless.
            yield math.inf
            return
        took = sorted(self._took[known.slow].copy())
        usual = took[len(took) // 4] if took else 0.0
        pause = max(self._first * (_LATER if known.slow else 1), _USUAL * usual)
        yield from itertools.repeat(pause, _EQUAL)
        while True:
            pause *= _GROWTH
            yield pause

    def answered(self, method: str, seconds: float) -> None:
        """Record how long an answer took."""
        known = contract.CALLS.get(method)
        if known is not None:
            self._took[known.slow].append(seconds)
