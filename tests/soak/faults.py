# SPDX-License-Identifier: Apache-2.0
"""What fails in a soak."""

from collections.abc import Callable
from typing import NamedTuple

#: For how long a server is stopped without being killed: longer than the time-outs of its peers,
#: of which RabbitMQ's ``net_ticktime`` of 15 s is the longest.
STOPPED_SECONDS = 20


class Fault(NamedTuple):
    """A failure and its repair.

    ``act`` returns when the part works again. ``goal`` is for how many seconds no claim may be
    accepted, None for no goal.
    """

    name: str
    act: Callable[[], object]
    goal: float | None = None
