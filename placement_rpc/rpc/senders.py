# SPDX-License-Identifier: Apache-2.0
"""One attempt at a call: over RabbitMQ, or in this process."""

import functools
import time
from typing import Any

import oslo_messaging
from oslo_config import cfg
from oslo_messaging.rpc import dispatcher as rpc_dispatcher

from placement_rpc import exception
from placement_rpc.amqp.broker import Broker
from placement_rpc.context import RequestContext, versions_of
from placement_rpc.rpc import envelope, routing
from placement_rpc.rpc.dispatcher import Dispatcher
from placement_rpc.rpc.repeats import Repeats
from placement_rpc.rpc.reply_connection import ReplyConnection, Unroutable
from placement_rpc.rpc.serializer import Serializer
from placement_rpc.rpc.tracing import Tracing

#: Errors with which a server refuses a call for a reason of its own, and that of a client that was
#: closed: at another server, or earlier, the same call may have succeeded.
NOTHING_DONE = (exception.RequestExpired, exception.ServiceTooOld, exception.UnsupportedCall,
                exception.IncompatibleObjectVersion, exception.StoreHeld, exception.ClientClosed)


class RabbitSender:
    """Makes calls over RabbitMQ, on one connection.

    :param conf: configuration made by :mod:`placement_rpc.conf`
    :param broker: the RabbitMQ to connect to
    :param topic: the topic that the service listens on
    """

    def __init__(self, conf: cfg.ConfigOpts, broker: Broker, topic: str = routing.TOPIC):
        self._topic = topic
        self._serializer = Serializer()
        self._tracing = Tracing(conf)
        self._repeats = Repeats(conf.placement_client.repeat_after)
        #: The connection of all its calls.
        self.connection = ReplyConnection(conf, broker, routing.EXCHANGE)

    def call(self, context: RequestContext, method: str, arguments: dict[str, Any],
             timeout: float, server: str | None = None) -> Any:
        """Make one attempt.

        :param context: the call is made in the release that it names
        :param timeout: seconds to wait for the answer
        :param server: name of the one server that is to answer; None for any
        :raises ServiceUnavailable: if the outcome is unknown; the call may be repeated
        :raises MessageTooLarge: if the call exceeds a limit of ``[messages]``; it is not sent
        :raises AnswerTooLarge: if the answer exceeds one; a change is made nevertheless
        :raises InvalidInput: for arguments that JSON cannot represent
        :raises UnsupportedCall: if the server, or this client, does not know a part of the call
        :raises PlacementException: the error with which the server refused the call
        """
        began = time.monotonic()
        try:
            answer = self._ask(context, method, arguments, timeout, server)
            self._repeats.answered(method, answer.seconds)
        except exception.PlacementException:
            raise
        except TimeoutError:
            # If most calls end so, the service is overloaded, and copies would make it worse.
            self._repeats.answered(method, min(timeout, time.monotonic() - began))
            raise exception.ServiceUnavailable(
                reason=f"no answer within {timeout:.1f} s") from None
        except Unroutable:
            raise exception.ServiceUnavailable(
                reason=f"no server consumes the topic {self._topic}") from None
        except ValueError as error:
            # From the JSON encoder.
            raise exception.InvalidInput(what=method, reason=_first_line(error)) from None
        if answer.failure:
            refusal = error_of(answer)
            if answer.copies > 1 and isinstance(
                    refusal, (*NOTHING_DONE, exception.StoreBusy, exception.ServiceOverloaded)):
                # Another copy, in time or at another service, may have succeeded.
                raise exception.unknown_outcome(refusal)
            raise refusal
        return self._serializer.deserialize_entity(context, answer.result)

    def _ask(self, context, method, arguments, timeout, server):
        call = envelope.Call(
            method, context.release.contract,
            {name: self._serializer.serialize_entity(context, value)
             for name, value in arguments.items()},
            self._serializer.serialize_context(context))
        with self._tracing.sending(self._topic, method, call.context):
            return self._send(context, call, timeout, server)

    def _send(self, context, call, timeout, server):
        """Send a call, and return its answer."""
        method = call.method
        # Waiting for its turn takes the call's time, and not that of this attempt. Calls that wait
        # may need to know the release of the services.
        ask = functools.partial(
            self.connection.ask, at_once=method == "get_versions",
            latest=time.monotonic() + (context.deadline or 0.0) - time.time())
        if server is not None:
            return ask(f"{self._topic}.{server}", call, timeout, to_one=True)
        topic = routing.topic_of(
            self._topic, method, context.service_release or context.release)
        try:
            return ask(topic, call, timeout, self._repeats.pauses(method))
        except Unroutable:
            if topic == self._topic:
                raise
            # An older service has no such request queue and takes all calls from the first.
            return ask(self._topic, call, timeout, self._repeats.pauses(method))

    def close(self) -> None:
        """Close the connection; calls that wait fail."""
        self.connection.close()


class LocalSender:
    """Makes calls to a manager in this process, through the dispatcher that servers use.

    :param manager: :class:`placement_rpc.manager.Manager`; its owner closes it
    """

    def __init__(self, manager: Any):
        self._dispatcher = Dispatcher(manager, manager.release)
        self._serializer = Serializer()

    def call(self, context: RequestContext, method: str, arguments: dict[str, Any],
             timeout: float, server: str | None = None) -> Any:
        """Make the call.

        ``timeout`` has no effect, since the manager keeps to the deadline in the context, and
        ``server`` has none, since there is only one.

        :raises PlacementException: the error with which the manager refused the call
        """
        sent = {name: self._serializer.serialize_entity(context, value)
                for name, value in arguments.items()}
        context.receiver = versions_of(context.manifest)
        try:
            answer = self._dispatcher.invoke(method, context, sent)
        except exception.PlacementException as error:
            # Without the manager's traceback, as over RabbitMQ.
            raise exception.from_code(error.code, error.kwargs) from None
        return self._serializer.deserialize_entity(context, answer)

    def close(self) -> None:
        """Do nothing: there is no connection."""


def error_of(answer: envelope.Answer) -> exception.PlacementException:
    """Return the project's error for an answer with a failure.

    An error that is not one of the project's comes from a newer service, or from a server that is
    not placement: :class:`placement_rpc.exception.UnsupportedCall`.
    """
    try:
        error = envelope.remote_error(answer, envelope.ALLOWED_REMOTE_MODULES)
    except ValueError:
        return exception.ServiceUnavailable(reason="an answer cannot be read")
    if isinstance(error, exception.PlacementException):
        # Without the library's additions to the class, and without the server's traceback.
        found = exception.from_code(error.code, error.kwargs)
        if type(found) is exception.ServiceUnavailable and "retry_after" in found.kwargs:
            return exception.ServiceOverloaded(**found.kwargs)
        return found
    if isinstance(error, (rpc_dispatcher.UnsupportedVersion, rpc_dispatcher.NoSuchMethod)):
        return exception.UnsupportedCall(reason=_first_line(error))
    if isinstance(error, oslo_messaging.RemoteError):
        return exception.UnsupportedCall(reason=f"{error.exc_type}: {error.value}")
    return exception.UnsupportedCall(
        reason=f"{type(error).__name__.removesuffix('_Remote')}: {_first_line(error)}")


def _first_line(error):
    return str(error).partition("\n")[0]
