# SPDX-License-Identifier: Apache-2.0
"""Parse messages, events and large columns, and write answers and envelopes, with msgspec.

It is used where it gives the same values as the standard library, which is fast enough for all
other JSON.
"""

import json
from typing import Any

import msgspec

# msgspec's own reading of floats takes twenty times as long for those near the largest and the
# smallest ones, with which a small message would stop the interpreter for seconds.
_DECODE = msgspec.json.Decoder(float_hook=float).decode
# A database may sum up integers to a decimal number, which would become a string otherwise.
_ENCODE = msgspec.json.Encoder(decimal_format="number").encode


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


def written(value: Any) -> str:
    """Return the JSON text of a value, in ASCII.

    It is that of msgspec, without blanks, unless it has characters outside of ASCII, or ``null``:
    msgspec writes NaN and infinity as that. Then, and if msgspec refuses the value,
    :func:`json.dumps` writes it.

    :param value: of the types that :func:`json.loads` returns; some others are written without an
        error, such as decimal numbers, sets and datetimes
    :raises TypeError: if it is of a type that neither writes
    """
    try:
        text = _ENCODE(value).decode()
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return json.dumps(value)
    return text if text.isascii() and "null" not in text else json.dumps(value)


def of_texts(value: dict[str, str]) -> str:
    """Return a dict of str to str as JSON text.

    It has no blanks, and characters outside of ASCII are not escaped; otherwise it is the text of
    :func:`json.dumps`. Other values are not supported: msgspec writes NaN as null, and accepts
    types that JSON does not have.
    """
    try:
        return _ENCODE(value).decode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, which msgspec refuses.
        return json.dumps(value)
