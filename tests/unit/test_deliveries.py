# SPDX-License-Identifier: Apache-2.0
"""Messages are delivered as py-amqp itself delivers them, however the network divides them."""

import collections
import contextlib
import struct
import types

import amqp
from amqp import method_framing, spec
from hypothesis import given, settings
from hypothesis import strategies as st

from placement_rpc.amqp import contents, frames
from tests import base

_METHOD, _HEADER, _BODY, _HEARTBEAT = 1, 2, 3, 8
_ATTRIBUTES = ("properties", "headers", "delivery_info", "delivery_tag", "body_size",
               "ready")
_NAMES = st.text(max_size=20) | st.just("é" * 127)
_PROPERTIES = st.fixed_dictionaries({}, optional={
    "content_type": st.just("application/json"), "correlation_id": _NAMES, "reply_to": _NAMES,
    "delivery_mode": st.sampled_from([1, 2]), "message_id": _NAMES,
    "application_headers": st.dictionaries(
        _NAMES, st.integers(-2 ** 31, 2 ** 62) | st.text(max_size=9) | st.booleans())})


def _frame(kind, channel, payload):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def _method(tag=b"tag", number=1, flags=0, exchange=b"exchange", key=b"key"):
    """Return the payload of a method that delivers a message."""
    return b"".join([
        struct.pack(">HHB", *spec.Basic.Deliver, len(tag)), tag,
        struct.pack(">QBB", number, flags, len(exchange)), exchange, bytes([len(key)]), key])


def _header(size, properties=b"\0\0"):
    return struct.pack(">HHQ", spec.Basic.CLASS_ID, 0, size) + properties


def _delivered(body, channel=1, **arguments):
    """Return the frames of a message."""
    return (_frame(_METHOD, channel, _method(**arguments))
            + _frame(_HEADER, channel, _header(len(body))) + _frame(_BODY, channel, body))


class _Reading:
    """A connection of the library that reads given bytes.

    :param pieces: bytes objects, as the network delivers them
    :param handler: what takes the frames
    """

    def __init__(self, pieces, handler=contents.Assembler):
        self._pieces = [piece for piece in pieces if piece]
        self.came = []
        self.library = frames.KombuConnection().get_transport_cls().Connection("host")
        self.library.received = frames._Received()
        self.library.channels = {}
        for number in (1, 2):
            channel = self.library.channels[number] = amqp.Channel.__new__(amqp.Channel)
            amqp.abstract_channel.AbstractChannel.__init__(channel, self.library, number)
            channel.callbacks = {"tag": self.came.append, "étiquette": self.came.append}
            channel.auto_decode, channel.events = False, collections.defaultdict(set)
        self.library.on_inbound_frame = handler(self.library, self.library.on_inbound_method)
        self.library._transport = types.SimpleNamespace(
            connected=True, sock=self, _quick_recv=self._receive)
        self._connection = types.SimpleNamespace(_connection=self.library)

    def _receive(self, size):
        """Return bytes as a socket does."""
        piece = self._pieces.pop(0)
        if len(piece) > size:
            self._pieces.insert(0, piece[size:])
        return piece[:size]

    def read_event(self):
        frames.read_event(self._connection)

    def read(self):
        """Read all that comes; return the messages."""
        while self._pieces or self.library.received:
            self.read_event()
        return self.came


def _seen(messages):
    """Return what programs see of messages."""
    # The library's body is a text if it is empty.
    return [[message.body or b"", message.channel.channel_id,
             *(getattr(message, name) for name in _ATTRIBUTES)] for message in messages]


@st.composite
def _messages(draw):
    """Return the frames of a message, with its body in one frame or in several."""
    channel, body = draw(st.sampled_from([1, 2])), draw(st.binary(max_size=60))
    size = draw(st.sampled_from([max(1, len(body)), 7]))
    method = _method(
        draw(st.sampled_from(["tag", "étiquette"])).encode(), draw(st.integers(1, 2 ** 63)),
        draw(st.integers(0, 3)), draw(_NAMES).encode(), draw(_NAMES).encode())
    properties = amqp.Message(b"", **draw(_PROPERTIES))._serialize_properties()
    return b"".join([
        _frame(_METHOD, channel, method), _frame(_HEADER, channel, _header(len(body), properties)),
        *[_frame(_BODY, channel, body[start:start + size])
          for start in range(0, len(body), size)]])


_OTHERS = st.sampled_from([
    _frame(_HEARTBEAT, 0, b""), _frame(_METHOD, 1, struct.pack(">HHQB", *spec.Basic.Ack, 1, 0))])


class DeliveryTest(base.TestCase):

    @settings(max_examples=base.examples(200), deadline=None)
    @given(st.lists(_messages() | _OTHERS, max_size=6), st.integers(1, 400))
    def test_it_is_the_librarys(self, sent, size):
        data = b"".join(sent)
        pieces = [data[start:start + size] for start in range(0, len(data), size)]
        self.assertEqual(_seen(_Reading([data], method_framing.frame_handler).read()),
                         _seen(_Reading(pieces).read()))

    def test_a_key_that_is_no_text(self):
        message, = _Reading([_delivered(b"body", key=b"a\xff")]).read()
        self.assertEqual((b"body", "a\N{REPLACEMENT CHARACTER}"),
                         (message.body, message.delivery_info["routing_key"]))

    def test_a_callback_may_read(self):
        reading = _Reading([_delivered(b"1") + _delivered(b"2") + _delivered(b"3")])

        def read_another(message):
            reading.came.append(message)
            if message.body == b"1":
                reading.read_event()

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
        # Without an end, this waits for another event.
        reading.library.drain_events()
        self.assertEqual(1, len(reading.came))
        self.assertGreater(reading.library.bytes_recv, before)

    def test_reading_ends_with_a_heartbeat_within_a_message(self):
        reading = _Reading([_frame(_METHOD, 1, _method()) + _frame(_HEADER, 1, _header(4))
                            + _frame(_HEARTBEAT, 0, b"")])
        reading.read_event()
        self.assertFalse(reading.library.received)

    def test_a_message_in_parts_is_one_event(self):
        reading = _Reading([_frame(_METHOD, 1, _method()), _frame(_HEADER, 1, _header(4)),
                            _frame(_BODY, 1, b"bo"), _frame(_BODY, 1, b"dy")])
        reading.read_event()
        self.assertEqual([b"body"], [message.body for message in reading.came])
