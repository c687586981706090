# SPDX-License-Identifier: Apache-2.0
"""A client's connection to RabbitMQ: the calls of all threads, and their answers.

The library's client keeps a connection for each call that is under way, waits for the broker's
confirm and then for the answer, and hands a call from thread to thread on its way. Here whoever
calls sends, on one connection for all, and waits for the answer alone: it says more than a confirm
does. One thread connects, reads, and tells those who wait. Those whose answers are lost with the
connection are told at once, and ask again under the same request id.
"""

import contextlib
import logging
import socket
import threading
import time
import uuid

import amqp
from kombu import compression

from placement_rpc import exception
from placement_rpc.amqp import frames, topology
from placement_rpc.amqp.broker import FAILURES, raw_channel
from placement_rpc.rpc import envelope

LOG = logging.getLogger(__name__)
# Seconds: between two attempts to connect; that a broker may leave half a message lying; between
# two looks whether the connection is alive; that closing waits.
_PAUSE = 0.2
_PATIENCE = 5
_LOOK = 1.0
_GOODBYE = 2
_SHORT = "the broker is short of memory or of disk"


class Unroutable(Exception):
    """There is no queue for a call."""


class _Waiting:
    """Somebody who waits: the lock that it waits on, and what came."""

    __slots__ = ("answer", "came", "error")

    def __init__(self):
        self.answer = self.error = None
        self.came = threading.Lock()
        self.came.acquire()

    def tell(self, answer=None, error=None):
        """Let it go on; called once only."""
        self.answer, self.error = answer, error
        self.came.release()


class ReplyConnection:
    """Sends calls and receives their answers; connects when the first is made.

    :param options: ``conf.oslo_messaging_rabbit``
    :param broker: :class:`placement_rpc.amqp.broker.Broker`
    :param exchange: str, where the topics are
    :param limit: int, the most calls under way
    """

    def __init__(self, options, broker, exchange, limit):
        self._options = options
        self._broker = broker
        self._exchange = exchange
        self._limit = limit
        #: str, the queue of the answers; None before the first connection
        self.reply_to = None
        self._waiting = {}
        self._changed = threading.Condition()
        self._thread = self._channel = None
        self._trouble = "the broker does not answer"
        self._wanted = threading.Event()
        self._ended = False
        self._blocked = False
        # Held where something is written; with TLS where something is read, too.
        self._sending = threading.Lock()
        self._waker, self._woken = socket.socketpair()

    def ask(self, routing_key, call, seconds):
        """Send a call and wait for its answer.

        :param routing_key: str
        :param call: :class:`placement_rpc.rpc.envelope.Call`, without a message id
        :param seconds: float, how long
        :returns: :class:`placement_rpc.rpc.envelope.Answer`
        :raises Unroutable: when nobody listens there
        :raises ServiceUnavailable: when nothing is known of the outcome
        :raises InvalidInput: when this was closed
        :raises TimeoutError: when no answer came in time
        :raises ValueError: for what can not be written down
        """
        ends = time.monotonic() + seconds
        call.message_id = uuid.uuid4().hex
        waiting = _Waiting()
        # Before it is sent: the answer may be faster than this thread.
        self._enter(call.message_id, waiting)
        try:
            channel = self._opened(ends)
            call.reply_to = self.reply_to
            self._send(channel, routing_key, self._message(call, seconds), ends)
            if not waiting.came.acquire(timeout=max(0.0, ends - time.monotonic())):
                raise TimeoutError
        finally:
            self._waiting.pop(call.message_id, None)
        if waiting.error is not None:
            raise waiting.error
        return waiting.answer

    def _message(self, call, seconds):
        body, headers = envelope.seal_call(call), {}
        if self._options.kombu_compression:
            body, _ = compression.compress(body, self._options.kombu_compression)
            headers["compression"] = compression.get_encoder(
                self._options.kombu_compression)[1]
        # What nobody waits for any more leaves the queue.
        return amqp.Message(
            body, content_type="application/json", content_encoding="utf-8", delivery_mode=2,
            correlation_id=call.message_id, expiration=str(int(seconds * 1000)),
            application_headers=headers)

    def _enter(self, message_id, waiting):
        if len(self._waiting) >= self._limit:
            raise exception.ServiceUnavailable(
                reason=f"all {self._limit} calls that may be under way are waiting")
        self._waiting[message_id] = waiting

    def _opened(self, ends):
        """:returns: a channel; :raises ServiceUnavailable: when there is none in time

        :raises InvalidInput: when this was closed
        """
        channel = self._channel
        if channel is not None:
            return channel
        with self._changed:
            while self._channel is None:
                if self._ended:
                    raise exception.InvalidInput(what="PlacementAPI", reason="it was closed")
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._run, name="placement calls", daemon=True)
                    self._thread.start()
                self._wanted.set()
                left = ends - time.monotonic()
                if left <= 0:
                    raise exception.ServiceUnavailable(reason=self._trouble)
                self._changed.wait(min(left, _PAUSE))
            return self._channel

    def _send(self, channel, routing_key, message, ends):
        if self._blocked:
            raise exception.ServiceUnavailable(reason=_SHORT)
        if not self._sending.acquire(timeout=max(0.0, ends - time.monotonic())):
            raise TimeoutError
        try:
            frames.publish(channel, message, self._exchange, routing_key, mandatory=True)
        except (*FAILURES, AttributeError) as error:
            # Perhaps in the middle of a frame; or whoever reads has just closed it.
            frames.shut(channel.connection)
            raise exception.ServiceUnavailable(
                reason="the connection to the broker was lost") from error
        finally:
            self._sending.release()

    # -- the thread that reads ------------------------------------------------------------

    def _run(self):
        while self._wanted.wait() and not self._ended:
            self._wanted.clear()
            try:
                with self._broker.connected(
                        patience=_PATIENCE, on_blocked=self._on_blocked,
                        on_unblocked=self._on_unblocked) as connection:
                    self._open(connection)
                    self._read(connection)
            except FAILURES as error:
                self._lost(error)
            except Exception as error:
                LOG.exception("The connection for calls failed; it is made anew")
                self._lost(error)
            else:
                self._lost(None)
            time.sleep(0 if self._ended else _PAUSE)

    def _on_blocked(self, _reason):
        self._blocked = True
        # What was sent a moment ago is perhaps not read for as long.
        self._tell_all(_SHORT)

    def _on_unblocked(self):
        self._blocked = False

    def _open(self, connection):
        """Make the queue of the answers, as the library does, and listen."""
        options = self._options
        # Not sooner: in a process that forked each has a queue of its own.
        self.reply_to = self.reply_to or f"reply_{uuid.uuid4().hex}"
        arguments = {}
        if options.rabbit_transient_queues_ttl > 0:
            arguments["x-expires"] = options.rabbit_transient_queues_ttl * 1000
        if options.rabbit_transient_quorum_queue:
            arguments["x-queue-type"] = "quorum"
        channel = raw_channel(connection)
        topology.declare_exchange(channel, self._exchange, options)
        channel.queue_declare(
            self.reply_to, durable=options.rabbit_transient_quorum_queue, auto_delete=False,
            arguments=arguments)
        channel.basic_consume(self.reply_to, no_ack=True, callback=self._came)
        channel.events["basic_return"].add(self._returned)
        with self._changed:
            self._blocked, self._channel = False, channel
            self._changed.notify_all()

    def _read(self, connection):
        reading = self._sending if self._broker.tls else contextlib.nullcontext()
        look_at = 0
        while not self._ended:
            if frames.has_come(connection, _LOOK, self._woken):
                with reading:
                    frames.read_event(connection)
            if time.monotonic() >= look_at:
                look_at = time.monotonic() + _LOOK
                with self._sending:
                    frames.check(connection)

    def _came(self, message):
        try:
            answer = envelope.open_answer(message.body, (message.headers or {}).get("compression"))
        except ValueError as error:
            LOG.warning("A message that is no answer is dropped: %s", error)
            return
        waiting = answer and self._waiting.pop(answer.message_id, None)
        if waiting:
            waiting.tell(answer)

    def _returned(self, _error, _exchange, _routing_key, message):
        waiting = self._waiting.pop(message.properties.get("correlation_id"), None)
        if waiting:
            waiting.tell(error=Unroutable())

    def _lost(self, error):
        """Tell all who wait that their answers will not come."""
        with self._changed:
            was_open, self._channel = self._channel is not None, None
            if error is not None:
                self._trouble = f"{type(error).__name__}: {error}"
            self._changed.notify_all()
        if not was_open:
            # Those who wait for a connection go on doing so.
            return
        if error is not None:
            LOG.info("The connection to the broker is lost: %s", error)
        self._tell_all("the connection to the broker was lost")

    def _tell_all(self, reason):
        for message_id in list(self._waiting):
            waiting = self._waiting.pop(message_id, None)
            if waiting:
                waiting.tell(error=exception.ServiceUnavailable(reason=reason))

    def close(self):
        """Close the connection; whoever waits is told."""
        with self._changed:
            self._ended = True
            self._wanted.set()
        self._waker.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_GOODBYE)
        self._woken.close()
