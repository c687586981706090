# SPDX-License-Identifier: Apache-2.0
"""Assemble messages from frames; a defect of one message does not affect the others.

A message comes in a frame of a method, one of a header with its properties, and any number of
frames with parts of its body. The library raises an error in the middle of this sequence if it
cannot decode a property, and the connection cannot be read any further. Here a header that cannot
be parsed makes a message that is marked as unreadable; its body is read to its end, and the next
frame is what it has to be. Only an invalid sequence of frames is an error of the connection.

Nearly every message comes whole, with its body in one frame: :func:`delivery` parses all three at
once.
"""

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

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
# The frames of a delivery: a method with the length of the first argument, a header with the size
# of the body, and a body.
_METHOD_FRAME, _HEADER_FRAME, _BODY_FRAME = (
    struct.Struct(layout) for layout in (">BHIHHB", ">BHIHxxQ", ">BHI"))
_TAG = struct.Struct(">QB")
# The bytes of a frame before its payload, and all of them apart from it.
_BEFORE, _FRAMING = 7, 8
# The bytes of a header before the properties.
_LEAST_HEADER = 12
_END = 0xce
_KINDS = _METHOD, _HEADER, _BODY, *spec.Basic.Deliver


class IncomingMessage:
    """A message as it arrived, with what both libraries use of their own messages.

    ``unreadable`` is the reason why it cannot be read, and None if it can. Of an unreadable
    message ``properties`` are empty, the body is only :data:`EXCERPT` bytes of each of its ends,
    and ``raw_header`` is the frame that has the properties.

    :param largest: the most bytes in its body
    """

    __slots__ = (
        "_chunks",
        "_kept",
        "_largest",
        "_tail",
        "body",
        "body_received",
        "body_size",
        "channel",
        "delivery_info",
        "frame_args",
        "frame_method",
        "properties",
        "raw_header",
        "ready",
        "unreadable",
    )

    def __init__(self, largest: int = LARGEST_BODY,
                 frame_method: tuple[int, int] = spec.Basic.Deliver,
                 frame_args: bytes = b"") -> None:
        self.frame_method, self.frame_args = frame_method, frame_args
        self.body = b""
        self.properties: dict[str, Any] = {}
        # The library sets these of a delivery.
        self.channel: Any = None
        self.delivery_info: Any = None
        self.unreadable: str | None = None
        self.raw_header = b""
        self.body_size = self.body_received = 0
        self.ready = False
        self._largest = largest
        self._chunks: list[bytes] = []
        self._kept = 0
        self._tail = b""

    @property
    def headers(self) -> dict[str, Any] | None:
        """What publishers and the broker add to the properties; None for nothing"""
        return self.properties.get("application_headers")

    @property
    def delivery_tag(self) -> int:
        """The number by which it is acknowledged"""
        return self.delivery_info["delivery_tag"]

    def inbound_header(self, buf: Any) -> None:
        """Take the frame with the size of the body and the properties.

        :raises UnexpectedFrame: if the frame says nothing of the body, so that its end is unknown
        """
        if len(buf) < _LEAST_HEADER:
            raise amqp_exceptions.UnexpectedFrame(f"a content header of {len(buf)} bytes")
        class_id, size = struct.unpack_from(">HxxQ", buf)
        self.load_header(class_id, size, buf)
        self.ready = not self.body_size

    def load_header(self, class_id: int, size: int, header: bytes) -> None:
        """Take the size of the body and the properties; if they are defective it is unreadable.

        :param class_id: of the method
        :param header: the payload of the frame
        """
        self.body_size = size
        try:
            self.properties, _ = serialization.PROPERTY_CLASSES[class_id](
                header, _LEAST_HEADER)
        except Exception as error:
            self._spoil(f"its properties cannot be parsed: {_brief(error)}", header)
        if size > self._largest:
            self._spoil(f"its body of {size} bytes is larger than {self._largest}", header)

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
            self._chunks.clear()
            self._tail = b""
        self.ready = self.body_received == self.body_size

    def _keep(self, buf):
        head = buf
        if self.unreadable is not None:
            head = buf[:max(0, EXCERPT - self._kept)]
            self._tail = (self._tail + bytes(buf[len(head):]))[-EXCERPT:]
        self._kept += len(head)
        if head:
            self._chunks.append(bytes(head))
        if self.body_received == self.body_size:
            self.body = b"".join([*self._chunks, self._tail])
            self._chunks.clear()

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


class Delivery(NamedTuple):
    """A message that came whole.

    :ivar end: where the next frame begins
    :ivar channel: its number
    :ivar arguments: what the library's method has before the message
    """

    end: int
    channel: int
    arguments: tuple[str, int, bool, str, str]
    message: IncomingMessage


def delivery(data: bytes, start: int, largest: int) -> Delivery | None:
    """Return a message that has come whole, with its body in one frame.

    It is what :class:`Assembler` makes of the three frames, in less than half of the time.

    :param data: bytes from the broker
    :param start: where a frame begins in them
    :param largest: the most bytes in the three frames
    :returns: None for anything else, and for a message that cannot be read: these have to be
        read frame by frame
    """
    try:
        kind, channel, method_size, *method, length = _METHOD_FRAME.unpack_from(data, start)
        header = start + method_size + _FRAMING
        header_kind, header_channel, header_size, content, expected = _HEADER_FRAME.unpack_from(
            data, header)
        body = header + header_size + _FRAMING
        body_kind, body_channel, body_size = _BODY_FRAME.unpack_from(data, body)
        end = body + body_size + _FRAMING
        if (kind, header_kind, body_kind, *method) != _KINDS or not (
                0 < channel == header_channel == body_channel) or not (
                body_size == expected > 0) or header_size < _LEAST_HEADER or (
                end - start > largest) or not (
                data[header - 1] == data[body - 1] == data[end - 1] == _END):
            return None
        arguments = _arguments(data, start + _METHOD_FRAME.size, length, header - 1)
    except (struct.error, IndexError, UnicodeDecodeError):
        return None
    if arguments is None:
        return None
    message = IncomingMessage()
    message.load_header(content, body_size, data[header + _BEFORE:body - 1])
    message.body, message.ready = data[body + _BEFORE:end - 1], True
    return None if message.unreadable else Delivery(end, channel, arguments, message)


def _arguments(data, start, length, end):
    """Return the arguments of a delivery that end in a place; None if they do not end there.

    :param length: of the first one, which begins at ``start``
    """
    place = start + length
    tag, is_redelivered = _TAG.unpack_from(data, place)
    exchange = place + _TAG.size + 1
    key = exchange + data[exchange - 1] + 1
    if key + data[key - 1] != end:
        return None
    return (data[start:place].decode(), tag, bool(is_redelivered & 1),
            data[exchange:key - 1].decode(), data[key:end].decode())


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
        #: Whether the last frame left its message incomplete.
        self.is_partial = False
        # The kind of frame that has to come next, if it is not a method, and the message.
        self._partial: dict[int, tuple[int, IncomingMessage]] = {}

    def delivery(self, data: bytes, start: int) -> Delivery | None:
        """Return the next message, without calling back with it, if it has come whole.

        Parameters are those of the function :func:`delivery`.
        """
        if self._partial:
            return None
        found = delivery(data, start, min(self._largest, self._connection.frame_max))
        if found is not None:
            self._connection.bytes_recv += 1
        return found

    def __call__(self, frame: tuple[int, int, Any]) -> bool:
        """Take a frame.

        :returns: whether it completed a method or a message
        :raises UnexpectedFrame: if the frame does not belong to what came before
        """
        kind, channel, payload = frame
        self.is_partial = False
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
            self._partial[channel], self.is_partial = (_BODY, message), True
            return False
        del self._partial[channel]
        self._callback(channel, message.frame_method, message.frame_args, message)
        return True

    def _method(self, channel, payload):
        if len(payload) < 4:
            raise amqp_exceptions.UnexpectedFrame(f"a method of {len(payload)} bytes")
        method = struct.unpack_from(">HH", payload)
        described = _CONTENT_METHODS.get(method)
        if described is None:
            self._callback(channel, method, payload, None)
            return True
        self._partial[channel] = _HEADER, IncomingMessage(
            self._largest, frame_method=method, frame_args=_decodable(described, payload))
        self.is_partial = True
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
