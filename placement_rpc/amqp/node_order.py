# SPDX-License-Identifier: Apache-2.0
"""The order in which a process tries the nodes of a broker."""

import os
import random
from collections.abc import Sequence
from typing import Any


class NodeOrder:
    """The nodes in the order in which to try them, the same for all connections of a process.

    It is random in each process, so that not all processes of a cloud use one node. A node that
    refuses a connection or loses one moves to the end, and others are tried first.

    :param nodes: of any kind that can be compared
    """

    def __init__(self, nodes: Sequence[Any]) -> None:
        self._nodes = nodes
        self._process: int | None = None
        self._order: list[Any] = []

    def now(self) -> list[Any]:
        """Return all nodes, the one to try first at the beginning."""
        if self._process != os.getpid():
            # Also in a process that was forked, which needs an order of its own. The order comes
            # first, since another thread may read it as soon as the process is known.
            self._order = random.sample(self._nodes, len(self._nodes))
            self._process = os.getpid()
        return self._order

    def leave(self, node: Any) -> None:
        """Try a node after all others from now on."""
        # Replaced and not changed: other threads may be reading the list.
        self._order = [*(each for each in self.now() if each != node), node]
