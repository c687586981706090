# SPDX-License-Identifier: Apache-2.0
"""Calls of clients that want to know that a server works on them.

A client of oslo.messaging with a ``call_monitor_timeout`` gives up a call of which it hears
nothing for that long. These are not the heartbeats of connections, which
:mod:`placement_rpc.amqp.heartbeats` sends.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

from placement_rpc.amqp.frames import FAILURES
from placement_rpc.rpc import envelope

LOG = logging.getLogger(__name__)
# Seconds between two reports about a call.
_PERIOD = 1.0


class MonitoredCalls:
    """The calls of a server that it reports on, from when it takes them until their answers.

    Any thread may add and remove calls.
    """

    def __init__(self) -> None:
        self._calls: dict[int, envelope.Call] = {}

    def add(self, call: envelope.Call) -> None:
        """Report on a call from now on, if its client wants it."""
        if call.monitored:
            self._calls[id(call)] = call

    def remove(self, call: envelope.Call) -> None:
        """Report no more on a call; the client takes no report after the answer."""
        self._calls.pop(id(call), None)

    @contextlib.contextmanager
    def reported(self, answer: Callable[[str | None, str], object]) -> Iterator[None]:
        """Report on all calls for the time of a block, from a thread of its own.

        :param answer: sends a body to the queue of a client
        """
        ended = threading.Event()
        threading.Thread(target=self._report, args=(answer, ended), name="monitored calls",
                         daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def _report(self, answer, ended):
        while not ended.wait(_PERIOD):
            for call in list(self._calls.values()):
                try:
                    answer(call.reply_to, envelope.seal_answer(call, ending=False))
                except FAILURES as error:
                    # The block ends as well.
                    LOG.info("Clients are not told that their calls are worked on: %s", error)
                    return
                except Exception:
                    LOG.exception("A client is not told that %s is worked on", call.method)
                    self.remove(call)
