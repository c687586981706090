# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that breaks, stalls or redirects connections between a program and a server."""

import contextlib
import socket
import struct
import threading
import time

import fixtures


class Proxy(fixtures.Fixture):
    """Forwards TCP connections; ``port`` is where it listens.

    :param port: int, of the server on this machine
    """

    def __init__(self, port):
        super().__init__()
        self._to = port
        self._pairs = []
        # How many more bytes of the server are forwarded, on all connections; None for no limit.
        self._left = None
        self._delay = 0.0
        self._forwards = threading.Event()
        self._forwards.set()

    def _setUp(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        self.addCleanup(self.reset)
        self.addCleanup(self._listener.close)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                try:
                    far = socket.create_connection(("127.0.0.1", self._to))
                except ConnectionError:
                    near.close()
                    continue
                self._pairs.append((near, far))
                for source, target, is_said in ((near, far, False), (far, near, True)):
                    threading.Thread(target=self._forward, args=(source, target, is_said),
                                     daemon=True).start()

    def _forward(self, source, target, is_said):
        with contextlib.suppress(OSError):
            while (is_said or self._forwards.wait()) and (data := source.recv(65536)):
                if is_said and self._left is not None:
                    data, self._left = data[:self._left], max(0, self._left - len(data))
                time.sleep(self._delay)
                target.sendall(data)

    def reset(self):
        """Reset all connections, as a failing network does."""
        pairs, self._pairs = self._pairs, []
        for near, far in pairs:
            with contextlib.suppress(OSError):
                near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            for each in (near, far):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RD)
                each.close()

    def switch(self, port):
        """Forward to another server, and reset the connections to the one before."""
        self._to = port
        self.reset()

    def hold(self):
        """Read nothing more of what programs send; a write that has no room blocks."""
        self._forwards.clear()
        self.addCleanup(self._forwards.set)

    def cut(self):
        """Forward nothing any more, and close nothing, as a cable that is pulled out."""
        self.hold()
        self.stall(0)

    def delay(self, seconds):
        """Forward each piece that is read this many seconds later; 0 for at once."""
        self._delay = seconds

    def mend(self):
        """Forward new connections again after :meth:`cut`; those that were cut are reset."""
        self.reset()
        self._left = None
        self._forwards.set()

    def stall(self, after):
        """Drop what the server sends after so many bytes; None to forward everything again."""
        self._left = after
