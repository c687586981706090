# SPDX-License-Identifier: Apache-2.0
"""Messages to publish, and their encoding.

The library encodes each message in some forty calls. Here the parts that messages have in common
are encoded once. ``tests/unit/test_outgoing.py`` keeps the bytes equal to the library's.
"""

import functools
import struct
from typing import Any, NamedTuple

from amqp import serialization, spec

_METHOD, _HEADER, _BODY = 1, 2, 3
_END = b"\xce"
#: What is before the payload of a frame: the kind, the channel and the size of the payload.
FRAME_HEADER = struct.Struct(">BHI")
# The beginning of a frame, then the class, the weight, the size of the body, and which properties
# follow.
_CONTENT = struct.Struct(">BHIHHQH")
# The bytes of a frame apart from its payload, and those of a header without properties.
_FRAMING, _EMPTY_CONTENT = 8, 14
_CLASS = spec.Basic.Publish[0]
# The properties that are used, in the order in which they are sent, by their bits.
_TYPE, _ENCODING, _HEADERS, _MODE, _CORRELATION, _REPLY, _EXPIRATION, _ID = (
    1 << bit for bit in (15, 14, 13, 12, 10, 9, 8, 7))
_TRANSIENT, _DURABLE = b"\x01", b"\x02"


class Outgoing(NamedTuple):
    """A message to publish: a body of JSON, where it goes, and its properties.

    :param expiration: milliseconds in decimal digits, after which the broker drops it
    :param durable: whether it survives a restart of the broker
    """

    body: str | bytes
    exchange: str
    routing_key: str
    message_id: str | None = None
    headers: dict[str, Any] | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    durable: bool = True

    def encoded(self, channel: int, largest: int, mandatory: bool) -> bytes:
        """Return the frames that publish it.

        :param channel: the number of the channel
        :param largest: bytes in a frame at most
        :param mandatory: whether the broker returns it if it reaches no queue
        :raises ValueError: if a name is longer than 255 bytes
        """
        body = self.body.encode() if isinstance(self.body, str) else self.body
        flags, properties = self._properties()
        pieces = [
            _publish(channel, self.exchange, self.routing_key, mandatory),
            _CONTENT.pack(_HEADER, channel, _EMPTY_CONTENT + len(properties), _CLASS, 0,
                          len(body), flags),
            properties, _END]
        for start in range(0, len(body), largest - _FRAMING):
            part = body[start:start + largest - _FRAMING]
            pieces += FRAME_HEADER.pack(_BODY, channel, len(part)), part, _END
        return b"".join(pieces)

    def _properties(self):
        """Return which properties it has, and their bytes."""
        flags = _TYPE | _ENCODING | _MODE
        pieces = [_JSON]
        if self.headers:
            flags |= _HEADERS
            pieces.append(serialization.dumps("F", [self.headers]))
        pieces.append(_DURABLE if self.durable else _TRANSIENT)
        for flag, text in ((_CORRELATION, self.correlation_id), (_REPLY, self.reply_to),
                           (_EXPIRATION, self.expiration), (_ID, self.message_id)):
            if text:
                flags |= flag
                pieces.append(_short(text))
        return flags, b"".join(pieces)


def _short(text):
    found = text.encode("utf-8", "surrogatepass")
    if len(found) > 255:
        raise ValueError(f"a name of {len(found)} bytes, while at most 255 are allowed")
    return bytes((len(found),)) + found


@functools.lru_cache(maxsize=1024)
def _publish(channel, exchange, routing_key, mandatory):
    """Return the frame of the method ``basic.publish``."""
    payload = b"".join((struct.pack(">HHH", *spec.Basic.Publish, 0), _short(exchange),
                        _short(routing_key), bytes((bool(mandatory),))))
    return b"".join((FRAME_HEADER.pack(_METHOD, channel, len(payload)), payload, _END))


_JSON = _short("application/json") + _short("utf-8")
