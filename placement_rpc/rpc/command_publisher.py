# SPDX-License-Identifier: Apache-2.0
"""The client's end of the command queue: a cast is sent when the broker has confirmed it."""

import os
import threading
import time
from typing import Any

from oslo_config import cfg

from placement_rpc import bodies, exception
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.outgoing import Outgoing
from placement_rpc.amqp.publisher import Publisher, Unconfirmed
from placement_rpc.context import RequestContext
from placement_rpc.rpc import command_queue, routing, serializer
from placement_rpc.rpc.daemon_pool import DaemonPool
from placement_rpc.rpc.reply_connection import check_usable


class CommandPublisher:
    """Publishes commands to the queue.

    :param conf: configuration with the groups ``queues`` and ``placement_client``
    :param broker: where the queue is
    :param topic: the service's topic
    """

    def __init__(self, conf: cfg.ConfigOpts, broker: Broker, topic: str = routing.TOPIC) -> None:
        self._queue = command_queue.name(topic)
        self._publisher = Publisher(
            broker, lambda connection: command_queue.declare(connection, topic, conf.queues))
        self._limits = bodies.Limits.of_requests(conf)
        self._serializer = serializer.Serializer()
        self._threads = DaemonPool(conf.placement_client.max_concurrent_calls)
        self._mutex = threading.Lock()
        self._closed = False
        # The process that made the first cast; None before it.
        self._pid: int | None = None

    def cast(self, context: RequestContext, method: str, arguments: dict[str, Any],
             timeout: float) -> None:
        """Publish a command and wait for the confirm; one attempt.

        The broker may have kept the command although the attempt failed; the same request id
        identifies it.

        :param context: the command is sent in its release
        :param arguments: by name, ``request_id`` among them
        :param timeout: seconds
        :raises ServiceUnavailable: if the broker did not confirm the command
        :raises ClientClosed: if this was closed, or was used by another process first
        :raises MessageTooLarge: if it exceeds a limit of ``[messages]``; it is not sent
        :raises InvalidInput: if something in it cannot be written as JSON
        """
        self._check()
        body = command_queue.sealed(
            context.release.contract, method,
            {name: self._serializer.serialize_entity(context, value)
             for name, value in arguments.items()},
            self._serializer.serialize_context(context), self._limits)
        request_id, ends = str(arguments["request_id"]), time.monotonic() + timeout
        try:
            self._threads.run(lambda: self._send(body, request_id, ends), timeout)
        except TimeoutError:
            raise exception.ServiceUnavailable(
                reason=f"the broker did not confirm within {timeout:.1f} s") from None
        except Unconfirmed as error:
            raise exception.ServiceUnavailable(reason=f"the command queue: {error}") from error

    def _check(self):
        self._pid = self._pid or os.getpid()
        check_usable(self._pid, self._closed)

    def _send(self, body, request_id, ends):
        if not self._mutex.acquire(timeout=max(0, ends - time.monotonic())):
            raise TimeoutError
        try:
            self._check()
            self._publisher.publish(
                [Outgoing(body, "", self._queue, request_id)], ends - time.monotonic())
        finally:
            self._mutex.release()

    def close(self) -> None:
        """Close the connection, and end the threads."""
        self._closed = True
        if self._pid not in (None, os.getpid()):
            # The connection, and the threads, are those of another process.
            return
        self._threads.close()
        if self._mutex.acquire(timeout=1):
            self._publisher.close()
            self._mutex.release()


class CallingPublisher:
    """Sends each command as a call, where no queue outlives the process.

    The change is committed when a cast returns, with the same events and the same outcome.

    :param caller: of :mod:`placement_rpc.rpc.senders`
    """

    def __init__(self, caller):
        self._caller = caller

    def cast(self, context: RequestContext, method: str, arguments: dict[str, Any],
             timeout: float) -> None:
        """Make a command a call; otherwise as :meth:`CommandPublisher.cast`.

        A refusal is not raised, as with a queue: its event and get_request_result report it.
        """
        try:
            self._caller.call(context, method, arguments, timeout)
        except (exception.Conflict, exception.NotFound):
            return

    def close(self) -> None:
        """Do nothing: the sender belongs to its owner."""
