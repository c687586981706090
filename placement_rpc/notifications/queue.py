# SPDX-License-Identifier: Apache-2.0
"""Handling events from a durable queue: acknowledged when they are handled, never before."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from oslo_config import cfg

from placement_rpc import bodies, exception
from placement_rpc.amqp import dead_letters, topology
from placement_rpc.amqp.broker import Broker
from placement_rpc.amqp.consumer import Consumer, body_of, deliveries
from placement_rpc.amqp.frames import FAILURES
from placement_rpc.amqp.publisher import ConfirmedChannel
from placement_rpc.amqp.reconnect import Reconnect
from placement_rpc.backoff import Backoff
from placement_rpc.notifications import envelope
from placement_rpc.notifications.event import Event, UnsupportedPayload
from placement_rpc.notifications.sequence import Sequence

LOG = logging.getLogger(__name__)

# Deliveries after which an event counts as one that kills processes, if attempts are not saved.
_MOST_DELIVERIES = 100
# Seconds after which handled events are acknowledged, even if more of them were received.
_KEEP_EVERY = 1
# Seconds after which an idle listener checks whether it is to stop.
_IDLE = 0.5


class _NotSaved(Exception):
    """The position could not be saved or loaded: the cause ends the listener."""


class _Stopped(Exception):
    """The listener was stopped while it retried an event."""


class QueueListener:
    """Calls a handler with each event, from a durable queue that belongs to the listener.

    The queue is created at the first start and keeps events while no process reads it, up to its
    limits (``[queues] listener_max_length``, ``listener_max_age``); events that it had to drop are
    reported to ``on_gap`` and still in the stream. Several processes may listen with one queue
    name: one of them works, and another takes over when it dies. They need one saved position,
    which is loaded by the process that takes over.

    An event is acknowledged after the handler returned. If the handler raises, it is called again,
    and after ``[queues] listener_attempts`` times the event becomes a dead letter. So does an
    event that killed the process as often, a message that is not an event, and one whose payload
    is of a later major version than this release knows. An event of a type that this release does
    not know is skipped. After a crash an event may be delivered again, and so may an event that
    takes the handler longer than the broker's ``consumer_timeout``, which is half an hour: the
    handler must recognise an event that it began to handle before.

    :param conf: made by :mod:`placement_rpc.conf`
    :param queue: the queue's name
    :param handler: callable of an :class:`placement_rpc.notifications.event.Event`
    :param broker: a URL such as ``rabbit://user:password@host:port/``, or a
        :class:`placement_rpc.amqp.broker.Broker`; None for the configured one
    :param saved: with ``load`` and ``save``, see
        :class:`placement_rpc.notifications.sequence.SavedPosition`; None to begin with the events
        in the queue, and to dead-letter an event that kills the process after a hundred deliveries
        only
    :param on_gap: callable of the position that was expected and the one that came; None for a
        line in the log
    :param exchange: where the topic is
    :raises ValueError: if no broker is given and ``transport_url`` is not RabbitMQ
    :raises InvalidInput: if the name of the queue is empty, is longer than 255 bytes, or begins
        with ``amq.``
    """

    def __init__(self, conf: cfg.ConfigOpts, queue: str, handler: Callable[[Event], object],
                 broker: Broker | str | None = None, saved: Any = None,
                 on_gap: Callable[[int, int], object] | None = None,
                 exchange: str = "placement") -> None:
        if not isinstance(queue, str) or queue.startswith("amq.") or not (
                0 < len(queue.encode()) <= topology.LONGEST_NAME):
            raise exception.InvalidInput(what="queue", reason=(
                f"its name must be a text of 1 to {topology.LONGEST_NAME} bytes, and must not "
                "begin with amq."))
        self._conf = conf
        self._options = conf.queues
        self._limits = bodies.Limits.of_answers(conf)
        self._dead_letters = dead_letters.DeadLetterQueue(
            conf.queues.dead_letters, conf.queues.dead_letters_max_length,
            conf.queues.dead_letters_max_age)
        self._queue = queue
        self._binding = topology.Binding(
            queue, f"{conf.notifications.topic}.{envelope.PRIORITY}")
        self._handler = handler
        found = broker if isinstance(broker, Broker) else Broker.of(conf, broker)
        if found is None:
            raise ValueError("a queue needs RabbitMQ, and transport_url is not RabbitMQ")
        self._saved = saved
        self._on_gap = on_gap
        self._exchange = exchange
        self._broker, self._rabbit = found, found.options
        self._ended = threading.Event()
        self._reconnect = Reconnect(
            f"Queue {queue}", found, self._ended, largest_body=self._limits.size)
        # These belong to the open connection; only the thread in run() uses them.
        self._consumer: Consumer | None = None
        self._channel: ConfirmedChannel | None = None
        self._sequence: Sequence | None = None
        self._unknown_types: set[str] = set()
        # The id and the attempts of an event that may have killed a process.
        self._trying: dict[str, Any] = {}
        self._keep_at = self._quiet_since = 0.0

    @property
    def position(self) -> int | None:
        """The position of the last event that was handled; None before the first"""
        return self._sequence.position if self._sequence else None

    def declare(self) -> None:
        """Declare the queue, which keeps events from then on. :meth:`run` declares it, too.

        :raises InvalidInput: if it exists and is of another kind
        :raises ServiceUnavailable: if the broker cannot be reached, or does not allow it
        """
        try:
            with self._broker.connected() as connection:
                self._declare(connection)
        except topology.Unsuitable as error:
            raise exception.InvalidInput(what="queue", reason=str(error)) from error
        except FAILURES as error:
            raise exception.ServiceUnavailable(reason=f"RabbitMQ: {error}") from error

    def stop(self) -> None:
        """Have :meth:`run` return after the event that is being handled; from any thread."""
        self._ended.set()

    def run(self, idle: float | None = None) -> None:
        """Handle events until stopped.

        Errors of ``load`` and ``save`` of the position are raised.

        :param idle: seconds without an event after which to return; None for never
        :raises InvalidInput: if the queue exists at the start and is of another kind
        """
        self._sequence = self._consumer = None
        self._load()
        self._quiet_since = time.monotonic()
        for session in self._reconnect.sessions(lambda: self._is_over(idle)):
            try:
                with session as connection:
                    self._declare_or_refuse(connection)
                    self._channel = ConfirmedChannel(connection)
                    self._consumer = Consumer(connection)
                    self._consume(idle, topology.KeptBindings(
                        connection, self._exchange, self._rabbit, [self._binding]))
            except _Stopped:
                return
            except _NotSaved as error:
                raise error.__cause__ from None

    def _declare_or_refuse(self, connection):
        """Declare the queue; an unsuitable one may be replaced only while this works already."""
        try:
            self._declare(connection)
        except topology.Unsuitable as error:
            if self._consumer is None:
                raise exception.InvalidInput(what="queue", reason=str(error)) from error
            raise

    def _load(self):
        """Begin with the saved position; without one, go on with that of this object."""
        state = self._saved.load() if self._saved else None
        if state or self._sequence is None:
            self._sequence = Sequence(state, self._on_gap)
            self._trying = (state or {}).get("trying", {})

    def _take_over(self):
        """Load the position that another process may have saved meanwhile."""
        try:
            self._load()
        except Exception as error:
            # Not an error of the broker, although it may have the same class.
            raise _NotSaved from error

    def _is_over(self, idle):
        return self._ended.is_set() or (
            idle is not None and time.monotonic() - self._quiet_since >= idle)

    def _consume(self, idle, bindings):
        self._consumer.consume(self._queue)
        self._quiet_since = time.monotonic()
        works = False
        while not self._is_over(idle):
            handled = []
            bindings.keep()
            received = self._consumer.receive(_IDLE)
            if received and not works:
                # Until the connection ends, no other process gets messages of the queue.
                self._take_over()
                works = True
            try:
                for message in received:
                    self._handle(message)
                    handled.append(message)
                    if self._ended.is_set():
                        break
                    if deliveries(message) or time.monotonic() > self._keep_at:
                        # A redelivered event may have killed a process, and slow handling must
                        # not delay acknowledgements.
                        self._keep(handled)
                        handled = []
            finally:
                # Keep what was handled, even if the next event cannot be.
                if handled:
                    self._keep(handled)

    def _keep(self, messages):
        """Save the position, and then acknowledge messages that were handled."""
        self._save()
        self._consumer.acknowledge(messages)
        self._quiet_since = time.monotonic()
        self._keep_at = self._quiet_since + _KEEP_EVERY

    def _save(self):
        if self._saved and (self._trying or self._sequence.position is not None):
            try:
                self._saved.save({**self._sequence.state, "trying": self._trying})
            except Exception as error:
                # Not an error of the broker, although it may have the same class.
                raise _NotSaved from error

    def _declare(self, connection):
        self._dead_letters.declare(connection)
        topology.declare(connection, self._queue, {
            "x-queue-type": "quorum", "x-max-length": self._options.listener_max_length,
            "x-overflow": "drop-head", "x-message-ttl": self._options.listener_max_age * 1000,
            # Keeps the order, whichever process takes over.
            "x-single-active-consumer": True,
            # The listener counts attempts, and an event that expires must not be a dead letter.
            "x-delivery-limit": 1_000_000})
        topology.declare_exchange(connection, self._exchange, self._rabbit)
        topology.bind(connection, self._queue, self._exchange, self._binding.routing_key)

    def _handle(self, message):
        """Have an event handled or dead-lettered; an error of the handler is not raised."""
        try:
            event = Event.of_message(
                body_of(message), (message.headers or {}).get("compression"), self._limits)
        except Exception as error:
            # An event of a later release is kept whole, to be replayed to that release.
            self._dead_letter(message, "a message", str(error) or repr(error),
                              whole=isinstance(error, UnsupportedPayload))
            return
        if not (dead_letters.replay_of(message) or self._sequence.is_new(event)):
            return
        self._sequence.report_gap(event)
        if event.known:
            self._try(message, event)
        else:
            self._skip(event)
        self._sequence.add(event)

    def _try(self, message, event):
        """Call the handler, until it returns or the attempts are used up."""
        backoff, error = Backoff(), "each process that handled it died"
        for attempt in self._attempts(message, event):
            try:
                self._handler(event)
                return
            except Exception as failure:
                error = f"{type(failure).__name__}: {failure}"
                LOG.warning("Attempt %d at event %d (%s) failed: %s", attempt, event.position,
                            event.event_type, error, exc_info=True)
            if self._ended.is_set():
                self._forget(attempt)
                raise _Stopped
            if attempt < self._options.listener_attempts and self._ended.wait(backoff.next()):
                # Not acknowledged, so the broker delivers it to the next process that listens.
                raise _Stopped
        self._dead_letter(message, f"event {event.position} ({event.event_type})", error)

    def _forget(self, attempt):
        """Do not count an attempt that was stopped."""
        if self._trying:
            self._trying["attempts"] = attempt - 1
            self._save()

    def _attempts(self, message, event):
        """Yield the number of each attempt; attempts of processes that died count too."""
        delivered = deliveries(message)
        if not self._saved and delivered >= _MOST_DELIVERIES:
            return
        # The attempts at an event that an operator replayed are counted from zero.
        counted = dead_letters.replay_of(message) or event.event_id
        made = self._trying["attempts"] if self._trying.get("of") == counted else 0
        while made < self._options.listener_attempts:
            made += 1
            if delivered:
                self._trying = {"of": counted, "attempts": made}
                self._save()
            yield made

    def _dead_letter(self, message, subject, reason, whole=True):
        LOG.error("Queue %s: %s goes to the dead letters: %s", self._queue, subject, reason)
        self._dead_letters.dead_letter(self._channel, message, self._queue, reason, whole)

    def _skip(self, event):
        if event.event_type not in self._unknown_types:
            self._unknown_types.add(event.event_type)
            LOG.warning("Events of the type %s are not known to this release and are skipped",
                        event.event_type)
