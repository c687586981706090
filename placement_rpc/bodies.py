# SPDX-License-Identifier: Apache-2.0
"""Bodies of messages and requests: opened within limits, and large ones written in pieces.

A body is decompressed and parsed by functions that hold the interpreter until they return, and a
small body can make them work for seconds or fill the memory. So the size is checked before and
while a body is decompressed, and the depth and the number of elements are counted in the text
before it is parsed, at a small part of the cost of parsing.
"""

import array
import bz2
import dataclasses
import itertools
import json
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Self

from oslo_config import cfg

from placement_rpc import exception, json_text

#: Compressions by the name that the header ``compression`` has, and the names that kombu takes
#: for them.
COMPRESSIONS = {
    "application/x-gzip": ("gzip", "zlib"), "application/x-bz2": ("bz2", "bzip2", "bzip"),
    "application/x-lzma": ("lzma", "xz")}
_NAMES = {name: header for header, names in COMPRESSIONS.items() for name in (header, *names)}
# Memory that decompressing LZMA may take: as much as its highest preset needs.
_LZMA_MEMORY = 96 * 1024 * 1024
_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    "application/x-gzip": zlib.decompressobj, "application/x-bz2": bz2.BZ2Decompressor,
    "application/x-lzma": lambda: lzma.LZMADecompressor(memlimit=_LZMA_MEMORY)}
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "application/x-gzip": zlib.compress, "application/x-bz2": bz2.compress,
    "application/x-lzma": lzma.compress}
_STRUCTURE = b'[]{}"'
_OTHERS = bytes(set(range(256)) - set(_STRUCTURE))
# Entries of a list and characters of a text that are written without a pause, and levels of a
# result within which long lists are looked for: they are in the data of an object.
_PIECE, _PART, _LEVELS = 50, 256 * 1024, 5
# Characters of a text that is written alone.
_LONG = 4096
# Each bracket becomes the change of the depth, in an array of signed bytes.
_STEPS = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """What one body may be.

    :ivar size: bytes, both as it is sent and decompressed
    :ivar elements: values and keys, as counted by :meth:`check`
    :ivar depth: lists and objects within each other
    :ivar compressions: headers of :data:`COMPRESSIONS` that are accepted
    """

    size: int = 4 * 1024 * 1024
    elements: int = 200_000
    depth: int = 64
    compressions: frozenset[str] = frozenset(("application/x-gzip", "application/x-bz2"))

    @classmethod
    def of_requests(cls, conf: cfg.ConfigOpts) -> Self:
        """Return the limits of calls and casts, by the options ``[messages]``."""
        options = conf.messages
        return cls(options.max_request, options.max_request_elements, options.max_depth,
                   _headers(options.compressions))

    @classmethod
    def of_answers(cls, conf: cfg.ConfigOpts) -> Self:
        """Return the limits of answers and events, by the options ``[messages]``."""
        options = conf.messages
        return cls(options.max_answer, options.max_answer_elements, options.max_depth,
                   _headers(options.compressions))

    def check_size(self, size: int) -> None:
        """Check a size in bytes.

        :raises MessageTooLarge: if it exceeds the limit
        """
        if size > self.size:
            raise exception.MessageTooLarge(limit=self.size, unit="bytes")

    def check(self, text: bytes) -> None:
        """Check a JSON text before it is parsed.

        The elements are counted by commas and opening brackets. Those within strings count too:
        a string may contain JSON that is parsed later.

        :param text: in UTF-8
        :raises MessageTooLarge: if it is too long, or has too many elements or too deep ones
        """
        self.check_size(len(text))
        opening = text.count(b"[") + text.count(b"{")
        # Each element takes a byte at least, so the commas of a text that is no longer than the
        # limit need not be counted.
        if len(text) > self.elements and opening + text.count(b",") > self.elements:
            raise exception.MessageTooLarge(limit=self.elements, unit="elements")
        if opening > self.depth and _depth(text) > self.depth:
            raise exception.MessageTooLarge(limit=self.depth, unit="levels")


#: The defaults: of what is asked, and of what is answered or published.
REQUESTS = Limits()
ANSWERS = Limits(size=64 * 1024 * 1024, elements=2_000_000)


def _headers(names):
    return frozenset(_NAMES[name] for name in names)


def _depth(text):
    """Return how deeply the brackets outside of strings are nested; of JSON, its depth."""
    if b"\\" in text:
        # Each of these takes twice as long as all of the rest, even if it finds nothing.
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Strings without brackets vanish, so that no more than a few pieces per bracket remain.
    text = text.translate(None, _OTHERS).replace(b'""', b"")
    outside = b"".join(text.split(b'"')[::2])
    return max(itertools.accumulate(array.array("b", outside.translate(_STEPS))), default=0)


def compression_of(name: str | None) -> str | None:
    """Return the header for the value of ``[oslo_messaging_rabbit] kombu_compression``.

    :param name: None or empty for none
    :raises InvalidInput: if it is no compression that this project knows
    """
    if not name:
        return None
    if name not in _NAMES:
        raise exception.InvalidInput(
            what="[oslo_messaging_rabbit] kombu_compression",
            reason=f"{name!r} is not supported; use gzip or bz2, or leave it out")
    return _NAMES[name]


def compressed(body: str, compression: str) -> bytes:
    """Return a body as a header of :data:`COMPRESSIONS` says."""
    return _COMPRESS[compression](body.encode())


def decompressed(body: bytes | str, compression: object, limits: Limits) -> bytes:
    """Return a body as it was before it was compressed.

    :param compression: the header ``compression`` of the message; None for none
    :raises MessageTooLarge: if the body is too large, before or after
    :raises ValueError: if it is compressed otherwise than declared, or in a way that is not
        accepted
    """
    data = as_bytes(body)
    limits.check_size(len(data))
    if compression is None or compression == "":
        return data
    # With one byte more than allowed, to see that it is too large.
    found, decompressor = _decompress(data, compression, limits, limits.size + 1)
    limits.check_size(len(found))
    if not decompressor.eof or decompressor.unused_data:
        raise ValueError("it is not compressed as declared: it ends too early or too late")
    return found


def beginning(body: bytes | str, compression: object, limits: Limits, size: int) -> bytes:
    """Return the first bytes of a compressed body; none if it is not compressed as declared."""
    try:
        return _decompress(as_bytes(body), compression, limits, size)[0]
    except ValueError:
        return b""


def as_bytes(body: bytes | str) -> bytes:
    """Return a body in UTF-8; the AMQP library has a str for some."""
    return body.encode("utf-8", "surrogatepass") if isinstance(body, str) else bytes(body)


def _decompress(data, compression, limits, size):
    """Return the first bytes of what was compressed, and the decompressor."""
    name = _NAMES.get(compression) if isinstance(compression, str) else None
    if name not in limits.compressions:
        raise ValueError(f"the compression {str(compression)[:64]!r} is not accepted: see "
                         "[messages] compressions")
    decompressor = _DECOMPRESSORS[name]()
    try:
        return decompressor.decompress(data, size), decompressor
    except (zlib.error, lzma.LZMAError, OSError, EOFError) as error:
        raise ValueError(f"it is not compressed as declared: {error}") from None


def written_in_pieces(value: Any) -> str:
    """Return the JSON text of a value, as :func:`json.dumps` does, which holds the interpreter.

    Here other threads run between the parts of long lists.
    """
    return "".join(_pieces(value, 0))


def _pieces(value, level):
    if level == _LEVELS or not value or not isinstance(value, (dict, list)):
        yield json.dumps(value)
    elif isinstance(value, dict):
        for number, (key, item) in enumerate(value.items()):
            # The key as it is written before a value.
            yield f"{', ' if number else '{'}{json.dumps({key: None})[1:-5]}"
            yield from _pieces(item, level + 1)
        yield "}"
    elif len(value) <= _PIECE or any(
            isinstance(item, str) and len(item) > _LONG for item in value):
        for number, item in enumerate(value):
            yield ", " if number else "["
            yield from _pieces(item, level + 1)
        yield "]"
    else:
        for start in range(0, len(value), _PIECE):
            piece = json.dumps(value[start:start + _PIECE])
            yield f"{', ' if start else '['}{piece[1:-1]}"
        yield "]"


def quoted(text: str) -> str:
    """Return a text in ASCII as a JSON string, otherwise as :func:`written_in_pieces`."""
    parts = (json.dumps(text[start:start + _PART])[1:-1] for start in range(0, len(text), _PART))
    return f'"{"".join(parts)}"'


def parsed(text: bytes | str, limits: Limits, **options: Any) -> Any:
    """Return the value of a JSON text.

    :param text: bytes in UTF-8, or str
    :param options: hooks of :func:`json.loads`
    :raises MessageTooLarge: if it exceeds a limit
    :raises ValueError: if it is not JSON
    """
    if isinstance(text, str):
        limits.check(as_bytes(text))
    else:
        limits.check(text)
        text = str(text, "utf-8")
    try:
        return json.loads(text, **options) if options else json_text.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
