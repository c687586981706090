# SPDX-License-Identifier: Apache-2.0
"""Calls and answers as messages, in oslo.messaging's wire format."""

import dataclasses
import json
import re
import uuid
from typing import Any

from oslo_messaging._drivers import common
from oslo_serialization import jsonutils

from placement_rpc import bodies, exception, json_text, oslo_envelope

# Errors of these modules are rebuilt by the receiver; any other arrives as a RemoteError.
ALLOWED_REMOTE_MODULES = [
    "placement_rpc.exception",
    "oslo_messaging.rpc.dispatcher",
    "oslo_versionedobjects.exception",
]


_CONTEXT = "_context_"
_LONGEST_NAME = 255
# Bytes at the beginning and at the end of a body in which the sender of a call is looked for: this
# project's clients write it first, and those of the library last.
_ENDS = 64 * 1024
# Within a string the quotation marks are escaped.
_MESSAGE_ID = re.compile(rb'_msg_id\\*"\s*:\s*\\*"([0-9A-Za-z-]{1,64})\\*"')
_REPLY_QUEUE = re.compile(rb'_reply_q\\*"\s*:\s*\\*"([0-9A-Za-z_.-]{1,255})\\*"')


class UnreadableCall(ValueError):
    """A message that contains no call, or exceeds a limit.

    :ivar caller: a :class:`Call` with which its sender can be answered; None if the message does
        not say who that is, or expects no answer
    :ivar error: the error to answer with
    """

    def __init__(self, caller: "Call | None", error: exception.PlacementException) -> None:
        super().__init__(error.text)
        self.caller = caller
        self.error = error


class UnreadableAnswer(ValueError):
    """A message that contains no answer, or exceeds a limit.

    :ivar message_id: of the call that it answers; None if it does not say
    :ivar error: for the caller
    """

    def __init__(self, message_id: str | None, error: exception.PlacementException) -> None:
        super().__init__(error.text)
        self.message_id = message_id
        self.error = error


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


def open_call(body: bytes | str, compressed: object = None,
              limits: bodies.Limits = bodies.REQUESTS) -> Call:
    """Return the call in a message.

    :param compressed: how the body is compressed, the message's header ``compression``
    :raises UnreadableCall: if the message contains no call, or exceeds the limits
    """
    try:
        message = oslo_envelope.opened(body, compressed, limits)
        context = {key[len(_CONTEXT):]: value for key, value in message.items()
                   if key.startswith(_CONTEXT)}
    except _BROKEN as error:
        raise UnreadableCall(
            caller_of(body, compressed, limits), _refusal("call", error)) from None
    message_id, reply_to = message.get("_msg_id"), message.get("_reply_q")
    if not isinstance(message.get("method"), str):
        raise UnreadableCall(caller(message_id, reply_to), _refusal(
            "call", "it names no method")) from None
    if not (isinstance(message_id, str) and _is_queue(reply_to)):
        message_id = reply_to = None
    return Call(message["method"], message.get("version", "1.0"), message.get("args", {}),
                context, message_id, reply_to, message.get("namespace"),
                bool(message.get("_timeout")))


# The errors with which reading an arbitrary body can end.
_BROKEN = (ValueError, TypeError, LookupError, AttributeError, RecursionError, MemoryError)


def _refusal(what, error):
    """Return the error for the sender of a message that cannot be read."""
    if isinstance(error, exception.PlacementException):
        return error
    return exception.InvalidInput(
        what=what, reason=f"it cannot be read: {str(error) or type(error).__name__}"[:500])


def caller_of(body: bytes | str, compressed: object, limits: bodies.Limits) -> Call | None:
    """Return a call with which the sender of an unreadable one can be answered; None if unknown.

    Nothing is parsed, and no more than the ends of the body are read.
    """
    ends = _ends(body, compressed, limits)
    message_id, reply_to = _MESSAGE_ID.search(ends), _REPLY_QUEUE.search(ends)
    if message_id is None or reply_to is None:
        return None
    return caller(message_id[1].decode(), reply_to[1].decode())


def _ends(body, compressed, limits):
    if compressed:
        return bodies.beginning(body, compressed, limits, _ENDS)
    data = bodies.as_bytes(body)
    return data if len(data) <= 2 * _ENDS else data[:_ENDS] + b" " + data[-_ENDS:]


def caller(message_id: object, reply_to: object) -> Call | None:
    """Return a call with which the sender of a message can be answered; None if there is none."""
    if isinstance(message_id, str) and message_id and reply_to and _is_queue(reply_to):
        return Call(None, None, {}, {}, message_id, str(reply_to))
    return None


def _is_queue(name):
    """Return whether this can be the name of a queue on AMQP."""
    return isinstance(name, str) and len(name.encode("utf-8", "replace")) <= _LONGEST_NAME and (
        name.isprintable())


def seal_answer(call: Call, result: Any = None,
                error: exception.PlacementException | None = None, ending: bool = True,
                limits: bodies.Limits = bodies.ANSWERS, in_pieces: bool = False) -> str:
    """Return the message of an answer.

    :param result: as it travels
    :param error: replaces the result
    :param ending: False for a heartbeat, which says only that the call is being worked on
    :param in_pieces: whether to let other threads run meanwhile; it takes longer
    :raises AnswerTooLarge: if it exceeds the limits
    """
    failure = error and common.serialize_remote_exception((type(error), error, None))
    head = json.dumps({"_msg_id": call.message_id, "_unique_id": uuid.uuid4().hex,
                       "failure": failure, "ending": ending})
    # Apart from the rest: "failure" is null in most answers, and json_text.written would leave the
    # whole to the standard library.
    text = bodies.written_in_pieces(result) if in_pieces else json_text.written(result)
    try:
        return _sealed(f'{head[:-1]}, "result": {text}}}', limits, in_pieces)
    except exception.MessageTooLarge as refused:
        raise exception.AnswerTooLarge(method=str(call.method)[:64], **refused.kwargs) from None


def seal_call(call: Call, limits: bodies.Limits = bodies.REQUESTS) -> str:
    """Return the message of a call, whose context and arguments are as they travel.

    :raises MessageTooLarge: if it exceeds the limits
    :raises ValueError: if something in it cannot be written as JSON
    """
    return _sealed(json.dumps({
        # First, so that a server that refuses to read all of it knows who to answer.
        "_msg_id": call.message_id, "_reply_q": call.reply_to, "_timeout": None,
        "_unique_id": uuid.uuid4().hex,
        "method": call.method, "version": call.version, "args": call.args,
        **{_CONTEXT + name: value for name, value in call.context.items()},
    }, default=jsonutils.to_primitive), limits)


def _sealed(text, limits, in_pieces=False):
    """Return a message in its envelope.

    :param text: in ASCII, so that characters are bytes
    """
    limits.check(text.encode())
    sealed = oslo_envelope.sealed(text, in_pieces)
    limits.check_size(len(sealed))
    return sealed


@dataclasses.dataclass(slots=True)
class Answer:
    """The answer to a call: ``result`` as it travels, or ``failure`` as the library writes it.

    ``copies`` is how many copies of the call were sent until it came, and ``seconds`` the time
    since the first.
    """

    message_id: str
    result: object
    failure: str | None
    copies: int = 1
    seconds: float = 0.0


def open_answer(body: bytes | str, compressed: object = None,
                limits: bodies.Limits = bodies.ANSWERS) -> Answer | None:
    """Return the answer in a message; None for a heartbeat.

    :param compressed: as of :func:`open_call`
    :raises UnreadableAnswer: if the message contains no answer, or exceeds the limits
    """
    try:
        message = oslo_envelope.opened(body, compressed, limits)
        if not message.get("ending"):
            return None
        if not isinstance(message["_msg_id"], str):
            raise TypeError("the id is not a string")
        return Answer(message["_msg_id"], message.get("result"), message.get("failure"))
    except exception.MessageTooLarge as error:
        raise UnreadableAnswer(_answered(body, compressed, limits), exception.AnswerTooLarge(
            method="the call", **error.kwargs)) from None
    except _BROKEN as error:
        raise UnreadableAnswer(
            _answered(body, compressed, limits), _refusal("answer", error)) from None


def unreadable_answer(body: bytes, error: Exception) -> UnreadableAnswer:
    """Return the error for a message whose properties cannot be parsed, or that is too large.

    :param body: its beginning
    :param error: what is wrong with it
    """
    if isinstance(error, exception.MessageTooLarge):
        error = exception.AnswerTooLarge(method="the call", **error.kwargs)
    return UnreadableAnswer(_answered(body, None, bodies.ANSWERS), _refusal("answer", error))


def _answered(body, compressed, limits):
    """Return the id of the call that an unreadable answer belongs to; None if unknown."""
    found = _MESSAGE_ID.search(_ends(body, compressed, limits))
    return found and found[1].decode()


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
