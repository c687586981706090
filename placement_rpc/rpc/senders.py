# SPDX-License-Identifier: Apache-2.0
"""One attempt at a call: over the bus, or in this process."""

import oslo_messaging
from oslo_messaging.rpc import dispatcher as rpc_dispatcher

from placement_rpc import exception
from placement_rpc.amqp.frames import FAILURES
from placement_rpc.rpc import dispatcher, envelope, routing, serializer
from placement_rpc.rpc.daemon_pool import DaemonPool
from placement_rpc.rpc.reply_connection import ReplyConnection, Unroutable
from placement_rpc.rpc.server import get_client


class _BusSender:
    """Makes calls over the bus; subclasses say how.

    :param topic: str, where the service listens
    """

    def __init__(self, topic=routing.TOPIC):
        self._topic = topic

    def call(self, context, method, arguments, timeout, server=None):
        """Make one attempt.

        :param context: :class:`placement_rpc.context.RequestContext`; the call is made in its
            release
        :param arguments: dict of argument name to value
        :param timeout: float, seconds
        :param server: str, who is to answer; None for anybody
        :raises PlacementException: a retryable one when nothing is known of the outcome
        """
        topic = self._topic if server is not None else routing.topic_of(
            self._topic, method, context.service_release or context.release)
        try:
            return self._send(context, method, arguments, timeout, topic, server)
        except exception.PlacementException as error:
            # As it was raised, without the library's wrapping and the trace text.
            raise exception.from_code(error.code, error.kwargs) from None
        except (oslo_messaging.MessagingTimeout, TimeoutError):
            raise exception.ServiceUnavailable(
                reason=f"no answer within {timeout:.1f} s") from None
        except (oslo_messaging.MessageUndeliverable, Unroutable):
            raise exception.ServiceUnavailable(reason="nobody listens") from None
        except (rpc_dispatcher.UnsupportedVersion, rpc_dispatcher.NoSuchMethod) as error:
            raise exception.UnsupportedCall(reason=_first_line(error)) from None
        except oslo_messaging.RemoteError as error:
            # An error that a newer service has and this client has not.
            raise exception.UnsupportedCall(
                reason=f"{error.exc_type}: {error.value}") from None
        except (oslo_messaging.MessagingException, *FAILURES) as error:
            # The library lets some of kombu's errors through while the broker comes and goes.
            raise exception.ServiceUnavailable(reason=type(error).__name__) from error
        except ValueError as error:
            # What can not be written down as JSON.
            raise exception.InvalidInput(what=method, reason=_first_line(error)) from None

    def _send(self, context, method, arguments, timeout, topic, server):
        """Send it to a topic, or to the service's own where nobody has that intake."""
        raise NotImplementedError

    def close(self):
        """Give back what it holds."""
        raise NotImplementedError


class RabbitSender(_BusSender):
    """Makes calls over RabbitMQ, on one connection.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param broker: :class:`placement_rpc.amqp.broker.Broker`
    :param topic: str
    """

    def __init__(self, conf, broker, topic=routing.TOPIC):
        super().__init__(topic)
        self._serializer = serializer.Serializer()
        self._connection = ReplyConnection(
            conf.oslo_messaging_rabbit, broker, routing.EXCHANGE,
            conf.placement_client.max_concurrent_calls)

    def _send(self, context, method, arguments, timeout, topic, server):
        call = envelope.Call(
            method, context.release.contract,
            {name: self._serializer.serialize_entity(context, value)
             for name, value in arguments.items()},
            self._serializer.serialize_context(context))
        try:
            answer = self._connection.ask(f"{topic}.{server}" if server else topic, call, timeout)
        except Unroutable:
            if topic == self._topic:
                raise
            # Nobody has that intake: whoever listens takes all calls at the first one.
            answer = self._connection.ask(self._topic, call, timeout)
        if answer.failure:
            raise self._failed(answer)
        return self._serializer.deserialize_entity(context, answer.result)

    @staticmethod
    def _failed(answer):
        try:
            return envelope.remote_error(answer, envelope.ALLOWED_REMOTE_MODULES)
        except ValueError:
            return exception.ServiceUnavailable(reason="an answer can not be read")

    def close(self):
        """Close the connection."""
        self._connection.close()


class LibrarySender(_BusSender):
    """Makes calls over whatever bus the library knows.

    :param transport: an oslo.messaging RPC transport; closed with this
    :param limit: int, the most calls under way
    :param topic: str
    """

    def __init__(self, transport, limit, topic=routing.TOPIC):
        super().__init__(topic)
        self._transport = transport
        self._client = get_client(transport, topic)
        self._threads = DaemonPool(limit)

    def _send(self, context, method, arguments, timeout, topic, server):
        return self._threads.run(
            lambda: self._call(context, method, arguments, timeout, topic, server), timeout + 0.5)

    def _call(self, context, method, arguments, timeout, topic, server):
        try:
            return self._prepared(context, topic, timeout, server).call(
                context, method, **arguments)
        except oslo_messaging.MessageUndeliverable:
            if topic == self._topic:
                raise
        return self._prepared(context, self._topic, timeout).call(context, method, **arguments)

    def _prepared(self, context, topic, timeout, server=None):
        return self._client.prepare(
            timeout=timeout, retry=0, version=context.release.contract, topic=topic,
            **({"server": server} if server else {}))

    def close(self):
        """Let the threads end, and close the transport."""
        self._threads.close()
        try:
            # The library waits for a bus that is away, here too.
            DaemonPool(1).run(self._transport.cleanup, 5)
        except TimeoutError:
            return


def _first_line(error):
    return str(error).partition("\n")[0]


class LocalSender:
    """Makes calls to a manager in this process, through the same dispatcher as the bus.

    :param manager: :class:`placement_rpc.manager.Manager`
    """

    def __init__(self, manager):
        self._dispatcher = dispatcher.Dispatcher(manager, manager.release)
        self._serializer = serializer.Serializer()

    def call(self, context, method, arguments, timeout, server=None):
        """Make the call; ``timeout`` is of no use here, the deadline travels in the context, and
        there is one server only."""
        sent = {name: self._serializer.serialize_entity(context, value)
                for name, value in arguments.items()}
        try:
            answer = self._dispatcher.invoke(
                method, self._serializer.serialize_context(context), sent)
        except exception.PlacementException as error:
            raise exception.from_code(error.code, error.kwargs) from None
        return self._serializer.deserialize_entity(context, answer)

    def close(self):
        """The manager is its owner's."""
