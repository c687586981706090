# SPDX-License-Identifier: Apache-2.0
"""JSON is read and written as by the standard library: the same values and the same errors."""

import decimal
import json
import time

import hypothesis
import testscenarios
from hypothesis import strategies

from placement_rpc import json_text
from tests import base

_VALUES = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.floats()
    | strategies.text(strategies.characters()),
    lambda inner: strategies.lists(inner) | strategies.dictionaries(
        strategies.text(strategies.characters()), inner))


def _read(parse, text):
    """Return the value with its types, or the type and the text of the error."""
    try:
        return repr(parse(text))
    except (ValueError, RecursionError) as error:
        return type(error), str(error)


class JsonTextTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(ascii(text[:20]), {"text": text}) for text in (
        "", "1", "-0", "-0.0", "1e400", "-1E999", "1e-400", "01", "1.", "NaN", "-Infinity", "tru",
        "[1,]", '{"a":1,"a":2}', '{"a":1,}', "{1:2}", "1 2", " [ ] ", '"\\ud800"',
        '"\\ude00\\ud83d"', '"\\ud83d\\ude00"', '"\ud800"', '"a\tb"', '"\\x"', "\ufeff1",
        "9" * 30, "9" * 5000, "9007199254740993", "18446744073709551616", "0.1",
        "4.9406564584124654e-324", "123456789012345678901234567890.5",
        "[" * 100_000, "[" * 50 + "]" * 50)]

    def test_a_text(self):
        self.assertEqual(_read(json.loads, self.text), _read(json_text.loads, self.text))


class CostTest(base.TestCase):

    def test_no_number_takes_much_longer_than_the_library_does(self):
        for number in ("1e-320", "1.5e307", "0.1", "1" * 300):
            text = f"[{', '.join([number] * 20_000)}]"
            self.assertLess(_spent(json_text.loads, text), 5 * _spent(json.loads, text), number)


def _spent(parse, text):
    """Return the least processor time of some rounds."""
    found = []
    for _ in range(3):
        began = time.process_time()
        parse(text)
        found.append(time.process_time() - began)
    return min(found)


class AnyTextTest(base.TestCase):

    @hypothesis.settings(max_examples=base.examples(300), deadline=None, derandomize=True)
    @hypothesis.given(value=_VALUES, is_ascii=strategies.booleans())
    def test_what_the_library_writes(self, value, is_ascii):
        text = json.dumps(value, ensure_ascii=is_ascii)
        self.assertEqual(_read(json.loads, text), _read(json_text.loads, text))

    @hypothesis.settings(max_examples=base.examples(300), deadline=None, derandomize=True)
    @hypothesis.given(text=strategies.text('{}[]",:0123456789.eE+-\\utrfnalsx '))
    def test_what_nobody_writes(self, text):
        self.assertEqual(_read(json.loads, text), _read(json_text.loads, text))

    @hypothesis.settings(max_examples=base.examples(300), deadline=None, derandomize=True)
    @hypothesis.given(value=strategies.dictionaries(
        strategies.text(strategies.characters()), strategies.text(strategies.characters())))
    @hypothesis.example(value={"half of a pair": "\ud800"})
    def test_texts_that_are_written(self, value):
        self.assertEqual(value, json.loads(json_text.of_texts(value)))

    @hypothesis.settings(max_examples=base.examples(300), deadline=None, derandomize=True)
    @hypothesis.given(value=_VALUES)
    @hypothesis.example(value=[float("nan"), float("inf"), -float("inf"), 1e16, 5e-324, 2 ** 70])
    @hypothesis.example(value={"a": "\ud800"})
    @hypothesis.example(value={"null": "null", "a": "\u00e4"})
    def test_values_that_are_written(self, value):
        text = json_text.written(value)
        self.assertTrue(text.isascii())
        self.assertEqual(repr(value), repr(json.loads(text)))

    def test_a_decimal_number_is_a_number(self):
        self.assertEqual("[5,1.5]", json_text.written(
            [decimal.Decimal(5), decimal.Decimal("1.5")]))

    def test_what_cannot_be_written(self):
        for value in (object(), [object()], {(1,): 2}):
            self.assertRaises(TypeError, json_text.written, value)
        deep = []
        for _ in range(100_000):
            deep = [deep]
        self.assertRaises(RecursionError, json_text.written, deep)
