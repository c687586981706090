# SPDX-License-Identifier: Apache-2.0
"""A peer that begins as a broker of AMQP does, and goes on with anything."""

import contextlib
import random
import socket
import struct
import threading

import fixtures
from amqp import serialization, spec

from tests import messages

_METHOD, _HEADER, _BODY, _HEARTBEAT = 1, 2, 3, 8
#: The answers of a broker in the order in which a consumer needs them.
STAGES = ("start", "tune", "open", "channel", "qos", "consume", "deliver")
_TAG = b"tag"
_LARGEST = 131_000


def frame(kind, channel, payload, end=b"\xce", size=None):
    """Return a frame, whose size may be stated wrongly."""
    return struct.pack(">BHI", kind, channel, len(payload) if size is None else size) + (
        payload + end)


def method(signature, channel, arguments=b""):
    """Return the frame of a method."""
    return frame(_METHOD, channel, struct.pack(">HH", *signature) + arguments)


def delivery(body=b"{}", channel=1, tag=1, header=None, routing_key=b"key"):
    """Return the frames of a delivery.

    :param header: the payload of the content header; None for a valid one
    """
    arguments = messages.text(_TAG) + struct.pack(">QB", tag, 0) + messages.text(b"") + (
        messages.text(routing_key))
    if header is None:
        header = struct.pack(">HHQH", 60, 0, len(body), 0)
    return (method(spec.Basic.Deliver, channel, arguments) + frame(_HEADER, channel, header)
            + b"".join(frame(_BODY, channel, body[start:start + _LARGEST])
                       for start in range(0, len(body), _LARGEST)))


def answers():
    """Return what a broker says, by stage."""
    table = messages.table((b"product", b"S\x00\x00\x00\x01x"))
    return {
        "start": method(spec.Connection.Start, 0, b"\x00\x09" + table + serialization.dumps(
            "SS", ["PLAIN AMQPLAIN", "en_US"])),
        "tune": method(spec.Connection.Tune, 0, struct.pack(">HIH", 2047, 131072, 60)),
        "open": method(spec.Connection.OpenOk, 0, b"\x00"),
        "channel": method(spec.Channel.OpenOk, 1, b"\x00\x00\x00\x00"),
        "qos": method(spec.Basic.QosOk, 1),
        "consume": method(spec.Basic.ConsumeOk, 1, messages.text(_TAG)),
        "deliver": delivery()}


def broken(chance):
    """Return bytes that a broker would not send.

    :param chance: :class:`random.Random`
    """
    return chance.choice((
        lambda: chance.randbytes(chance.randint(1, 300)),
        lambda: b"HTTP/1.1 400 Bad Request\r\n\r\n",
        lambda: frame(_BODY, 1, b"x"),
        lambda: frame(_HEADER, 1, b"\x00" * 14),
        lambda: frame(chance.randrange(256), chance.randrange(3), chance.randbytes(30)),
        lambda: frame(_METHOD, 1, b"", size=2 ** 32 - 1),
        lambda: frame(_METHOD, 1, b"x" * 50, size=2 ** 31 - 1),
        lambda: frame(_HEARTBEAT, 0, b"x" * chance.randrange(10)) + frame(_METHOD, 0, b""),
        lambda: frame(_METHOD, 1, struct.pack(">HH", 60, 60)),
        lambda: frame(_METHOD, 1, struct.pack(">HH", 60, 60) + chance.randbytes(40)),
        lambda: frame(_METHOD, 1, struct.pack(">HH", chance.randrange(100), 10 * chance.randrange(
            12)) + chance.randbytes(chance.randrange(60))),
        lambda: frame(_METHOD, 0, struct.pack(">HH", 10, chance.choice((10, 20, 30, 41, 50, 60)))
                      + chance.randbytes(chance.randrange(60))),
        lambda: method(spec.Channel.Close, 1, b"\xff" * chance.randrange(20)),
        lambda: method(spec.Connection.Tune, 0, struct.pack(">HIH", 0, 2 ** 32 - 1, 65535)),
        lambda: delivery(channel=chance.randrange(2, 70)),
        lambda: delivery(b"x" * 100, header=struct.pack(">HHQH", 60, 0, 10, 0)),
        lambda: delivery(b"x" * 100, header=struct.pack(">HHQH", 60, 0, 2 ** 64 - 1, 0)),
        lambda: delivery(header=b"\x00" * chance.randrange(14)),
        lambda: delivery(header=struct.pack(">HHQ", 60, 0, 2) + chance.randbytes(30)),
        lambda: delivery(header=struct.pack(">HHQH", 61, 0, 2, 0)),
        lambda: delivery(routing_key=chance.randbytes(255)),
        lambda: method(spec.Basic.Return, 1, chance.randbytes(20)) + frame(
            _HEADER, 1, struct.pack(">HHQH", 60, 0, 0, 0)),
        lambda: _flipped(chance, delivery(b"x" * 20) + answers()["qos"])))()


def _flipped(chance, data):
    """Return bytes of which some bits are others."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


class HostileBroker(fixtures.Fixture):
    """Listens on ``port``: answers connections up to a stage, and then with something broken.

    :param seed: of what is broken
    """

    def __init__(self, seed):
        super().__init__()
        self._chance = random.Random(seed)
        #: The stage in which the next connection gets a broken answer; None for a random one.
        self.stage = None
        #: Whether connections stay open after it.
        self.holds = False
        #: What was sent, a list of tuples of a stage and bytes.
        self.sent = []

    def _setUp(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"rabbit://guest:guest@127.0.0.1:{self.port}/"
        thread = threading.Thread(target=self._accept, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self._listener.close)
        self.addCleanup(self._listener.shutdown, socket.SHUT_RDWR)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection = self._listener.accept()[0]
                with contextlib.suppress(OSError), connection:
                    connection.settimeout(2)
                    self._talk(connection)

    def _talk(self, connection):
        stage = self.stage or self._chance.choice(STAGES)
        said = answers()
        for each in STAGES:
            if each not in ("open", "deliver"):
                connection.recv(65536)
            if each == stage:
                break
            connection.sendall(said[each])
        data = broken(self._chance)
        self.sent.append((stage, data))
        connection.sendall(data)
        # The peer sees the end of the data, and not an error of the socket.
        if not self.holds:
            connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
