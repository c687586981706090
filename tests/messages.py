# SPDX-License-Identifier: Apache-2.0
"""Messages that cannot be read, for every queue and stream: made at random from a seed.

Each has a mark in its body, by which it is found among the dead letters.
"""

import bz2
import json
import lzma
import random
import struct
import zlib
from typing import NamedTuple

import amqp

from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.frames import FAILURES

#: Bits of the properties in the flags of a content header, in the order of the properties.
_CONTENT_TYPE, _ENCODING, _HEADERS, _MODE, _PRIORITY = 0x8000, 0x4000, 0x2000, 0x1000, 0x0800
_CORRELATION, _REPLY_TO, _MESSAGE_ID, _TIME, _TYPE, _APP = (
    0x0400, 0x0200, 0x0080, 0x0040, 0x0020, 0x0008)
_TEXTS = (_CONTENT_TYPE, _ENCODING, _CORRELATION, _REPLY_TO, _MESSAGE_ID, _TYPE, _APP)
# Headers that the broker, kombu, oslo.messaging or this project give a meaning.
_NAMES = (b"compression", b"x-delivery-count", b"x-death", b"x-stream-offset", b"CC", b"BCC",
          b"placement-replayed", b"placement-queue", b"placement-reason", b"placement-time",
          b"placement-size", b"\xff\xfe", b"", b"key" * 80)
_COMPRESSIONS = ("application/x-gzip", "application/x-bz2", "application/x-lzma",
                 "application/x-bzip2", "application/zstd", "gzip", "none", "")


class Poison(NamedTuple):
    """A message that is neither a call, nor a command, nor an event.

    ``properties`` are those of its content header, as bytes. ``mark`` is in its body.
    """

    name: str
    mark: str
    body: bytes
    properties: bytes


class _Message(amqp.Message):
    """A message whose properties are written as they are."""

    def __init__(self, body, properties):
        super().__init__(body)
        self._raw = properties

    def _serialize_properties(self):
        return self._raw


def text(value):
    """Return a short string of AMQP."""
    return bytes([len(value)]) + value


def table(*entries):
    """Return a table of AMQP.

    :param entries: tuples of a name and of a value with its type, as bytes
    """
    content = b"".join(text(name) + value for name, value in entries)
    return struct.pack(">I", len(content)) + content


def properties(**values):
    """Return properties as the library writes them."""
    return amqp.Message(b"", **values)._serialize_properties()


def _flags(flags, content=b""):
    return struct.pack(">H", flags) + content


def _headers(*entries):
    return _flags(_HEADERS, table(*entries))


def _nested(depth):
    value = b"V"
    for _ in range(depth):
        content = text(b"a") + value
        value = b"F" + struct.pack(">I", len(content)) + content
    return value


def _nested_arrays(depth):
    value = b"V"
    for _ in range(depth):
        value = b"A" + struct.pack(">I", len(value)) + value
    return value


def known(mark):
    """Return the messages that once stopped something: a list of :class:`Poison`.

    :param mark: callable that returns a new mark
    """
    compressed = [
        (f"{kind} of junk", lambda each: each.encode() + b"\x00junk" * 50, properties(
            application_headers={"compression": kind})) for kind in _COMPRESSIONS]
    made = [
        ("an offset of the stream in its message id", lambda each: json.dumps([each]).encode(),
         _flags(_CONTENT_TYPE | _MESSAGE_ID, text(b"\xff\xfe")
                + text(b"\x0fx-stream-offsetl\x7f" + 7 * b"\xff"))),
        ("content type FF FE", lambda each: json.dumps([each]).encode(),
         _flags(_CONTENT_TYPE, text(b"\xff\xfe"))),
        ("content encoding FF FE", lambda each: json.dumps([each]).encode(),
         _flags(_ENCODING, text(b"\xff\xfe"))),
        ("message id FF FE", lambda each: json.dumps([each]).encode(),
         _flags(_MESSAGE_ID, text(b"\xff\xfe"))),
        ("timestamp 2**60 in a header", lambda each: json.dumps([each]).encode(),
         _headers((b"t", b"T" + struct.pack(">Q", 2 ** 60)))),
        ("timestamp 2**64-1 in a header", lambda each: json.dumps([each]).encode(),
         _headers((b"t", b"T" + b"\xff" * 8))),
        ("nested tables", lambda each: json.dumps([each]).encode(),
         _headers((b"a", _nested(3000)))),
        ("nested arrays", lambda each: json.dumps([each]).encode(),
         _headers((b"a", _nested_arrays(3000)))),
        ("nested tables in a header with a meaning", lambda each: json.dumps([each]).encode(),
         _headers((b"placement-replayed", _nested(300)), (b"x-delivery-count", _nested(300)),
                  (b"compression", _nested(300)))),
        ("decimal 10**-255", lambda each: json.dumps([each]).encode(),
         _headers((b"d", b"D\xff\x7f\xff\xff\xff"))),
        ("nested lists", lambda each: f'["{each}", {"[" * 100_000}'.encode(), properties()),
        ("nested lists that end", lambda each: (
            f'["{each}", {"[" * 900}{"]" * 900}]'.encode()), properties()),
        ("a long number", lambda each: f'["{each}", {"9" * 10_000}]'.encode(), properties()),
        ("half of a surrogate", lambda each: f'["{each}", "\\ud800"]'.encode(), properties()),
        ("not UTF-8", lambda each: each.encode() + b"\xff\xfe", properties()),
        ("UTF-16", lambda each: each.encode() + "é".encode("utf-16"), properties()),
        ("a method that is a list", lambda each: (
            f'{{"mark": "{each}", "method": {"[" * 900}{"]" * 900}}}'.encode()), properties()),
        *((f"{kind} with {len(data)} fields", lambda each, kind=kind, data=data: json.dumps({
            "mark": each, "event_type": kind, "payload": {
                "event_id": each, "position": 10 ** 9, "occurred_at": "2026-01-01T00:00:00+00:00",
                **data}}).encode(), properties())
          for kind in ("allocation.update", "allocation.snapshot.end", "inventory.update",
                       "resource_class.update", "allocation.claim.refused")
          for data in ({}, {"providers": [5], "inventories": [5], "consumer_uuid": [5]})),
        ("large and FF FE", lambda each: each.encode() + b"x" * 300_000,
         _flags(_CONTENT_TYPE, text(b"\xff\xfe"))),
        *compressed]
    return [Poison(name, own := mark(), body(own), raw) for name, body, raw in made]


class Generator:
    """Makes messages at random.

    :param seed: the same seed makes the same messages
    """

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._made = 0

    def mark(self):
        """Return a mark that no other message has."""
        self._made += 1
        return f"poison-{self._made}-{self._random.getrandbits(64):016x}-"

    def known(self):
        """Return one of each message that once stopped something."""
        return known(self.mark)

    def poison(self):
        """Return a message that cannot be read."""
        if self._random.random() < 0.2:
            return self._random.choice(self.known())
        mark = self.mark()
        kind, body = self._body(mark)
        return Poison(f"{kind} (random)", mark, body, self._properties())

    def _bytes(self, most):
        return self._random.randbytes(self._random.randint(0, most))

    def _body(self, mark):
        junk = self._bytes(self._random.choice((10, 1000, 100_000)))
        makers = {
            "junk": lambda: mark.encode() + junk,
            "JSON of another kind": lambda: json.dumps([mark, self._json()]).encode(),
            "an envelope of junk": lambda: json.dumps({
                "oslo.version": "2.0", "mark": mark, "oslo.message": [self._json()]}).encode(),
            "an envelope of text": lambda: json.dumps({
                "oslo.version": "2.0", "mark": mark,
                "oslo.message": "-" + junk.decode("latin-1")}).encode(),
            "compressed and cut": lambda: mark.encode() + self._random.choice(
                (zlib.compress, bz2.compress, lzma.compress))(junk)[:-3],
            "a method that is none": lambda: json.dumps({
                "mark": mark, "method": [self._json()], "_msg_id": self._json(),
                "_reply_q": self._json(), "event_type": [self._json()], "payload": self._json(),
            }).encode()}
        kind = self._random.choice(sorted(makers))
        return kind, makers[kind]()

    def _json(self, depth=3):
        kind = self._random.randrange(8 if depth else 6)
        if kind == 6:
            return [self._json(depth - 1) for _ in range(self._random.randrange(4))]
        if kind == 7:
            return {self._bytes(5).decode("latin-1"): self._json(depth - 1)
                    for _ in range(self._random.randrange(4))}
        return (None, True, self._random.getrandbits(200), float("nan"), "\ud800",
                self._bytes(20).decode("latin-1"))[kind]

    def _properties(self):
        flags, content = 0, b""
        for flag in (_CONTENT_TYPE, _ENCODING, _HEADERS, _MODE, _PRIORITY, _CORRELATION,
                     _REPLY_TO, _MESSAGE_ID, _TIME, _TYPE, _APP):
            if self._random.random() < 0.6:
                continue
            flags |= flag
            if flag in _TEXTS:
                content += text(self._bytes(255))
            elif flag == _HEADERS:
                content += table(*((self._name(), self._value()) for _ in range(
                    self._random.randrange(5))))
            else:
                content += self._random.randbytes(8 if flag == _TIME else 1)
        return _flags(flags, content)

    def _name(self):
        return self._random.choice((*_NAMES, self._bytes(40)))

    def _value(self, depth=3):
        chance = self._random
        number = chance.randbytes
        kinds = {
            b"t": lambda: number(1), b"b": lambda: number(1), b"B": lambda: number(1),
            b"s": lambda: number(2), b"u": lambda: number(2), b"I": lambda: number(4),
            b"i": lambda: number(4), b"l": lambda: number(8), b"f": lambda: number(4),
            b"d": lambda: number(8), b"D": lambda: number(5), b"T": lambda: number(8),
            b"V": lambda: b"",
            b"S": lambda: self._sized(chance.choice((
                self._bytes(300), chance.choice(_COMPRESSIONS).encode()))),
            b"x": lambda: self._sized(self._bytes(300))}
        if depth:
            kinds[b"F"] = lambda: table(*(
                (self._name(), self._value(depth - 1)) for _ in range(chance.randrange(4))))
            kinds[b"A"] = lambda: self._sized(b"".join(
                self._value(depth - 1) for _ in range(chance.randrange(4))))
        kind = chance.choice(sorted(kinds))
        return kind + kinds[kind]()

    @staticmethod
    def _sized(value):
        return struct.pack(">I", len(value)) + value


class Poisoner:
    """Publishes messages to queues by name, and reconnects when the broker refuses one.

    :param url: of the broker
    """

    def __init__(self, url):
        self._broker = Broker.at(url)
        self._connection = None

    def publish(self, queue, poisons):
        """Publish messages to a queue.

        :returns: list of those that the broker took
        """
        return [each for each in poisons if self._is_taken(queue, each)]

    def _is_taken(self, queue, poison):
        try:
            if self._connection is None:
                self._connection = self._broker.connect(confirm_publish=True)
                self._channel = self._connection.channel()
            # Another thread sends heartbeats.
            with self._connection.writing():
                self._channel.basic_publish(
                    _Message(poison.body, poison.properties), routing_key=queue, mandatory=True)
        except FAILURES:
            # The broker itself does not read everything.
            self.close()
            return False
        return True

    def close(self):
        """Drop the connection."""
        if self._connection is not None:
            self._connection.drop()
            self._connection = None
