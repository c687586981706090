# SPDX-License-Identifier: Apache-2.0
"""A message that has come whole is what its frames make, however the network divides them."""

import collections
import contextlib
import struct
import types

import amqp
from amqp import spec
from hypothesis import given, settings
from hypothesis import strategies as st

from placement_rpc.amqp import connection, contents, frames
from placement_rpc.amqp.receive_buffer import ReceiveBuffer
from tests import base

_LARGEST = 4096
_METHOD, _HEADER, _BODY, _HEARTBEAT = 1, 2, 3, 8
_ATTRIBUTES = ("body", "properties", "unreadable", "raw_header", "delivery_info", "body_size",
               "ready")
_NAMES = st.text(max_size=20) | st.just("é" * 127)
_PROPERTIES = st.fixed_dictionaries({}, optional={
    "content_type": st.just("application/json"), "correlation_id": _NAMES, "reply_to": _NAMES,
    "delivery_mode": st.sampled_from([1, 2]), "message_id": _NAMES,
    "application_headers": st.dictionaries(
        _NAMES, st.integers(-2 ** 31, 2 ** 62) | st.text(max_size=9) | st.booleans())})


def _frame(kind, channel, payload, end=b"\xce"):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + end


def _method(tag=b"tag", number=1, flags=0, exchange=b"exchange", key=b"key"):
    """Return the payload of a method that delivers a message."""
    return b"".join([
        struct.pack(">HHB", *spec.Basic.Deliver, len(tag)), tag,
        struct.pack(">QBB", number, flags, len(exchange)), exchange, bytes([len(key)]), key])


def _header(size, properties=b"\0\0"):
    return struct.pack(">HHQ", spec.Basic.CLASS_ID, 0, size) + properties


def _delivered(body, properties=b"\0\0", channel=1, method=None):
    """Return the frames of a message with its body in one frame."""
    return (_frame(_METHOD, channel, method or _method())
            + _frame(_HEADER, channel, _header(len(body), properties))
            + _frame(_BODY, channel, body))


class _Reading:
    """A connection of the library that reads given bytes.

    :param pieces: bytes objects, as the network delivers them
    :param by_frames: whether messages that have come whole are read as any others
    """

    def __init__(self, pieces, by_frames=False):
        self._pieces = [piece for piece in pieces if piece]
        self.came = []
        library = frames.KombuConnection().get_transport_cls().Connection("host")
        self.library, library.received = library, ReceiveBuffer()
        library.channels = {}
        for number in (1, 2):
            channel = library.channels[number] = amqp.Channel.__new__(amqp.Channel)
            amqp.abstract_channel.AbstractChannel.__init__(channel, library, number)
            channel.callbacks = {"tag": self.came.append, "étiquette": self.came.append}
            channel.auto_decode, channel.events = False, collections.defaultdict(set)
        library.on_inbound_frame = contents.Assembler(
            library, library.on_inbound_method, _LARGEST)
        if by_frames:
            library.on_inbound_frame.delivery = lambda data, start: None
        library._transport = types.SimpleNamespace(
            connected=True, sock=self, _quick_recv=self._receive)
        self.connection = connection.Connection(types.SimpleNamespace(_connection=library))

    def _receive(self, size):
        """Return bytes as a socket does."""
        piece = self._pieces.pop(0)
        if len(piece) > size:
            self._pieces.insert(0, piece[size:])
        return piece[:size]

    def read(self):
        """Read all that comes; return the messages."""
        while self._pieces or self.library.received:
            frames.read_event(self.connection._connection)
        return self.came


def _seen(messages):
    """Return what programs see of messages."""
    return [[getattr(message, name) for name in _ATTRIBUTES] + [message.channel.channel_id]
            for message in messages]


@st.composite
def _messages(draw):
    """Return the frames of a message, whole or in parts, valid or with defective properties."""
    channel, body = draw(st.sampled_from([1, 2])), draw(st.binary(max_size=60))
    properties = amqp.Message(b"", **draw(_PROPERTIES))._serialize_properties()
    properties = draw(st.sampled_from([properties, properties[:-1], b"\xff\xff" + properties[2:]]))
    size = draw(st.sampled_from([max(1, len(body)), 7]))
    parts = [body[start:start + size] for start in range(0, len(body), size)]
    method = _method(
        draw(st.sampled_from(["tag", "étiquette"])).encode(), draw(st.integers(1, 2 ** 63)),
        draw(st.integers(0, 3)), draw(_NAMES).encode(),
        draw(_NAMES.map(str.encode) | st.just(b"\xff\xfe")))
    return b"".join([_frame(_METHOD, channel, method),
                     _frame(_HEADER, channel, _header(len(body), properties)),
                     *[_frame(_BODY, channel, part) for part in parts]])


_OTHERS = st.just(_frame(_HEARTBEAT, 0, b"")) | st.just(
    _frame(_METHOD, 1, struct.pack(">HHQB", *spec.Basic.Ack, 1, 0)))


class DeliveryTest(base.TestCase):

    @settings(max_examples=base.examples(200), deadline=None)
    @given(st.lists(_messages() | _OTHERS, max_size=6), st.integers(1, 400))
    def test_it_is_what_its_frames_make(self, sent, size):
        data = b"".join(sent)
        pieces = [data[start:start + size] for start in range(0, len(data), size)]
        self.assertEqual(_seen(_Reading([data], by_frames=True).read()),
                         _seen(_Reading(pieces).read()))

    def test_it_needs_no_frames(self):
        reading = _Reading([_delivered(b"body") * 3])
        self.patch(contents.Assembler, "__call__", self.fail)
        self.assertEqual([b"body"] * 3, [message.body for message in reading.read()])

    def test_what_has_not_come_whole_waits_for_its_frames(self):
        data = _delivered(b"body")
        for size in range(len(data)):
            self.assertIsNone(contents.delivery(data[:size], 0, _LARGEST))
        self.assertEqual(len(data), contents.delivery(data, 0, _LARGEST).end)

    def test_what_is_no_delivery_is_left_to_the_frames(self):
        method, header, body = (_frame(_METHOD, 1, _method()), _frame(_HEADER, 1, _header(4)),
                                _frame(_BODY, 1, b"body"))
        for name, sent in {
                "another method": [_frame(_METHOD, 1, b"\0\x3c\0\x32" + _method()[4:]), header,
                                   body],
                "no channel": [_frame(_METHOD, 0, _method()), _frame(_HEADER, 0, _header(4)),
                               _frame(_BODY, 0, b"body")],
                "a header of another channel": [method, _frame(_HEADER, 2, _header(4)), body],
                "a body of another channel": [method, header, _frame(_BODY, 2, b"body")],
                "a header that is too short": [method, _frame(_HEADER, 1, _header(0)[:11]),
                                               _frame(_BODY, 1, bytes(0xce))],
                "properties that cannot be read": [
                    method, _frame(_HEADER, 1, _header(4, b"\xff\xff")), body],
                "no header": [method, body, body],
                "no body": [method, header, header],
                "a part of a body": [method, _frame(_HEADER, 1, _header(5)), body],
                "too much of a body": [method, _frame(_HEADER, 1, _header(3)), body],
                "an empty body": [method, _frame(_HEADER, 1, _header(0)), _frame(_BODY, 1, b"")],
                "no end of a method": [_frame(_METHOD, 1, _method(), b"x"), header, body],
                "no end of a header": [method, _frame(_HEADER, 1, _header(4), b"x"), body],
                "no end of a body": [method, header, _frame(_BODY, 1, b"body", b"x")],
                "an argument too many": [_frame(_METHOD, 1, _method() + b"x"), header, body],
                "an argument that is cut off": [_frame(_METHOD, 1, _method()[:-1]), header, body],
                "too large": [method, _frame(_HEADER, 1, _header(_LARGEST)),
                              _frame(_BODY, 1, bytes(_LARGEST))]}.items():
            # What follows could be taken for its end.
            data = b"".join(sent) + _delivered(b"next")
            self.assertIsNone(contents.delivery(data, 0, _LARGEST), name)

    def test_a_delivery_in_a_message_that_has_come_in_part_is_an_error(self):
        data = _frame(_METHOD, 1, _method()) + _frame(_HEADER, 1, _header(4))
        self.assertRaises(amqp.exceptions.UnexpectedFrame,
                          _Reading([data, _delivered(b"body")]).read)

    def test_a_callback_may_read(self):
        reading = _Reading([_delivered(b"1") + _delivered(b"2") + _delivered(b"3")])

        def read_another(message):
            reading.came.append(message)
            if message.body == b"1":
                frames.read_event(reading.connection._connection)

        reading.library.channels[1].callbacks["tag"] = read_another
        self.assertEqual([b"1", b"2", b"3"], [message.body for message in reading.read()])

    def test_an_error_of_a_callback_ends_the_connection(self):
        reading = _Reading([_delivered(b"body")])

        def fail(_message):
            raise KeyError("an error")

        reading.library.channels[1].callbacks["tag"] = fail
        self.assertRaises(frames.Malformed, reading.read)

    def test_a_channel_that_closes_takes_no_message(self):
        reading = _Reading([_delivered(b"1") + _delivered(b"2", channel=2)])
        reading.library.channels[1].is_closing = True
        self.assertEqual([b"2"], [message.body for message in reading.read()])

    def test_a_channel_that_there_is_not(self):
        self.assertRaises(frames.Malformed, _Reading([_delivered(b"1", channel=9)]).read)

    def test_a_connection_that_was_closed_meanwhile(self):
        reading = _Reading([_delivered(b"1")])
        reading.library.channels = None
        error = self.assertRaises(amqp.RecoverableConnectionError, reading.read)
        self.assertEqual("the connection is lost", str(error))

    def test_it_is_a_sign_of_life_and_an_event(self):
        reading = _Reading([_delivered(b"1")])
        reading.library._transport.having_timeout = lambda _: contextlib.nullcontext()
        before = reading.library.bytes_recv
        self.assertTrue(reading.library.blocking_read())
        self.assertGreater(reading.library.bytes_recv, before)

    def test_limits_are_those_of_the_connection(self):
        for size, frame_max in ((_LARGEST + 1, 0), (300, 300)):
            reading = _Reading([_delivered(bytes(size))])
            reading.library.frame_max = frame_max or reading.library.frame_max
            self.assertIsNone(reading.library.on_inbound_frame.delivery(
                _delivered(bytes(size)), 0))

    def test_reading_does_not_wait_for_the_rest_of_another_message(self):
        """Heartbeats, or messages of another channel, come while it is cut off."""
        begun = _frame(_METHOD, 1, _method()) + _frame(_HEADER, 1, _header(4))
        for other in (_frame(_HEARTBEAT, 0, b""), _delivered(b"whole", channel=2)):
            reading = _Reading([begun + other])
            frames.read_event(reading.connection._connection)
            self.assertFalse(reading.library.received)
        self.assertEqual([b"whole"], [message.body for message in reading.came])

    def test_a_message_in_parts_is_one_event(self):
        reading = _Reading([_frame(_METHOD, 1, _method()), _frame(_HEADER, 1, _header(4)),
                            _frame(_BODY, 1, b"bo"), _frame(_BODY, 1, b"dy")])
        frames.read_event(reading.connection._connection)
        self.assertEqual([b"body"], [message.body for message in reading.came])
