# SPDX-License-Identifier: Apache-2.0
"""Assemble messages from frames; a defect of one message does not affect the others.

A message comes in a frame of a method, one of a header with its properties, and any number of
frames with parts of its body. The library raises an error in the middle of this sequence if it
cannot decode a property, and the connection cannot be read any further. Here a header that cannot
be parsed makes a message that is marked as unreadable; its body is read to its end, and the next
frame is what it has to be. Only an invalid sequence of frames is an error of the connection.
"""

from collections.abc import Callable
from struct import Struct
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
# The bytes of a header before the properties.
_LEAST_HEADER = 12
# The tag of a delivery, and the octet that says whether it was delivered before.
_TAG_AND_FLAGS = Struct(">QB")
_CLASS_AND_SIZE = Struct(">HxxQ")
_METHOD_ID = Struct(">HH")


class IncomingMessage:
    """A message as it arrived, with what both libraries use of their own messages.

    ``unreadable`` is the reason why it cannot be read, and None if it can. Of an unreadable
    message ``properties`` are empty, the body is only :data:`EXCERPT` bytes of each of its ends,
    and ``raw_header`` is the frame that has the properties.

    :param method: the payload of the frame before it
    :param largest: the most bytes in its body
    """

    def __init__(self, method: bytes = b"", largest: int = LARGEST_BODY) -> None:
        self.method = method
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
        class_id, self.body_size = _CLASS_AND_SIZE.unpack_from(buf)
        try:
            self.properties, _ = serialization.PROPERTY_CLASSES[class_id](buf, _LEAST_HEADER)
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
        self._call_back(channel, message)
        return True

    def _call_back(self, channel, message):
        method = _METHOD_ID.unpack_from(message.method)
        if method != spec.Basic.Deliver:
            self._callback(channel, method, _decodable(method, message.method), message)
            return
        # The library's own way there parses the arguments a second time.
        if not self._connection.channels:
            raise amqp_exceptions.RecoverableConnectionError("the connection is lost")
        found = self._connection.channels[channel]
        # What comes while it closes returns to its queue.
        if not found.is_closing:
            found._on_basic_deliver(*_arguments(method, message.method), message)

    def _method(self, channel, payload):
        if len(payload) < 4:
            raise amqp_exceptions.UnexpectedFrame(f"a method of {len(payload)} bytes")
        method = _METHOD_ID.unpack_from(payload)
        if method not in _CONTENT_METHODS:
            self._callback(channel, method, payload, None)
            return True
        self._partial[channel] = _HEADER, IncomingMessage(payload, self._largest)
        return False


def _decodable(method, payload):
    """Return a method with arguments that the library can decode."""
    return bytes(payload[:4]) + serialization.dumps(
        _CONTENT_METHODS[method], _arguments(method, payload))


def _arguments(method, payload):
    """Return the arguments of a method, a list.

    A publisher may name an exchange and a routing key that are not text.
    """
    try:
        if method == spec.Basic.Deliver:
            return _of_delivery(payload)
        return serialization.loads(_CONTENT_METHODS[method], payload, 4)[0]
    except UnicodeDecodeError:
        return _values(_CONTENT_METHODS[method], payload)


def _of_delivery(payload):
    """Return the arguments of a delivery.

    :returns: list of the consumer tag, the delivery tag, whether it was delivered before, the
        exchange and the routing key, as of the library's general reader, which takes longer
    """
    consumer, end = _short_text(payload, 4)
    tag, flags = _TAG_AND_FLAGS.unpack_from(payload, end)
    exchange, end = _short_text(payload, end + _TAG_AND_FLAGS.size)
    key, _ = _short_text(payload, end)
    return [consumer, tag, bool(flags & 1), exchange, key]


def _short_text(payload, start):
    end = start + 1 + payload[start]
    return payload[start + 1:end].decode("utf-8", "surrogatepass"), end


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
