# SPDX-License-Identifier: Apache-2.0
"""Bodies of requests: read and validated before anything is changed."""

import dataclasses
import math
import reprlib

import jsonschema

from placement_rpc import exception
from placement_rpc.api import as_uuid
from placement_rpc.bodies import Limits, parsed
from placement_rpc.http import errors

_FORMATS = jsonschema.FormatChecker(formats=())
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_MAX_MESSAGE = 1000


@_FORMATS.checks("uuid", raises=exception.InvalidInput)
def _is_uuid(value):
    return not isinstance(value, str) or bool(as_uuid("uuid", value))


def compiled(schema):
    """Return a validator for a schema; None for None."""
    if schema is None:
        return None
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(_anchored(schema), format_checker=_FORMATS)


def _anchored(schema):
    """Replace ``$`` in the patterns of a schema: in Python it also matches before a line break."""
    if isinstance(schema, dict):
        return {_end(name) if name.startswith("^") else name:
                _end(value) if name == "pattern" else _anchored(value)
                for name, value in schema.items()}
    return [_anchored(each) for each in schema] if isinstance(schema, list) else schema


def _end(pattern):
    return pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern


def check(validator, value, what):
    """Validate a value.

    :param what: str, the beginning of the error's text
    :raises BadRequest: with jsonschema's message, if the value is not valid
    """
    try:
        error = next(validator.iter_errors(value), None)
    except RecursionError:
        raise errors.BadRequest(reason=f"{what}: it is nested too deeply") from None
    if error is not None:
        raise errors.BadRequest(reason=f"{what}: {_message(error)}")


def _message(error):
    """Return jsonschema's message for an error, shortened: it would repeat the whole body."""
    # The patterns as they are in the schema.
    message = error.message.replace(repr(r"\Z")[1:-1] + "'", "$'")
    return (f"{message[:_MAX_MESSAGE]}\n\nFailed validating {error.validator!r} in "
            f"schema{_place(list(error.absolute_schema_path)[:-1])}:\n"
            f"    {_SHORT.repr(error.schema)}\n\n"
            f"On instance{_place(error.absolute_path)}:\n    {_SHORT.repr(error.instance)}")


def _place(path):
    return "".join(f"[{each if isinstance(each, int) else repr(each)[:100]}]" for each in path)


def check_content_type(req):
    """Check that a body is declared to be JSON.

    :raises BadRequest: if the request has a body and no content type
    :raises UnsupportedMediaType: if the content type is another, or there is neither
    """
    given = req.content_type
    if not given and req.content_length:
        raise errors.BadRequest(reason="content-type header required")
    given = given or "None"
    if given.partition(";")[0].strip().lower() != "application/json":
        raise errors.UnsupportedMediaType(given=given[:80])


def limits(conf):
    """Return the limits of request bodies: ``[api] max_body``, and those of calls.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    """
    return dataclasses.replace(Limits.of_requests(conf), size=conf.api.max_body)


def read(req, limits):
    """Return the JSON value in the body of a request.

    :param limits: :class:`placement_rpc.bodies.Limits`
    :raises BodyTooLarge: if the body is larger
    :raises MessageTooLarge: if it has too many elements
    :raises BadRequest: if it cannot be read, is not valid JSON, or repeats a key in an object
    """
    length, limit = req.content_length, limits.size
    if length is not None and length > limit:
        raise errors.BodyTooLarge(limit=limit)
    try:
        data = req.bounded_stream.read() if length is not None else req.stream.read(limit + 1)
    except (OSError, ValueError) as error:
        # The client disconnected or sent malformed chunks. Each WSGI server raises its own errors.
        raise errors.BadRequest(
            reason=f"The body could not be read: {type(error).__name__}") from None
    if len(data) > limit:
        raise errors.BodyTooLarge(limit=limit)
    try:
        return parsed(data, limits, object_pairs_hook=_unique,
                      parse_constant=_refuse_constant, parse_float=_number)
    except UnicodeDecodeError:
        raise errors.BadRequest(reason="Malformed JSON: the body is not UTF-8") from None
    except exception.MessageTooLarge as error:
        if error.kwargs["unit"] != "levels":
            raise
        raise errors.BadRequest(reason="Malformed JSON: it is nested too deeply") from None
    except ValueError as error:
        raise errors.BadRequest(reason=f"Malformed JSON: {error}") from None


def _unique(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object names a key twice")
    for key, value in pairs:
        # A lone surrogate is not a character, and no database stores it.
        for each in (key, value):
            if isinstance(each, str) and not each.isascii():
                _check_text(each)
    return found


def _check_text(text):
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a text contains a lone surrogate") from None


def _refuse_constant(name):
    raise ValueError(f"{name} is not a JSON number")


def _number(text):
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is too large")
    # JSON schema counts 2.0 as an integer.
    return int(value) if value.is_integer() and abs(value) < 2 ** 53 else value
