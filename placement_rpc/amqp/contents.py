# SPDX-License-Identifier: Apache-2.0
"""Assemble messages from frames; a defect of one message does not affect the others.

A message comes in a frame of a method, one of a header with its properties, and any number of
frames with parts of its body. The library raises an error in the middle of this sequence if it
cannot decode a property, and the connection cannot be read any further. Here a header that cannot
be parsed makes a message that is marked as unreadable; its body is read to its end, and the next
frame is what it has to be. Only an invalid sequence of frames is an error of the connection.
"""

from collections.abc import Callable
from struct import unpack_from
from typing import Any

import amqp
from amqp import exceptions as amqp_exceptions
from amqp import serialization, spec

#: Bytes that are kept of each end of the body of a message that cannot be read.
EXCERPT = 64 * 1024
#: The most bytes in a body that is read; a longer one makes its message unreadable.
LARGEST_BODY = 64 * 2 ** 20

_METHOD, _HEADER, _BODY, _HEARTBEAT = 1, 2, 3, 8
# Methods that a message follows, and their arguments as the library describes them.
_CONTENT_METHODS = {spec.Basic.Deliver: "sLbss", spec.Basic.GetOk: "Lbssl",
                    spec.Basic.Return: "Bsss"}
_LONGEST_NAME = 255


class IncomingMessage(amqp.Message):
    """A message as it arrived.

    ``unreadable`` is the reason why it cannot be read, and None if it can. Of an unreadable
    message ``properties`` are empty, the body is only :data:`EXCERPT` bytes of each of its ends,
    and ``raw_header`` is the frame that has the properties.

    :param largest: the most bytes in its body
    """

    def __init__(self, largest: int = LARGEST_BODY, **arguments: Any) -> None:
        super().__init__(b"", **arguments)
        self.unreadable: str | None = None
        self.raw_header = b""
        self._largest = largest
        self._kept = 0
        self._tail = b""

    def inbound_header(self, buf: Any, offset: int = 0) -> None:
        """Take the frame with the size of the body and the properties.

        :raises UnexpectedFrame: if the frame says nothing of the body, so that its end is unknown
        """
        if len(buf) < offset + 12:
            raise amqp_exceptions.UnexpectedFrame(f"a content header of {len(buf)} bytes")
        class_id, self.body_size = unpack_from(">HxxQ", buf, offset)
        try:
            self._load_properties(class_id, buf, offset + 12)
        except Exception as error:
            self._spoil(f"its properties cannot be parsed: {_brief(error)}", buf)
        if self.body_size > self._largest:
            self._spoil(f"its body of {self.body_size} bytes is larger than {self._largest}", buf)
        self.ready = not self.body_size

    def inbound_body(self, buf: Any) -> None:
        """Take a frame with a part of the body.

        :raises UnexpectedFrame: if the body is longer than the header says
        """
        self.body_received += len(buf)
        if self.body_received > self.body_size:
            raise amqp_exceptions.UnexpectedFrame("a body is longer than its header says")
        try:
            self._keep(buf)
        except MemoryError as error:
            self._spoil(f"its body cannot be kept: {_brief(error)}", b"")
            self._pending_chunks.clear()
            self._tail = b""
        self.ready = self.body_received == self.body_size

    def _keep(self, buf):
        head = buf
        if self.unreadable is not None:
            head = buf[:max(0, EXCERPT - self._kept)]
            self._tail = (self._tail + bytes(buf[len(head):]))[-EXCERPT:]
        self._kept += len(head)
        if head:
            self._pending_chunks.append(bytes(head))
        if self.body_received == self.body_size:
            self.body = b"".join([*self._pending_chunks, self._tail])
            self._pending_chunks.clear()

    def _spoil(self, reason, header):
        if self.unreadable is None:
            self.unreadable = reason
            self.raw_header = bytes(header)
        self.properties = {}


def _brief(error):
    """Return the text of an error, shortened."""
    try:
        return f"{type(error).__name__}: {error}"[:200]
    except Exception:
        return type(error).__name__


class Assembler:
    """Takes the frames of a connection, and calls back with each whole method and message.

    It takes the place of py-amqp's ``frame_handler``.

    :param connection: of py-amqp
    :param callback: callable of the channel, the method, its arguments and the message, which is
        None for a method without one
    :param largest: the most bytes in a body
    """

    def __init__(self, connection: amqp.Connection,
                 callback: Callable[[int, tuple[int, int], Any, Any], object],
                 largest: int = LARGEST_BODY) -> None:
        self._connection = connection
        self._callback = callback
        self._largest = largest
        # The kind of frame that has to come next, if it is not a method, and the message.
        self._partial: dict[int, tuple[int, IncomingMessage]] = {}

    def __call__(self, frame: tuple[int, int, Any]) -> bool:
        """Take a frame.

        :returns: whether it completed a method or a message
        :raises UnexpectedFrame: if the frame does not belong to what came before
        """
        kind, channel, payload = frame
        self._connection.bytes_recv += 1
        if kind == _HEARTBEAT:
            return False
        expected, message = self._partial.get(channel, (_METHOD, None))
        if kind != expected:
            raise amqp_exceptions.UnexpectedFrame(
                f"a frame of the kind {kind} while one of the kind {expected} is expected")
        if message is None:
            return self._method(channel, payload)
        if kind == _HEADER:
            message.inbound_header(payload)
        else:
            message.inbound_body(payload)
        if not message.ready:
            self._partial[channel] = _BODY, message
            return False
        del self._partial[channel]
        self._callback(channel, message.frame_method, message.frame_args, message)
        return True

    def _method(self, channel, payload):
        if len(payload) < 4:
            raise amqp_exceptions.UnexpectedFrame(f"a method of {len(payload)} bytes")
        method = unpack_from(">HH", payload)
        described = _CONTENT_METHODS.get(method)
        if described is None:
            self._callback(channel, method, payload, None)
            return True
        self._partial[channel] = _HEADER, IncomingMessage(
            self._largest, frame_method=method, frame_args=_decodable(described, payload))
        return False


def _decodable(described, payload):
    """Return a method with arguments that the library can decode.

    A publisher may name an exchange and a routing key that are not text.
    """
    try:
        serialization.loads(described, payload, 4)
    except UnicodeDecodeError:
        return bytes(payload[:4]) + serialization.dumps(described, _values(described, payload))
    return payload


def _values(described, payload):
    values, offset = [], 4
    for each in described:
        if each == "s":
            end = offset + 1 + payload[offset]
            text = bytes(payload[offset + 1:end]).decode(errors="replace")
            values.append(text.encode()[:_LONGEST_NAME].decode(errors="ignore"))
            offset = end
        else:
            (value,), offset = serialization.loads(each, payload, offset)
            values.append(value)
    return values
