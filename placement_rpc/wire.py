# SPDX-License-Identifier: Apache-2.0
"""oslo.messaging's wire format of a call and of its answer, for a server of our own.

Envelope 2.0: JSON with the message as JSON text in it. Of the message's keys, those that begin
with ``_context_`` are the context, and ``_msg_id`` and ``_reply_q`` say where an answer goes.
"""

import dataclasses
import json
import uuid

from oslo_messaging._drivers import common

_ENVELOPE = {"oslo.version": "2.0"}
_CONTEXT = "_context_"


@dataclasses.dataclass(slots=True)
class Call:
    """A call as it came.

    ``reply_to`` is None for a cast, which nobody waits for.
    """

    method: object
    version: object
    args: object
    context: dict
    message_id: str | None
    reply_to: str | None


def opened(body):
    """The call in a message.

    :param body: bytes or str
    :returns: :class:`Call`
    :raises ValueError: when there is none in it
    """
    try:
        message = json.loads(body)
        if "oslo.message" in message:
            message = json.loads(message["oslo.message"])
        context = {key[len(_CONTEXT):]: value for key, value in message.items()
                   if key.startswith(_CONTEXT)}
        message_id, reply_to = message.get("_msg_id"), message.get("_reply_q")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no call: {error}") from None
    if not (isinstance(message_id, str) and isinstance(reply_to, str)):
        message_id = reply_to = None
    return Call(message.get("method"), message.get("version", "1.0"), message.get("args", {}),
                context, message_id, reply_to)


def sealed(call, result=None, error=None):
    """The message of an answer.

    :param call: :class:`Call`
    :param result: the result, as it travels
    :param error: the PlacementException instead of a result
    :returns: str
    """
    failure = error and common.serialize_remote_exception((type(error), error, None))
    return json.dumps({**_ENVELOPE, "oslo.message": json.dumps({
        "result": result, "failure": failure, "ending": True, "_msg_id": call.message_id,
        "_unique_id": uuid.uuid4().hex})})
