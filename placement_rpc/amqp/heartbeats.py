# SPDX-License-Identifier: Apache-2.0
"""One thread sends the heartbeats of all connections of a process, and no other thread does.

The broker closes a connection on which it receives nothing. The thread that reads a connection may
be busy for longer than that, with a transaction or with a listener's handler.
"""

import logging
import os
import threading
import time
import weakref

from placement_rpc.amqp.connection import Connection
from placement_rpc.amqp.frames import FAILURES

LOG = logging.getLogger(__name__)
# Seconds between two heartbeats on a connection.
_PERIOD = 1.0


class _Heart:
    """The thread, which begins with the first connection and ends with the process."""

    def __init__(self):
        self._connections = weakref.WeakSet()
        self._changing = threading.Lock()
        self._thread = None

    def add(self, connection):
        with self._changing:
            self._connections.add(connection)
            if self._thread is None:
                thread = threading.Thread(
                    target=self._run, name="heartbeats of connections", daemon=True)
                thread.start()
                # Kept once it runs, so that a start that fails is repeated.
                self._thread = thread

    def _run(self):
        while True:
            time.sleep(_PERIOD)
            self._beat()

    def _beat(self):
        with self._changing:
            connections = list(self._connections)
        for connection in connections:
            try:
                connection.heartbeat()
            except FAILURES as error:
                # If the connection is lost, the thread that reads gets an error, too.
                LOG.debug("No heartbeat is sent: %s", error)
            except Exception:
                # The other connections need theirs.
                LOG.exception("A heartbeat cannot be sent")


_heart = _Heart()


def send_on(connection: Connection) -> None:
    """Send heartbeats on a connection from now on, for as long as it is used."""
    _heart.add(connection)


def _forget():
    """Start again in a process that was forked, which has no thread and no connection yet."""
    global _heart
    _heart = _Heart()


os.register_at_fork(after_in_child=_forget)
