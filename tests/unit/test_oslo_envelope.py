# SPDX-License-Identifier: Apache-2.0
"""The message in oslo.messaging's envelope is read if it does not exceed the limits."""

import dataclasses
import json

from hypothesis import example, given, settings
from hypothesis import strategies as st
from oslo_messaging._drivers import common

from placement_rpc import bodies, exception, oslo_envelope
from tests import base

_TEXT = st.text(st.characters()) | st.sampled_from(["\ud800", '"', "\\", "[[[", "\u00e4"])
_MESSAGE = st.dictionaries(_TEXT, st.none() | st.integers() | _TEXT | st.lists(_TEXT))


def _read(body, limits=bodies.REQUESTS):
    return oslo_envelope.opened(body, None, limits)


class OpenedTest(base.TestCase):

    @settings(max_examples=base.examples(200), deadline=None)
    @given(_MESSAGE, st.booleans(), st.booleans())
    @example({"a": "\ud800"}, False, False)
    def test_what_is_sealed_is_read(self, message, is_ascii, in_pieces):
        text = json.dumps(message, ensure_ascii=is_ascii)
        self.assertEqual(message, _read(oslo_envelope.sealed(text, in_pieces)))

    def test_the_library_reads_what_is_sealed(self):
        sealed = oslo_envelope.sealed(json.dumps({"method": "ping", "args": ["\u00e4\"\\"]}))
        self.assertEqual({"method": "ping", "args": ["\u00e4\"\\"]},
                         common.deserialize_msg(json.loads(sealed)))

    def test_what_the_library_seals_is_read(self):
        message = {"method": "ping", "args": ["\u00e4\"\\"]}
        sealed = json.dumps(common.serialize_msg(message))
        self.assertEqual(message, _read(sealed))
        self.assertEqual(message, _read(sealed.encode()))

    def test_any_form_of_the_envelope(self):
        inner = json.dumps({"a": [1]})
        for outer in (
                {"oslo.message": inner}, {"oslo.version": 2, "oslo.message": inner},
                {"oslo.message": inner, "oslo.version": "2.0", "more": [{"x": None}]},
                {"oslo.version": None, "oslo.message": inner}):
            self.assertEqual({"a": [1]}, _read(json.dumps(outer, indent=1)))
        self.assertEqual({"a": [1]}, _read(
            '{"oslo.message": "5", "oslo.version": "1", "oslo.message": "{\\"a\\": [1]}"}'))

    def test_no_envelope(self):
        self.assertEqual({"a": [1]}, _read('{"a": [1]}'))

    def test_what_is_no_message(self):
        for body in (
                "", "{", "5", "[]", b"\xff", '{"oslo.message": 5}', '{"oslo.message": {}}',
                '{"oslo.message": null}', '{"oslo.message": "{", "oslo.version": "2.0"}',
                '{"oslo.message": "[]", "oslo.version": "2.0"}',
                b'{"oslo.message": "\xff", "oslo.version": "2.0"}',
                '{"oslo.message": "{}", "oslo.version": "2.0"} {}'):
            self.assertRaises(ValueError, _read, body)

    def test_the_limits_are_those_of_the_message(self):
        for message, limit in (({"a": "x" * 100}, {"size": 100}), ({"a": [[[]]]}, {"depth": 3}),
                               ({"a": [1, 2, 3]}, {"elements": 3})):
            limits = dataclasses.replace(bodies.REQUESTS, **limit)
            self.assertRaises(exception.MessageTooLarge, _read, oslo_envelope.sealed(
                json.dumps(message)), limits)

    def test_what_else_is_in_the_envelope_may_not_be_deep_either(self):
        deep = "[" * 65 + "]" * 65
        for more in f'"oslo.version": {deep}', f'"oslo.version": "2.0", "more": {deep}':
            self.assertRaises(
                exception.MessageTooLarge, _read, f'{{{more}, "oslo.message": "{{}}"}}')
