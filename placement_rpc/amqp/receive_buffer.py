# SPDX-License-Identifier: Apache-2.0
"""What has come on a connection and was not read yet."""

from collections.abc import Callable

from placement_rpc.amqp import contents

# Bytes to take from the system at a time. A message with more comes in parts, frame by frame.
_CHUNK = 2 ** 16


class ReceiveBuffer:
    """Bytes that have come, of which the library would ask the system for each part of each frame.

    That would be nine times for a message.
    """

    __slots__ = ("_data", "_start")

    def __init__(self) -> None:
        self._data, self._start = b"", 0

    def __bool__(self) -> bool:
        return self._start < len(self._data)

    def await_bytes(self, receive: Callable[[int], bytes], size: int) -> None:
        """Wait until so many bytes have come.

        :param receive: callable of a number of bytes that waits for some, and returns as many at
            most; none if the connection is closed
        :raises OSError: if the connection is closed
        """
        missing = size - (len(self._data) - self._start)
        if missing <= 0:
            return
        pieces = [self._data[self._start:]]
        while missing > 0:
            piece = receive(max(missing, _CHUNK))
            if not piece:
                raise OSError("the broker closed the connection")
            pieces.append(piece)
            missing -= len(piece)
        self._data, self._start = b"".join(pieces), 0

    def take(self, receive: Callable[[int], bytes], size: int) -> bytes:
        """Return the next bytes; parameters and errors are those of :meth:`await_bytes`."""
        self.await_bytes(receive, size)
        start, self._start = self._start, self._start + size
        return self._data[start:self._start]

    def take_delivery(self, assembler: contents.Assembler) -> contents.Delivery | None:
        """Return the next message, if it has come whole; see :func:`contents.delivery`."""
        found = assembler.delivery(self._data, self._start)
        if found is not None:
            self._start = found.end
        return found
