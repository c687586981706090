# SPDX-License-Identifier: Apache-2.0
"""Frames become messages, whatever is wrong with one of them."""

import struct
import types
from unittest import mock

from amqp import exceptions as amqp_exceptions
from amqp import serialization, spec

from placement_rpc.amqp import contents
from tests import base, messages

_METHOD, _HEADER, _BODY = 1, 2, 3
_DELIVER = struct.pack(">HH", *spec.Basic.Deliver) + b"\x03tag" + bytes(8) + b"\x00\x00\x03key"


def _header(size, properties=b"\x00\x00"):
    return struct.pack(">HHQ", 60, 0, size) + properties


def _short(text):
    return messages.text(text.encode("utf-8", "surrogatepass"))


class AssemblerTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.came, self.given = [], []
        channel = types.SimpleNamespace(is_closing=False, _on_basic_deliver=self.deliver)
        self.assembler = contents.Assembler(
            types.SimpleNamespace(bytes_recv=0, channels={1: channel}), self.fail, 1000)

    def deliver(self, *arguments):
        *given, message = arguments
        self.given.append(given)
        self.came.append(message)

    def take(self, *frames, channel=1):
        return [self.assembler((kind, channel, payload)) for kind, payload in frames]

    def message(self, *frames):
        """Return the message of a delivery, after which another one is read."""
        self.take((_METHOD, _DELIVER), *frames)
        self.take((_METHOD, _DELIVER), (_HEADER, _header(2)), (_BODY, b"ok"))
        message, following = self.came
        self.assertEqual((None, b"ok"), (following.unreadable, following.body))
        return message

    def test_a_message_in_parts(self):
        message = self.message((_HEADER, _header(4)), (_BODY, b"ab"), (_BODY, b"cd"))
        self.assertEqual((None, b"abcd", 4), (message.unreadable, message.body, message.body_size))

    def test_the_arguments_of_a_delivery_are_those_that_the_library_reads(self):
        for consumer, tag, flags, exchange, key in (
                ("tag", 7, 0, "exchange", "key"), ("", 2 ** 64 - 1, 1, "", ""),
                ("t", 1, 2, "", ""), ("t" * 255, 0, 255, "\u00e4" * 127, "\ud800")):
            payload = struct.pack(">HH", *spec.Basic.Deliver) + b"".join((
                _short(consumer), struct.pack(">QB", tag, flags), _short(exchange), _short(key)))
            self.take((_METHOD, payload), (_HEADER, _header(0)))
            self.assertEqual([consumer, tag, bool(flags & 1), exchange, key], self.given[-1])
            self.assertEqual(serialization.loads("sLbss", payload, 4)[0], self.given[-1])

    def test_a_delivery_that_ends_before_its_routing_key_has_no_arguments(self):
        for length in range(4, len(_DELIVER) - 3):
            self.assertRaises((IndexError, struct.error), self.take,
                              (_METHOD, _DELIVER[:length]), (_HEADER, _header(0)))
        self.assertEqual([], self.given)

    def test_names_that_are_not_text(self):
        self.take((_METHOD, _DELIVER[:-5] + b"\x02\xffx\x01\xfe"), (_HEADER, _header(0)))
        self.assertEqual(["tag", 0, False, "\ufffdx", "\ufffd"], self.given[-1])

    def test_errors_of_parsing_belong_to_the_message(self):
        for error in (OSError(75, "Value too large"), MemoryError(), RecursionError("deep"),
                      UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), struct.error("short"),
                      amqp_exceptions.FrameSyntaxError("unknown"),
                      amqp_exceptions.RecoverableConnectionError("lost")):
            self.came.clear()

            def fail(*_arguments, error=error):
                fail.calls += 1
                if fail.calls == 1:
                    raise error
                return {}, 14

            fail.calls = 0
            with mock.patch.dict(serialization.PROPERTY_CLASSES, {60: fail}):
                message = self.message((_HEADER, _header(4)), (_BODY, b"abcd"))
            self.assertIn(type(error).__name__, message.unreadable)
            self.assertEqual((b"abcd", {}, _header(4)), (
                message.body, message.properties, message.raw_header))

    def test_memory_that_is_short_belongs_to_the_message(self):
        def fail(*_arguments):
            raise MemoryError

        with mock.patch.object(contents.IncomingMessage, "_keep", fail):
            self.take((_METHOD, _DELIVER), (_HEADER, _header(4)), (_BODY, b"abcd"))
        self.take((_METHOD, _DELIVER), (_HEADER, _header(2)), (_BODY, b"ok"))
        self.assertIn("MemoryError", self.came[0].unreadable)
        self.assertEqual(b"ok", self.came[1].body)

    def test_of_a_body_that_is_too_large_both_ends_are_kept(self):
        size = 5 * contents.EXCERPT
        part = contents.EXCERPT // 2
        message = self.message(
            (_HEADER, _header(size)), (_BODY, b"a" * part),
            *[(_BODY, b"b" * part)] * 8, (_BODY, b"c" * part))
        self.assertIn(f"{size} bytes is larger than 1000", message.unreadable)
        self.assertEqual(2 * contents.EXCERPT, len(message.body))
        self.assertEqual((b"ab", b"bc"), (
            message.body[part - 1:part + 1], message.body[-part - 1:1 - part]))

    def test_frames_that_do_not_follow_are_errors_of_the_connection(self):
        for frames in (
                [(_BODY, b"x")], [(_HEADER, _header(0))], [(_METHOD, b"x")],
                [(_METHOD, _DELIVER), (_METHOD, _DELIVER)],
                [(_METHOD, _DELIVER), (_HEADER, b"short")],
                [(_METHOD, _DELIVER), (_HEADER, _header(2)), (_BODY, b"xyz")],
                [(9, b"")]):
            self.assertRaises(amqp_exceptions.UnexpectedFrame, self.take, *frames, channel=2)
            self.assembler = contents.Assembler(
                types.SimpleNamespace(bytes_recv=0), self.fail, 1000)
