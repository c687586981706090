# SPDX-License-Identifier: Apache-2.0
"""What a request carries: its body and its query string, checked before anything is done."""

import json
import math
import reprlib
from urllib import parse

import jsonschema

from placement_rpc import exception
from placement_rpc.api import as_uuid
from placement_rpc.http import errors

_FORMATS = jsonschema.FormatChecker(formats=())
_MOST_PARAMETERS = 100


@_FORMATS.checks("uuid", raises=exception.InvalidInput)
def _is_uuid(value):
    return not isinstance(value, str) or bool(as_uuid("uuid", value))


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_LONGEST_MESSAGE = 1000


def compiled(schema):
    """:returns: a validator of a schema; None for no schema"""
    if schema is None:
        return None
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(_to_the_end(schema), format_checker=_FORMATS)


def _to_the_end(schema):
    """A schema whose patterns end where the text does: $ lets a line break pass in Python."""
    if isinstance(schema, dict):
        return {_end(name) if name.startswith("^") else name:
                _end(value) if name == "pattern" else _to_the_end(value)
                for name, value in schema.items()}
    return [_to_the_end(each) for each in schema] if isinstance(schema, list) else schema


def _end(pattern):
    return pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern


def check(validator, value, what):
    """:raises BadRequest: with the validator's words"""
    try:
        error = next(validator.iter_errors(value), None)
    except RecursionError:
        raise errors.BadRequest(reason=f"{what}: it is nested too deeply") from None
    if error is not None:
        raise errors.BadRequest(reason=f"{what}: {_words(error)}")


def _words(error):
    """What jsonschema says of an error, of a bounded length: it writes out whole bodies."""
    return (f"{error.message[:_LONGEST_MESSAGE]}\n\nFailed validating {error.validator!r} in "
            f"schema{_place(list(error.absolute_schema_path)[:-1])}:\n"
            f"    {_SHORT.repr(error.schema)}\n\n"
            f"On instance{_place(error.absolute_path)}:\n    {_SHORT.repr(error.instance)}")


def _place(path):
    return "".join(f"[{each if isinstance(each, int) else repr(each)[:100]}]" for each in path)


def check_content_type(req):
    """:raises BadRequest: :raises UnsupportedMediaType: for a body that is not said to be JSON"""
    given = req.content_type
    if not given:
        raise errors.BadRequest(reason="content-type header required")
    if given.partition(";")[0].strip().lower() != "application/json":
        raise errors.UnsupportedMediaType(given=given[:80])


def read(req, limit):
    """The JSON value in the body of a request.

    :param limit: int, the most bytes
    :raises BodyTooLarge: :raises BadRequest: where it is none, or names a key twice
    """
    length = req.content_length
    if length is not None and length > limit:
        raise errors.BodyTooLarge(limit=limit)
    try:
        data = req.bounded_stream.read() if length is not None else req.stream.read(limit + 1)
    except (OSError, ValueError) as error:
        # The client went away, or its chunks are none; servers have their own errors for it.
        raise errors.BadRequest(
            reason=f"The body could not be read: {type(error).__name__}") from None
    if len(data) > limit:
        raise errors.BodyTooLarge(limit=limit)
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_unique,
                          parse_constant=_refuse_constant, parse_float=_number)
    except UnicodeDecodeError:
        raise errors.BadRequest(reason="Malformed JSON: the body is not UTF-8") from None
    except RecursionError:
        raise errors.BadRequest(reason="Malformed JSON: it is nested too deeply") from None
    except ValueError as error:
        raise errors.BadRequest(reason=f"Malformed JSON: {error}") from None


def _unique(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object names a key twice")
    for key, value in pairs:
        # Half of a surrogate pair is no character, and no database takes it.
        for each in (key, value):
            if isinstance(each, str) and not each.isascii():
                _check_text(each)
    return found


def _check_text(text):
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a text has half of a surrogate pair") from None


def _refuse_constant(name):
    raise ValueError(f"{name} is no number of JSON")


def _number(text):
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large a number")
    # 2.0 is as whole as 2.
    return int(value) if value.is_integer() and abs(value) < 2 ** 53 else value


def query(req):
    """The parameters of the query string.

    :returns: dict of name to value
    :raises BadRequest: for one that is given twice, or is not UTF-8
    """
    if not req.query_string:
        return {}
    try:
        pairs = parse.parse_qsl(req.query_string, keep_blank_values=True, errors="strict",
                                max_num_fields=_MOST_PARAMETERS)
    except ValueError as error:
        raise errors.BadRequest(
            reason=f"Invalid query string parameters: {str(error)[:80]}") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise errors.BadRequest(
            reason="Invalid query string parameters: a parameter is given twice")
    return found
