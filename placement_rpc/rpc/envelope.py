# SPDX-License-Identifier: Apache-2.0
"""Calls and answers as messages, in oslo.messaging's wire format."""

import dataclasses
import json
import uuid
import zlib
from typing import Any

from kombu import compression
from oslo_messaging._drivers import common
from oslo_serialization import jsonutils

from placement_rpc import exception

# Errors of these modules are rebuilt by the receiver; any other arrives as a RemoteError.
ALLOWED_REMOTE_MODULES = [
    "placement_rpc.exception",
    "oslo_messaging.rpc.dispatcher",
    "oslo_versionedobjects.exception",
]


_ENVELOPE = {"oslo.version": "2.0"}
_CONTEXT = "_context_"
_LONGEST_NAME = 255


@dataclasses.dataclass(slots=True)
class Call:
    """A call as it was received, or as it is to be sent.

    Of a received call only ``reply_to`` and ``message_id`` are checked. Both are None for a cast,
    which is not answered. ``monitored`` is whether the client expects heartbeats while
    the call is being worked on.
    """

    method: object
    version: object
    args: object
    context: dict[str, Any]
    message_id: str | None = None
    reply_to: str | None = None
    namespace: object = None
    monitored: bool = False


def open_call(body: bytes | str, compressed: str | None = None) -> Call:
    """Return the call in a message.

    :param compressed: how the body is compressed, the message's header ``compression``
    :raises ValueError: if the message contains no call
    """
    try:
        message = _message(body, compressed)
        context = {key[len(_CONTEXT):]: value for key, value in message.items()
                   if key.startswith(_CONTEXT)}
        message_id, reply_to = message.get("_msg_id"), message.get("_reply_q")
    except _BROKEN as error:
        raise ValueError(f"no call: {error}") from None
    if not (isinstance(message_id, str) and _is_queue(reply_to)):
        message_id = reply_to = None
    return Call(message.get("method"), message.get("version", "1.0"), message.get("args", {}),
                context, message_id, reply_to, message.get("namespace"),
                bool(message.get("_timeout")))


# The errors with which reading an arbitrary body can end.
_BROKEN = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OSError, EOFError,
           zlib.error)


def _message(body, compressed):
    """Return the message in an envelope, or without one.

    :raises _BROKEN: if it is not JSON, or not compressed as declared
    """
    if compressed:
        body = compression.decompress(body, compressed)
    message = json.loads(body)
    return json.loads(message["oslo.message"]) if "oslo.message" in message else message


def _is_queue(name):
    """Return whether this can be the name of a queue on AMQP."""
    return isinstance(name, str) and len(name.encode("utf-8", "replace")) <= _LONGEST_NAME and (
        name.isprintable())


def seal_answer(call: Call, result: Any = None,
                error: exception.PlacementException | None = None, ending: bool = True) -> str:
    """Return the message of an answer.

    :param result: as it travels
    :param error: replaces the result
    :param ending: False for a heartbeat, which says only that the call is being worked on
    """
    failure = error and common.serialize_remote_exception((type(error), error, None))
    return json.dumps({**_ENVELOPE, "oslo.message": json.dumps({
        "result": result, "failure": failure, "ending": ending, "_msg_id": call.message_id,
        "_unique_id": uuid.uuid4().hex})})


def seal_call(call: Call) -> str:
    """Return the message of a call, whose context and arguments are as they travel.

    :raises ValueError: if something in it cannot be written as JSON
    """
    return json.dumps({**_ENVELOPE, "oslo.message": json.dumps({
        "method": call.method, "version": call.version, "args": call.args,
        "_msg_id": call.message_id, "_reply_q": call.reply_to, "_timeout": None,
        "_unique_id": uuid.uuid4().hex,
        **{_CONTEXT + name: value for name, value in call.context.items()},
    }, default=jsonutils.to_primitive)})


@dataclasses.dataclass(slots=True)
class Answer:
    """The answer to a call: ``result`` as it travels, or ``failure`` as the library writes it.

    ``copies`` is how many copies of the call were sent until it came.
    """

    message_id: str
    result: object
    failure: str | None
    copies: int = 1


def open_answer(body: bytes | str, compressed: str | None = None) -> Answer | None:
    """Return the answer in a message; None for a heartbeat.

    :param compressed: as of :func:`open_call`
    :raises ValueError: if the message contains no answer
    """
    try:
        message = _message(body, compressed)
        if not message.get("ending"):
            return None
        if not isinstance(message["_msg_id"], str):
            raise TypeError("the id is not a string")
        return Answer(message["_msg_id"], message.get("result"), message.get("failure"))
    except _BROKEN as error:
        raise ValueError(f"no answer: {error}") from None


def remote_error(answer: Answer, modules: list[str]) -> Exception:
    """Return the error in an answer that has a failure.

    :param modules: names of the modules whose errors may be rebuilt; an error of any other module
        is returned as an :class:`oslo_messaging.RemoteError`
    :raises ValueError: if the failure contains no error
    """
    try:
        return common.deserialize_remote_exception(answer.failure, modules)
    except _BROKEN as error:
        raise ValueError(f"no error: {error}") from None
