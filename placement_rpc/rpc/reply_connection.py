# SPDX-License-Identifier: Apache-2.0
"""A client's connection to RabbitMQ: the calls of all threads, and their answers.

The library's client keeps a connection for each call that is under way, waits for the broker's
confirm and then for the answer, and hands a call from thread to thread on its way. Here the
calling thread sends, on one connection for all, and waits for the answer only, which says more
than a confirm does. One thread connects, reads, and wakes the threads that wait. Calls whose
answers are lost with the connection fail at once, and are retried under the same request id.
"""

import collections
import contextlib
import itertools
import logging
import math
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterable
from typing import Any

from oslo_config import cfg

from placement_rpc import bodies, exception
from placement_rpc.amqp import topology
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.consumer import Consumer, body_of
from placement_rpc.amqp.frames import FAILURES
from placement_rpc.amqp.outgoing import Outgoing
from placement_rpc.amqp.reconnect import Reconnect
from placement_rpc.rpc import echo, envelope
from placement_rpc.rpc.echo import Echo
from placement_rpc.rpc.routes import Routes
from placement_rpc.rpc.waiting_line import WaitingLine

LOG = logging.getLogger(__name__)
#: Seconds that the broker may leave half a message unread or unsent.
PATIENCE = 5
# Seconds between two checks for a connection, and for the end of this object.
_LOOK = 1.0
# Seconds that closing waits for the thread that reads.
_CLOSE_TIMEOUT = 2
# Calls of which a late answer is known to belong to them.
_MOST_LATE = 1000
_SHORT = "the broker is short of memory or of disk"


class Unroutable(Exception):
    """There is no queue for a call."""


def check_usable(pid: int | None, closed: bool) -> None:
    """Check that this process may use a connection.

    :param pid: of the process that used the connection first; None if none did
    :param closed: whether the connection was closed
    :raises ClientClosed: if it may not
    """
    if pid not in (None, os.getpid()):
        raise exception.ClientClosed(
            reason="it was used before this process was forked; make one in each process")
    if closed:
        raise exception.ClientClosed(reason="it was closed")


class _Waiter:
    """A call that waits: its route, the lock of its thread, and the answer or the error.

    The route is the routing key; None if the lack of an answer says nothing about it.
    """

    __slots__ = ("answer", "came", "error", "route")

    def __init__(self, route):
        self.route = route
        self.answer = self.error = None
        self.came = threading.Lock()
        self.came.acquire()

    def wake(self, answer=None, error=None):
        """Let the thread continue; called once only."""
        self.answer, self.error = answer, error
        self.came.release()


class ReplyConnection:
    """Sends calls and receives their answers; connects when the first is made.

    :param conf: configuration with the groups ``messages`` and ``placement_client``
    :param broker: where to connect
    :param exchange: where the topics are
    :raises InvalidInput: if the compression that is configured is not supported
    """

    def __init__(self, conf: cfg.ConfigOpts, broker: Broker, exchange: str) -> None:
        self._options = broker.options
        self._exchange = exchange
        self._compression = bodies.compression_of(self._options.kombu_compression)
        self._limit = conf.placement_client.max_concurrent_calls
        self._requests = bodies.Limits.of_requests(conf)
        self._answers = bodies.Limits.of_answers(conf)
        #: The queue of the answers; None before the first connection.
        self.reply_to: str | None = None
        self._waiting: dict[str, _Waiter] = {}
        #: The threads whose calls are beyond the limit.
        self.line = WaitingLine()
        self._changed = threading.Condition()
        self._running = threading.Lock()
        self._thread: threading.Thread | None = None
        # Of the process that has made the first call.
        self._pid: int | None = None
        self._consumer: Consumer | None = None
        self._echo: Echo
        self._routes = Routes()
        # Calls whose threads stopped waiting, and their routing keys; the oldest first.
        self._late: collections.OrderedDict[str, str] = collections.OrderedDict()
        self._ended = threading.Event()
        self._blocked = False
        self._reconnect = Reconnect(
            "Calls", broker, self._ended, survives=(Exception,), patience=PATIENCE,
            largest_body=self._answers.size,
            on_blocked=self._on_blocked, on_unblocked=self._on_unblocked)
        self._waker, self._woken = socket.socketpair()

    @property
    def waiting(self) -> int:
        """How many calls wait for their answers."""
        return len(self._waiting)

    def ask(self, routing_key: str, call: envelope.Call, seconds: float,
            pauses: Iterable[float] = (), to_one: bool = False,
            latest: float = -math.inf, at_once: bool = False) -> envelope.Answer:
        """Send a call and wait for its answer.

        The server that took the call may be stopped, so the call is sent again while there is no
        answer. The first answer to any of the copies is returned. Calls beyond
        ``[placement_client] max_concurrent_calls`` are sent in the order in which they came.

        :param call: without a message id, which is made here
        :param seconds: how long to wait
        :param pauses: seconds after which each further copy is sent
        :param to_one: whether one server alone could answer, whose silence says nothing about the
            connection
        :param latest: time of the monotonic clock until which the call may wait until fewer are
            under way, if that is more than ``seconds`` away
        :param at_once: whether it is made although as many calls as allowed are under way
        :raises Unroutable: if no queue is bound to the routing key
        :raises ServiceUnavailable: if the outcome is unknown
        :raises ClientClosed: if this was closed, or was used by another process first
        :raises TimeoutError: if no answer came in time
        :raises MessageTooLarge: if the call exceeds a limit of ``[messages]``; it is not sent
        :raises AnswerTooLarge: if the answer exceeds one
        :raises ValueError: if something in the call cannot be written as JSON
        """
        check_usable(self._pid, self._ended.is_set())
        latest = max(latest, time.monotonic() + seconds)
        call.message_id = uuid.uuid4().hex
        waiter = _Waiter(None if to_one else routing_key)
        try:
            # Before it is sent: the answer may be faster than this thread.
            if at_once:
                self._waiting[call.message_id] = waiter
            else:
                self._enter(call.message_id, waiter, latest)
            ends = min(time.monotonic() + seconds, latest)
            consumer = self._opened(ends)
            call.reply_to = self.reply_to
            began = time.monotonic()
            copies = self._send_copies(consumer, routing_key, call, waiter, ends, pauses)
        finally:
            if self._waiting.pop(call.message_id, None) and waiter.route is not None:
                self._stopped(call.message_id, routing_key)
            if self.line:
                self.line.move()
        if waiter.error is not None:
            raise waiter.error
        waiter.answer.copies, waiter.answer.seconds = copies, time.monotonic() - began
        return waiter.answer

    def _stopped(self, message_id, routing_key):
        """Take note of a call whose thread stopped waiting; its answer may still come."""
        self._late[message_id] = routing_key
        while len(self._late) > _MOST_LATE:
            with contextlib.suppress(KeyError):
                self._late.popitem(last=False)
        self._routes.stopped(routing_key)

    def _send_copies(self, consumer, routing_key, call, waiter, ends, pauses):
        """Send copies of a call until one is answered; return how many were sent."""
        for copies, pause in enumerate(itertools.chain(pauses, [math.inf]), 1):
            left = max(0.0, ends - time.monotonic())
            if waiter.route is not None and not self._blocked:
                self._routes.sending(routing_key)
            self._send(consumer, self._message(routing_key, call, left), ends)
            if waiter.came.acquire(timeout=min(pause, max(0.0, ends - time.monotonic()))):
                return copies
            if time.monotonic() >= ends:
                break
        raise TimeoutError

    def _message(self, routing_key, call, seconds):
        body, headers = envelope.seal_call(call, self._requests), {}
        if self._compression:
            body = bodies.compressed(body, self._compression)
            headers["compression"] = self._compression
        # The broker drops the call when its thread no longer waits.
        return Outgoing(
            body, self._exchange, routing_key, headers=headers,
            correlation_id=call.message_id, reply_to=call.reply_to,
            expiration=str(int(seconds * 1000)))

    def _enter(self, message_id, waiter, ends):
        """Take one of the places of the calls that may be under way."""
        def take():
            if len(self._waiting) >= self._limit:
                return False
            self._waiting[message_id] = waiter
            return True

        if not self.line and take():
            return
        if not self.line.wait(take, ends):
            raise exception.ServiceUnavailable(
                reason=f"all {self._limit} calls that may be under way are waiting")

    def _opened(self, ends):
        """Return the consumer of an open connection.

        :raises ServiceUnavailable: if there is no connection in time
        :raises ClientClosed: if this was closed
        """
        consumer = self._consumer
        if consumer is not None:
            return consumer
        with self._changing():
            while self._consumer is None:
                check_usable(self._pid, self._ended.is_set())
                if self._thread is None or not self._thread.is_alive():
                    self._pid = os.getpid()
                    self._thread = threading.Thread(
                        target=self._run, name="placement calls", daemon=True)
                    self._thread.start()
                left = ends - time.monotonic()
                if left <= 0:
                    raise exception.ServiceUnavailable(reason=self._trouble())
                self._changed.wait(min(left, _LOOK))
            return self._consumer

    @contextlib.contextmanager
    def _changing(self):
        """Hold the lock for a block of a calling thread, which a signal can interrupt anywhere."""
        try:
            self._changed.acquire()
            yield
        finally:
            # An interrupt can come when the lock is taken and before this code knows it, and
            # while a wait has released it.
            with contextlib.suppress(RuntimeError):
                self._changed.release()

    def _trouble(self):
        error = self._reconnect.failure
        if error is None:
            return "the broker does not answer"
        return f"{type(error).__name__}: {error}"

    def _send(self, consumer, message, ends):
        if self._blocked:
            raise exception.ServiceUnavailable(reason=_SHORT)
        try:
            consumer.send(message, ends - time.monotonic())
        except TimeoutError:
            raise
        except FAILURES as error:
            raise exception.ServiceUnavailable(
                reason="the connection to the broker was lost") from error

    # -- the thread that reads ------------------------------------------------------------

    def _run(self):
        # An interrupt can come when a thread has started and before its caller knows it.
        if not self._running.acquire(blocking=False):
            return
        try:
            self._read_answers()
        finally:
            self._running.release()

    def _read_answers(self):
        for session in self._reconnect.sessions():
            try:
                with session as connection:
                    self._open(connection)
                    while not self._ended.is_set():
                        connection.read(_LOOK, waker=self._woken)
                        # A node that is short of memory returns nothing.
                        self._echo.check(bool(self._waiting) and not self._blocked)
                        if not self._blocked:
                            self._routes.check()
            finally:
                self._lost()

    def _on_blocked(self, _reason):
        self._blocked = True
        # The broker does not read the calls that were sent just before either.
        self._fail_all(_SHORT)

    def _on_unblocked(self):
        # What was sent meanwhile says nothing about its way.
        self._routes.opened()
        self._blocked = False

    def _open(self, connection):
        """Declare the queue of the answers as the library does, and consume it."""
        # A new name: the queue of the last connection may be on a node that hangs, and so would
        # its declaration. Its answers are not waited for any more.
        self.reply_to = f"reply_{uuid.uuid4().hex}"
        topology.declare_exchange(connection, self._exchange, self._options)
        topology.declare_reply_queue(connection, self.reply_to, self._options)
        consumer = Consumer(connection)
        consumer.on_return(self._returned)
        self._echo = Echo(consumer, self.reply_to)
        consumer.consume(self.reply_to, window=None, callback=self._came,
                         arguments=topology.consumer_arguments(self._options))
        self._routes.opened()
        with self._changed:
            self._blocked, self._consumer = False, consumer
            self._changed.notify_all()

    def _came(self, message):
        self._echo.heard()
        if message.properties.get("correlation_id") == echo.ID:
            return
        try:
            self._answers.check_size(message.body_size)
            answer = envelope.open_answer(
                body_of(message), (message.headers or {}).get("compression"), self._answers)
        except Exception as error:
            LOG.warning("A message that is not an answer is dropped: %s", error or repr(error))
            if not isinstance(error, envelope.UnreadableAnswer):
                error = envelope.unreadable_answer(message.body, error)
            self._wake(error.message_id, error=error.error)
            return
        if answer:
            self._wake(answer.message_id, answer)

    def _returned(self, _error: Any, _exchange: str, _routing_key: str, message: Any) -> None:
        self._wake(message.properties.get("correlation_id"), error=Unroutable())

    def _wake(self, message_id, answer=None, error=None):
        """Let the thread of a call continue, unless it has stopped waiting."""
        waiter = self._waiting.pop(message_id, None)
        routing_key = waiter.route if waiter else self._late.pop(message_id, None)
        if routing_key is not None:
            self._routes.answered(routing_key)
        if waiter:
            waiter.wake(answer, error)

    def _lost(self):
        """Fail all calls whose answers are lost with the connection."""
        with self._changed:
            was_open, self._consumer = self._consumer is not None, None
        # Calls that wait for a connection continue to wait.
        if was_open:
            self._fail_all("the connection to the broker was lost")

    def _fail_all(self, reason):
        for message_id in list(self._waiting):
            waiter = self._waiting.pop(message_id, None)
            if waiter:
                waiter.wake(error=exception.ServiceUnavailable(reason=reason))

    def close(self) -> None:
        """Close the connection; calls that wait fail with ServiceUnavailable."""
        with self._changing():
            self._ended.set()
            self._changed.notify_all()
        self._waker.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_CLOSE_TIMEOUT)
        self._woken.close()
