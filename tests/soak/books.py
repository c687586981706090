# SPDX-License-Identifier: Apache-2.0
"""A listener that applies the stream of events and sees nothing else."""

import threading
import time

from placement_rpc import exception
from placement_rpc.notifications import listener
from tests.stream_books import StreamBooks

# The first events are kept, for checks that need them again.
_KEPT = 20_000


class Listener(threading.Thread):
    """Applies the stream to :attr:`books` while it is published, across failures of the broker.

    :param url: of the broker
    :param stream: the stream's name
    """

    def __init__(self, url, stream):
        super().__init__(daemon=True)
        self.books = StreamBooks()
        #: The first events; all of them if there are not too many.
        self.events = []
        self._url, self._stream = url, stream
        self._ended = threading.Event()

    def run(self):
        # One reader for all attempts: it goes on at its offset, while another one would have to
        # read the stream from its beginning, to find a position.
        reader = listener.StreamReader(self._url, self._stream, 1)
        while not self._ended.is_set():
            try:
                # Ends after a quiet second, so that it can be stopped.
                while not self._ended.is_set():
                    for event in reader.events(idle=1):
                        self.books.apply(event)
                        if len(self.events) < _KEPT:
                            self.events.append(event)
            except exception.ServiceUnavailable:
                # The stream is not there yet, or has no leader at the moment.
                self._ended.wait(0.5)

    def wait_for(self, position, seconds=90):
        """Wait until the event with a position is applied; return whether it was."""
        ends = time.monotonic() + seconds
        while self.books.position < position and time.monotonic() < ends:
            time.sleep(0.1)
        return self.books.position >= position

    def stop(self):
        """End the thread."""
        self._ended.set()
        self.join(30)
