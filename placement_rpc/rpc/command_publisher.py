# SPDX-License-Identifier: Apache-2.0
"""The client's end of the command queue: a cast is sent when the broker has confirmed it."""

import threading
import time

from placement_rpc import exception
from placement_rpc.amqp import publisher
from placement_rpc.amqp.broker import FAILURES, drop
from placement_rpc.rpc import command_queue, routing, serializer
from placement_rpc.rpc.daemon_pool import DaemonPool


class CommandPublisher:
    """Puts commands into the queue.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param broker: :class:`placement_rpc.amqp.broker.Broker`
    :param topic: str, where the service listens
    """

    def __init__(self, conf, broker, topic=routing.TOPIC):
        self._options = conf.queues
        self._broker = broker
        self._topic = topic
        self._serializer = serializer.Serializer()
        self._threads = DaemonPool(conf.placement_client.max_concurrent_calls)
        self._mutex = threading.Lock()
        self._connection = self._channel = None
        self._closed = False

    def cast(self, context, method, arguments, timeout):
        """Make one attempt to have a command kept by the broker.

        It may be kept although the attempt failed: the same again is the same request.

        :param context: :class:`placement_rpc.context.RequestContext`; the command is made in its
            release
        :param arguments: dict of argument name to value, ``request_id`` among them
        :param timeout: float, seconds
        :raises ServiceUnavailable: when nothing is known of it
        :raises InvalidInput: for what can not be written down
        """
        body = command_queue.sealed(
            context.release.contract, method,
            {name: self._serializer.serialize_entity(context, value)
             for name, value in arguments.items()},
            self._serializer.serialize_context(context))
        ends = time.monotonic() + timeout
        try:
            self._threads.run(lambda: self._send(body, arguments["request_id"], ends), timeout)
        except TimeoutError:
            raise exception.ServiceUnavailable(
                reason=f"the broker did not confirm within {timeout:.1f} s") from None
        except publisher.Unconfirmed as error:
            raise exception.ServiceUnavailable(reason=f"the command queue: {error}") from None
        except FAILURES as error:
            raise exception.ServiceUnavailable(reason=type(error).__name__) from error

    def _send(self, body, request_id, ends):
        if not self._mutex.acquire(timeout=max(0, ends - time.monotonic())):
            raise TimeoutError
        try:
            if self._closed:
                raise exception.ServiceUnavailable(reason="this client was closed")
            if self._channel is None:
                self._open()
            try:
                self._publish(body, request_id, ends)
            except FAILURES:
                # It may have been closed long ago, for want of a heartbeat.
                self._drop()
                self._open()
                self._publish(body, request_id, ends)
        except BaseException:
            self._drop()
            raise
        finally:
            self._mutex.release()

    def _publish(self, body, request_id, ends):
        self._channel.send(body, "", command_queue.name(self._topic), str(request_id))
        self._channel.settle(max(0.1, ends - time.monotonic()))

    def _open(self):
        self._connection = self._broker.connect()
        command_queue.declare(self._connection, self._topic, self._options)
        self._channel = publisher.ConfirmedChannel(self._connection)

    def _drop(self):
        connection, self._connection, self._channel = self._connection, None, None
        drop(connection)

    def close(self):
        """Close the connection, and let the threads end."""
        self._threads.close()
        self._closed = True
        if self._mutex.acquire(timeout=1):
            self._drop()
            self._mutex.release()


class CallingPublisher:
    """Makes a command a call, where there is no queue that outlives the process.

    What it asks for is settled when it returns, and told in the same ways.

    :param caller: of :mod:`placement_rpc.rpc.senders`
    """

    def __init__(self, caller):
        self._caller = caller

    def cast(self, context, method, arguments, timeout):
        """As :meth:`QueueCaster.cast`; a refusal is no error, as it is none there."""
        try:
            self._caller.call(context, method, arguments, timeout)
        except (exception.Conflict, exception.NotFound):
            # Its event and get_request_result tell.
            return

    def close(self):
        """The caller is its owner's."""
