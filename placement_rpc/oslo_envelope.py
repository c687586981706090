# SPDX-License-Identifier: Apache-2.0
"""oslo.messaging's envelope 2.0: a JSON object that has the JSON text of a message as a string."""

from typing import Any

import msgspec

from placement_rpc import bodies, json_text

_VERSION, _MESSAGE = "oslo.version", "oslo.message"


class _Envelope(msgspec.Struct, forbid_unknown_fields=True, gc=False,
                rename={"version": _VERSION, "message": _MESSAGE}):
    version: str
    message: str


_DECODE = msgspec.json.Decoder(_Envelope).decode


def sealed(text: str, in_pieces: bool = False) -> str:
    """Return the envelope of a message.

    :param text: of the message, in JSON
    :param in_pieces: whether to let other threads run meanwhile; it takes longer
    """
    if in_pieces:
        return f'{{"{_VERSION}":"2.0","{_MESSAGE}":{bodies.quoted(text)}}}'
    return json_text.of_texts({_VERSION: "2.0", _MESSAGE: text})


def opened(body: bytes | str, compressed: object, limits: bodies.Limits) -> dict[str, Any]:
    """Return the message in a body, with or without an envelope.

    :param compressed: how the body is compressed, the message's header ``compression``
    :raises MessageTooLarge: if it exceeds the limits
    :raises ValueError: if it is not JSON, not a mapping, or not compressed as declared, or if the
        envelope contains no text
    """
    message = _parsed(bodies.decompressed(body, compressed, limits), limits)
    if not isinstance(message, dict):
        raise ValueError("the message is not a mapping")
    return message


def _parsed(data, limits):
    """Return the JSON value in a body.

    :param data: bytes that do not exceed the limit of the size
    """
    try:
        # Two strings have no depth and no elements to check.
        text = _DECODE(data).message
    except (msgspec.MsgspecError, UnicodeError):
        # No envelope, or one with more in it, or with half of a surrogate pair.
        outer = bodies.parsed(data, limits)
        if not isinstance(outer, dict) or _MESSAGE not in outer:
            return outer
        text = outer[_MESSAGE]
        if not isinstance(text, str):
            raise ValueError("the envelope contains no text") from None
    return bodies.parsed(text, limits)
