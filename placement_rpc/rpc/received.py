# SPDX-License-Identifier: Apache-2.0
"""Messages of a request queue: the call in one, and the answer to one that is rejected."""

import logging
import uuid
from typing import Any

from placement_rpc import bodies, exception
from placement_rpc.amqp.consumer import body_of
from placement_rpc.rpc import envelope

LOG = logging.getLogger(__name__)


def call_of(message: Any, limits: bodies.Limits) -> envelope.Call:
    """Return the call in a message.

    :raises Exception: of any kind, if the message cannot be read
    """
    limits.check_size(message.body_size)
    return envelope.open_call(body_of(message), _compression(message), limits)


def answer_to(message: Any, error: Exception,
              limits: bodies.Limits) -> tuple[str | None, str] | None:
    """Return the answer to a message that is rejected; the message is not parsed for it.

    :param error: why it is rejected
    :param limits: of the bodies of calls
    :returns: the queue of the client and the body of the answer; None if the message does not say
        who sent it
    """
    caller = _caller(message, limits)
    if isinstance(error, envelope.UnreadableCall):
        caller, error = error.caller or caller, error.error
    if caller is None:
        return None
    if not isinstance(error, exception.PlacementException):
        error = exception.InvalidInput(
            what="message", reason=str(error)[:500] or type(error).__name__)
    return caller.reply_to, envelope.seal_answer(caller, error=error)


def refused(call: envelope.Call, error: Exception
            ) -> tuple[envelope.Call, str, str]:
    """Return a call that an error ended, the body of its answer, and the error's code."""
    error = expected(call.method, error)
    error.__cause__ = error.__context__ = None
    return call, envelope.seal_answer(call, error=error.with_traceback(None)), error.code


def overloaded(call: envelope.Call, reason: str, retry_after: float) -> str:
    """Return the body of the answer to a call that is refused because its client has too many.

    :class:`~placement_rpc.exception.ServiceOverloaded` travels as its base class, which clients of
    every release know and retry; ``retry_after`` distinguishes the two.

    :param retry_after: seconds
    """
    return envelope.seal_answer(call, error=exception.ServiceUnavailable(
        reason=reason, retry_after=retry_after))


def expected(method: object, error: Exception) -> exception.PlacementException:
    """Return an error of this project; any other is logged as an incident."""
    if isinstance(error, exception.PlacementException):
        return error
    incident, named = str(uuid.uuid4()), str(method)[:64]
    LOG.error("Incident %s: %s failed", incident, named, exc_info=error)
    return exception.RemoteFailure(method=named, incident=incident)


def _compression(message):
    return (message.headers or {}).get("compression")


def _caller(message, limits):
    properties = message.properties
    named = envelope.caller(properties.get("correlation_id"), properties.get("reply_to"))
    return named or envelope.caller_of(message.body, _compression(message), limits)
