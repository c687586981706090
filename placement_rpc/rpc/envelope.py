# SPDX-License-Identifier: Apache-2.0
"""The bus: transports, what is put on it, and a server that takes in no more than it can do."""

import dataclasses
import json
import uuid
import zlib

from kombu import compression
from oslo_messaging._drivers import common
from oslo_serialization import jsonutils

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
    """A call as it came.

    ``reply_to`` is None for a cast, which nobody waits for; ``monitored`` tells that whoever waits
    wants to hear meanwhile that it is worked on.
    """

    method: object
    version: object
    args: object
    context: dict
    message_id: str | None = None
    reply_to: str | None = None
    namespace: object = None
    monitored: bool = False


def open_call(body, compressed=None):
    """The call in a message.

    :param body: bytes or str
    :param compressed: str, how the body is, as the message's header ``compression`` says
    :returns: :class:`Call`
    :raises ValueError: when there is none in it
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


# What reading something that is no message ends with.
_BROKEN = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OSError, EOFError,
           zlib.error)


def _message(body, compressed):
    """:returns: what is in the envelope; :raises: one of :data:`_BROKEN`"""
    if compressed:
        body = compression.decompress(body, compressed)
    message = json.loads(body)
    return json.loads(message["oslo.message"]) if "oslo.message" in message else message


def _is_queue(name):
    """:returns: bool, whether AMQP can name a queue so"""
    return isinstance(name, str) and len(name.encode("utf-8", "replace")) <= _LONGEST_NAME and (
        name.isprintable())


def seal_answer(call, result=None, error=None, ending=True):
    """The message of an answer.

    :param call: :class:`Call`
    :param result: the result, as it travels
    :param error: the PlacementException instead of a result
    :param ending: bool; False for one that says only that the call is worked on
    :returns: str
    """
    failure = error and common.serialize_remote_exception((type(error), error, None))
    return json.dumps({**_ENVELOPE, "oslo.message": json.dumps({
        "result": result, "failure": failure, "ending": ending, "_msg_id": call.message_id,
        "_unique_id": uuid.uuid4().hex})})


def seal_call(call):
    """The message of a call.

    :param call: :class:`Call`, its context and its arguments as they travel
    :returns: str
    :raises ValueError: when there is something in it that cannot be written down
    """
    return json.dumps({**_ENVELOPE, "oslo.message": json.dumps({
        "method": call.method, "version": call.version, "args": call.args,
        "_msg_id": call.message_id, "_reply_q": call.reply_to, "_timeout": None,
        "_unique_id": uuid.uuid4().hex,
        **{_CONTEXT + name: value for name, value in call.context.items()},
    }, default=jsonutils.to_primitive)})


@dataclasses.dataclass(slots=True)
class Answer:
    """The answer to a call: ``result`` as it travels, or ``failure``, a text of the library's."""

    message_id: str
    result: object
    failure: str | None


def open_answer(body, compressed=None):
    """The answer in a message.

    :param body: bytes or str
    :param compressed: str, as of :func:`opened`
    :returns: :class:`Answer`; None for a message that says only that a call is worked on
    :raises ValueError: when there is none in it
    """
    try:
        message = _message(body, compressed)
        if not message.get("ending"):
            return None
        if not isinstance(message["_msg_id"], str):
            raise TypeError("the id is no text")
        return Answer(message["_msg_id"], message.get("result"), message.get("failure"))
    except _BROKEN as error:
        raise ValueError(f"no answer: {error}") from None


def remote_error(answer, modules):
    """The error that an answer tells of.

    :param answer: :class:`Answer` with a failure
    :param modules: list of str, the modules whose errors may be made anew
    :returns: Exception; an :class:`oslo_messaging.RemoteError` for one of another module
    :raises ValueError: when it tells of none
    """
    try:
        return common.deserialize_remote_exception(answer.failure, modules)
    except _BROKEN as error:
        raise ValueError(f"no error: {error}") from None
