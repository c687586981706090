# SPDX-License-Identifier: Apache-2.0
"""Parse and write JSON of messages, events and large columns, faster than the standard library.

Elsewhere the standard library is as good.
"""

import json
from typing import Any

import msgspec

# msgspec's own reading of floats takes twenty times as long for those near the largest and the
# smallest ones, with which a small message would stop the interpreter for seconds.
_DECODE = msgspec.json.Decoder(float_hook=float).decode
_ENCODE = msgspec.json.Encoder().encode


def loads(text: str) -> Any:
    """Return the value of a JSON text, which is what :func:`json.loads` returns, or its error.

    msgspec accepts less: no NaN, and no half of a surrogate pair. What it refuses is parsed by the
    standard library.

    :raises ValueError: if it is not JSON
    :raises RecursionError: if it is nested too deeply
    """
    try:
        return _DECODE(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return json.loads(text)


def of_texts(value: dict[str, str]) -> str:
    """Return a dict of texts as JSON, which is what :func:`json.dumps` returns, but for blanks.

    Not for other values: msgspec makes null of NaN, and text of some that are no JSON values.
    """
    try:
        return _ENCODE(value).decode()
    except (TypeError, UnicodeEncodeError):
        # Such as half of a surrogate pair.
        return json.dumps(value)
