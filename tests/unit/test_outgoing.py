# SPDX-License-Identifier: Apache-2.0
"""What is published is on the wire as the AMQP library would have sent it."""

import itertools
import types

import amqp
from amqp import method_framing, spec

from placement_rpc.amqp import frames
from placement_rpc.amqp.outgoing import Outgoing
from tests import base

_CHANNEL, _LARGEST = 3, 4096


class _Wire:
    """The transport of a connection, and the connection; keeps what is written."""

    frame_max, bytes_sent = _LARGEST, 0

    def __init__(self):
        self.written = b""
        self.writes = 0
        self._transport = self

    def write(self, data):
        self.written += bytes(data)
        self.writes += 1


def _by_the_library(message, mandatory):
    wire = _Wire()
    # Empty properties are left out.
    properties = {name: value for name, value in {
        "application_headers": message.headers, "message_id": message.message_id,
        "correlation_id": message.correlation_id, "reply_to": message.reply_to,
        "expiration": message.expiration}.items() if value}
    method_framing.frame_writer(wire, wire)(
        1, _CHANNEL, spec.Basic.Publish,
        amqp.serialization.dumps(
            "Bssbb", (0, message.exchange, message.routing_key, mandatory, False)),
        amqp.Message(message.body, content_type="application/json", content_encoding="utf-8",
                     delivery_mode=2 if message.durable else 1, **properties))
    return wire.written


_MESSAGES = (
    Outgoing("{}", "", "queue"),
    Outgoing(b"", "exchange", "key", durable=False),
    Outgoing('{"name": "Zoë"}', "placement", "über.info", "an-id"),
    Outgoing("{}", "", "k" * 255, headers={"compression": "application/x-gzip", "at": 2 ** 40}),
    Outgoing("{}", "", "queue", "", {}, "", "", ""),
    Outgoing("{}", "placement", "queue", headers={"flag": True, "deep": [{"a": None}]},
             correlation_id="c1", reply_to="reply_1", expiration="60000"),
    Outgoing("x" * (_LARGEST - 8), "", "queue"),
    Outgoing("x" * (3 * _LARGEST), "", "queue"),
)


class OutgoingTest(base.TestCase):

    def publish(self, *messages, mandatory=True):
        wire = _Wire()
        channel = types.SimpleNamespace(channel_id=_CHANNEL, connection=wire)
        frames.publish(channel, messages, mandatory)
        return wire

    def test_the_bytes_are_those_of_the_library(self):
        for message, mandatory in itertools.product(_MESSAGES, (True, False)):
            self.assertEqual(_by_the_library(message, mandatory),
                             self.publish(message, mandatory=mandatory).written, message)

    def test_many_messages_are_handed_to_the_system_together(self):
        messages = [Outgoing(f"{number}", "", "queue") for number in range(500)]
        wire = self.publish(*messages)
        self.assertEqual(b"".join(_by_the_library(each, True) for each in messages), wire.written)
        self.assertEqual(1, wire.writes)

    def test_a_long_write_is_divided(self):
        messages = [Outgoing("x" * 1000, "", "queue")] * 500
        self.assertGreater(self.publish(*messages).writes, 3)

    def test_a_name_that_is_too_long_is_refused(self):
        self.assertRaises(ValueError, self.publish, Outgoing("{}", "", "k" * 256))

    def test_a_lost_connection_is_an_error(self):
        """Another thread may close it at any moment, and it must not be opened again."""
        closed = amqp.Connection("127.0.0.1:1")
        for connection in (None, closed):
            channel = types.SimpleNamespace(channel_id=_CHANNEL, connection=connection)
            self.assertRaisesRegex(
                amqp.RecoverableConnectionError, "the connection is lost", frames.write,
                channel, b"frames")
        channel.connection = None
        self.assertRaisesRegex(
            amqp.RecoverableConnectionError, "the connection is lost", frames.encoded,
            channel, [Outgoing("{}", "", "queue")])
