# SPDX-License-Identifier: Apache-2.0
"""Bodies of messages: bounded in size, depth and elements before anything is built of them."""

import bz2
import contextlib
import dataclasses
import json
import lzma
import time
import tracemalloc
import zlib

import fixtures
from hypothesis import given, settings
from hypothesis import strategies as st

from placement_rpc import bodies, exception
from placement_rpc import conf as configuration
from placement_rpc.rpc import envelope
from tests import base

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(
        ['"', "\\", "[[", "]]", "{", "}", '\\"', ",,"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=40)


def _depth(value):
    children = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max(map(_depth, children), default=0)


def _values(value):
    children = value.values() if isinstance(value, dict) else value
    return 1 + sum(map(_values, children)) if isinstance(value, (dict, list)) else 1


def _seconds(call, *arguments):
    """Return the processor time of a call, however it ends."""
    began = time.thread_time()
    with contextlib.suppress(ValueError):
        call(*arguments)
    return time.thread_time() - began


class LimitsTest(base.TestCase):

    def refused(self, unit, text, **limits):
        error = self.assertRaises(
            exception.MessageTooLarge, bodies.parsed, text,
            dataclasses.replace(bodies.REQUESTS, **limits))
        self.assertEqual(unit, error.kwargs["unit"])

    @settings(max_examples=base.examples(200), deadline=None)
    @given(_JSON, st.booleans())
    def test_the_depth_is_that_of_the_value(self, value, escaped):
        text, depth = json.dumps(value, ensure_ascii=escaped), _depth(value)
        self.assertEqual(value, bodies.parsed(text, dataclasses.replace(
            bodies.REQUESTS, depth=depth)))
        # Below the number of brackets the depth is counted exactly.
        if depth > 1:
            self.refused("levels", text, depth=depth - 1)

    @settings(max_examples=base.examples(100), deadline=None)
    @given(_JSON)
    def test_no_text_has_more_values_than_are_counted(self, value):
        values = _values(value)
        if values > 2:
            # An empty list is counted as one element and one value; a list of one counts as one.
            self.refused("elements", json.dumps(value), elements=values // 2 - 1)

    def test_elements_are_counted_by_brackets_and_commas(self):
        for text, number in ("[1,2]", 2), ("[[[[", 4), ("{}", 1), (",,,", 3), ('["a,b"]', 2):
            dataclasses.replace(bodies.REQUESTS, elements=number).check(text.encode())
            self.refused("elements", text, elements=number - 1)

    def test_size(self):
        self.assertEqual("abc", bodies.parsed('"abc"', dataclasses.replace(
            bodies.REQUESTS, size=5)))
        self.refused("bytes", '"abcd"', size=5)
        self.refused("bytes", b'"abcd"', size=5)

    def test_what_is_no_json_is_an_error_of_the_text(self):
        for text in ("", "[", "]", "]" * 1000, "[}", '{"a":}', '"' * 1000, "\\" * 1000,
                     b"\xff\xfe", '["\\"]', "1" * 5000, "[" * 60):
            self.assertRaises(ValueError, bodies.parsed, text, bodies.REQUESTS)

    def test_a_number_of_any_length_costs_little(self):
        self.assertRaises(ValueError, bodies.parsed, "9" * 4_000_000, bodies.REQUESTS)

    def test_refusing_costs_a_part_of_parsing(self):
        """20 MB of empty lists stopped every other thread for 2.7 s."""
        long = ("[" + ",".join(["[]"] * 7_000_000) + "]").encode()
        dense = ("[" + ",".join(["[]"] * 1_300_000) + "]").encode()
        deep = ("[" + ",".join(["[" * 60 + "1" + "]" * 60] * 3000) + "]").encode()
        limits = dataclasses.replace(bodies.REQUESTS, depth=16)
        parsing = _seconds(json.loads, dense)
        for text in (long, dense):
            self.assertRaises(exception.MessageTooLarge, bodies.parsed, text, limits)
            self.assertLess(_seconds(bodies.parsed, text, limits), parsing / 5)
        self.refused("levels", deep, depth=16)
        self.assertLess(_seconds(bodies.parsed, deep, limits), _seconds(json.loads, deep))

    def test_they_are_options(self):
        conf = configuration.new_config(
            config_files=[], messages__max_request=70_000, messages__max_answer=80_000,
            messages__max_request_elements=2000, messages__max_answer_elements=3000,
            messages__max_depth=20, messages__compressions=["lzma"])
        lzma_only = frozenset(["application/x-lzma"])
        self.assertEqual(bodies.Limits(70_000, 2000, 20, lzma_only),
                         bodies.Limits.of_requests(conf))
        self.assertEqual(bodies.Limits(80_000, 3000, 20, lzma_only),
                         bodies.Limits.of_answers(conf))

    def test_the_defaults_of_the_options(self):
        conf = configuration.new_config(config_files=[])
        self.assertEqual(bodies.REQUESTS, bodies.Limits.of_requests(conf))
        self.assertEqual(bodies.ANSWERS, bodies.Limits.of_answers(conf))
        self.assertEqual((4 * 2 ** 20, 64 * 2 ** 20), (bodies.REQUESTS.size, bodies.ANSWERS.size))


class WritingTest(base.TestCase):

    @settings(max_examples=base.examples(100), deadline=None)
    @given(_JSON | st.lists(_JSON, min_size=1, max_size=3).map(lambda some: some * 120)
           | st.dictionaries(st.integers() | st.none() | st.booleans(), _JSON))
    def test_it_writes_the_same(self, value):
        text = json.dumps(value)
        self.assertEqual(text, bodies.written_in_pieces(value))
        self.assertEqual(json.dumps(text), bodies.quoted(text))

    def test_what_no_json_has(self):
        for value in (object(), [object()], [0] * 100 + [{1}], {(1,): 2}):
            self.assertRaises(TypeError, bodies.written_in_pieces, value)

    def test_no_part_of_a_long_list_takes_long(self):
        """Other threads run between the parts."""
        entry = {"placement_object.name": "ResourceProvider", "placement_object.data": {
            "uuid": base.new_uuid(), "name": "node", "free": {"VCPU": 1, "MEMORY_MB": 5}}}
        self.check_parts({"objects": [entry] * 30_000})

    def test_long_texts_are_written_one_by_one(self):
        self.check_parts({"body": ["{", *['"' + "x" * 100_000] * 60]})

    def check_parts(self, data):
        value = {"placement_object.data": data}
        longest = []
        dumps = json.dumps

        def measured(value, **how):
            text = dumps(value, **how)
            longest.append(len(text))
            return text

        self.useFixture(fixtures.MonkeyPatch("json.dumps", measured))
        text = bodies.quoted(bodies.written_in_pieces(value))
        self.assertGreater(len(text), 4_000_000)
        self.assertLess(max(longest), 500_000)
        self.assertEqual(dumps(dumps(value)), text)

    def test_an_answer_in_pieces_is_the_same(self):
        call = envelope.Call("ping", "1.0", {}, {}, "0a1b", "reply_1")
        result = [{"a": "\u00e4\""}] * 1000
        self.assertEqual(
            envelope.open_answer(envelope.seal_answer(call, result)),
            envelope.open_answer(envelope.seal_answer(call, result, in_pieces=True)))


class CompressionTest(base.TestCase):

    def test_every_name_of_what_is_accepted(self):
        for compress, names in ((zlib.compress, ("application/x-gzip", "gzip", "zlib")),
                                (bz2.compress, ("application/x-bz2", "bzip2", "bzip"))):
            for name in names:
                self.assertEqual(b"body" * 99, bodies.decompressed(
                    compress(b"body" * 99), name, bodies.REQUESTS))
        for none in (None, ""):
            self.assertEqual(b"body", bodies.decompressed(b"body", none, bodies.REQUESTS))

    def test_others_are_refused_unless_configured(self):
        packed = lzma.compress(b"body")
        for name in ("lzma", "application/x-lzma", "application/zstd", "?", 5, b"gzip", ["gzip"],
                     {}, True):
            self.assertRaises(ValueError, bodies.decompressed, packed, name, bodies.REQUESTS)
        limits = dataclasses.replace(
            bodies.REQUESTS, compressions=frozenset(["application/x-lzma"]))
        self.assertEqual(b"body", bodies.decompressed(packed, "lzma", limits))

    def test_what_is_not_compressed_as_declared(self):
        whole = {"gzip": zlib.compress(b"body" * 99), "bz2": bz2.compress(b"body" * 99)}
        for name, packed in whole.items():
            for body in (b"", b"junk", packed[:-5], packed + b"more", packed[10:]):
                self.assertRaises(ValueError, bodies.decompressed, body, name, bodies.REQUESTS)

    def test_a_bomb_takes_no_more_than_the_limit(self):
        """2,260 bytes of bz2 took 2.15 GB."""
        bombs = {name: module.compress(bytes(100_000_000))
                 for name, module in (("bz2", bz2), ("gzip", zlib), ("lzma", lzma))}
        limits = dataclasses.replace(bodies.REQUESTS, compressions=frozenset(bodies.COMPRESSIONS))
        for name, bomb in bombs.items():
            tracemalloc.start()
            try:
                self.assertRaises(
                    exception.MessageTooLarge, bodies.decompressed, bomb, name, limits)
                _, most = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            self.assertLess(most, 100 * 2 ** 20 if name == "lzma" else 5 * limits.size, name)


class UnreadableCallTest(base.TestCase):
    """Who is to be answered if nobody may read the message."""

    def refused(self, body, compressed=None):
        return self.assertRaises(envelope.UnreadableCall, envelope.open_call, body, compressed)

    def call(self, text, **values):
        return envelope.seal_call(
            envelope.Call("ping", "1.0", {"text": text}, {}, "0a1b", "reply_1"),
            dataclasses.replace(bodies.REQUESTS, size=10 ** 9, elements=10 ** 9, depth=10 ** 9))

    def library(self, text):
        """A call as the library writes it, with the sender at the end."""
        return json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(
            {"method": "ping", "args": {"text": text}, "_msg_id": "0a1b", "_reply_q": "reply_1",
             "_timeout": None})})

    def test_the_sender_is_known(self):
        deep = []
        for _ in range(70):
            deep = [deep]
        for text in ("x" * 5_000_000, [[]] * 200_000, deep):
            for body in (self.call(text), self.library(text)):
                error = self.refused(body)
                self.assertEqual(("0a1b", "reply_1"),
                                 (error.caller.message_id, error.caller.reply_to))
                self.assertIsInstance(error.error, exception.MessageTooLarge)

    def test_also_of_what_is_compressed(self):
        for pack, name in ((zlib.compress, "gzip"), (bz2.compress, "bz2")):
            error = self.refused(pack(self.call("x" * 5_000_000).encode()), name)
            self.assertEqual("reply_1", error.caller.reply_to)
            self.assertIsInstance(error.error, exception.MessageTooLarge)

    def test_a_message_that_does_not_say(self):
        for body in ("", "[]", "x" * 5_000_000, '{"_msg_id": "a"}x', '{"_reply_q": "a"}x'):
            self.assertIsNone(self.refused(body).caller)
        self.assertIsNone(self.refused(b"junk", "gzip").caller)
        self.assertIsNone(self.refused(b"junk", "lzma").caller)

    def test_a_client_sends_nothing_larger(self):
        error = self.assertRaises(exception.MessageTooLarge, envelope.seal_call, envelope.Call(
            "ping", "1.0", {"text": "x" * 5_000_000}, {}, "0a1b", "reply_1"))
        self.assertEqual(("bytes", bodies.REQUESTS.size),
                         (error.kwargs["unit"], error.kwargs["limit"]))

    def test_a_server_answers_nothing_larger(self):
        limits = dataclasses.replace(bodies.ANSWERS, size=1000)
        call = envelope.Call("ping", "1.0", {}, {}, "0a1b", "reply_1")
        self.assertRaises(
            exception.AnswerTooLarge, envelope.seal_answer, call, "x" * 1000, limits=limits)
        # Each quotation mark takes two characters more in the envelope.
        for result, limit in (("\"" * 300, {"size": 1000}), ([[]] * 50, {"elements": 50}),
                              ([[[[]]]], {"depth": 4})):
            limited = dataclasses.replace(bodies.ANSWERS, **limit)
            for in_pieces in (False, True):
                self.assertRaises(exception.AnswerTooLarge, envelope.seal_answer, call, result,
                                  limits=limited, in_pieces=in_pieces)
        body = envelope.seal_answer(call, "x" * 1000)
        error = self.assertRaises(
            envelope.UnreadableAnswer, envelope.open_answer, body, None, limits)
        self.assertEqual("0a1b", error.message_id)
        self.assertIsInstance(error.error, exception.AnswerTooLarge)
