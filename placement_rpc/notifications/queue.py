# SPDX-License-Identifier: Apache-2.0
"""Handling events from a queue of one's own: acknowledged when they are handled, never before."""

import logging
import threading
import time

from placement_rpc.amqp import consumer, dead_letters, publisher, topology
from placement_rpc.amqp.broker import FAILURES, Broker
from placement_rpc.notifications import envelope
from placement_rpc.notifications.event import Event
from placement_rpc.notifications.sequence import Sequence

LOG = logging.getLogger(__name__)

# Deliveries after which an event counts as deadly where nothing else was saved about it.
_MOST_DELIVERIES = 100
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
# Seconds after which what was handled is acknowledged, though more of it is at hand.
_KEEP_EVERY = 1


class _NotSaved(Exception):
    """The position could not be saved: its cause ends the listener."""


class _ToldToStop(Exception):
    """While an event was tried again."""


class QueueListener:
    """Calls a handler with each event, from a durable queue that belongs to the listener.

    The queue is made at the first start and keeps events while nobody reads it, up to its limits
    (``[queues] listener_max_length``, ``listener_max_age``); what it had to drop is told to
    ``on_gap`` and still in the stream. Several processes may listen with one queue name: one of
    them works, and another one takes over when it dies.

    An event is acknowledged after the handler returned. Where it raises, it is called again, and
    after ``[queues] listener_attempts`` times the event goes to the dead letters; so does one
    that the process died over as often, a message that is no event, and an event whose payload
    is of a later major version than this release knows. An event of a type that this release
    does not know is passed over. After a crash an event may come again, and so may one over which
    the handler took longer than a minute, for which the broker gives the listener up: the handler
    must be able to see one anew that it had begun with.

    :param conf: :class:`oslo_config.cfg.ConfigOpts` made by :mod:`placement_rpc.conf`
    :param queue: str, the queue's name
    :param handler: callable of an :class:`placement_rpc.notifications.event.Event`
    :param broker: str, as ``rabbit://user:password@host:port/``, or
        :class:`placement_rpc.amqp.broker.Broker`; None for the configured one
    :param saved: with ``load`` and ``save``, see
        :class:`placement_rpc.notifications.sequence.SavedPosition`; None to begin with whatever
        is in the queue, and not to know what a process died over before a hundred times
    :param on_gap: callable of the position that was expected and the one that came
    :param exchange: str, where the topic lives
    """

    def __init__(self, conf, queue, handler, broker=None, saved=None, on_gap=None,
                 exchange="placement"):
        self._conf = conf
        self._options = conf.queues
        self._queue = queue
        self._handler = handler
        self._broker = Broker.of(conf) if broker is None else Broker.at(broker)
        if self._broker is None:
            raise ValueError("a queue needs RabbitMQ, and transport_url names something else")
        self._saved = saved
        self._on_gap = on_gap
        self._exchange = exchange
        self._ended = threading.Event()
        self._sequence = None
        self._strangers = set()
        # The event that is being tried, and how often it was, while there is doubt about it.
        self._trying = {}
        self._keep_at = 0

    @property
    def position(self):
        """int, the position of the last event that was handled; None before the first"""
        return self._sequence.position if self._sequence else None

    def stop(self):
        """Have :meth:`run` return after the event that is being handled; from any thread."""
        self._ended.set()

    def run(self, idle=None):
        """Handle events until told to stop.

        :param idle: float, seconds without an event after which to return; None for never
        :raises: what ``load`` and ``save`` of the position raise
        """
        state = (self._saved.load() if self._saved else None) or {}
        self._sequence = Sequence(state, self._on_gap)
        self._trying = state.get("trying", {})
        self._quiet_since = time.monotonic()
        self._pause = _FIRST_PAUSE
        while not self._over(idle):
            try:
                with self._broker.connected() as connection:
                    self._consume(connection, idle)
            except _ToldToStop:
                return
            except _NotSaved as error:
                raise error.__cause__ from None
            except (publisher.Unconfirmed, *FAILURES) as error:
                LOG.warning("Queue %s is away: %s", self._queue, error)
                self._ended.wait(self._pause)
                self._pause = min(_LONGEST_PAUSE, 2 * self._pause)

    def _over(self, idle):
        return self._ended.is_set() or (
            idle is not None and time.monotonic() - self._quiet_since >= idle)

    def _consume(self, connection, idle):
        self._declare(connection)
        graves = publisher.ConfirmedChannel(connection)
        intake = consumer.QueueConsumer(connection, self._queue)
        self._quiet_since = time.monotonic()
        while not self._over(idle):
            handled = None
            try:
                for message in intake.receive(0.5):
                    self._handle(graves, message)
                    handled = message
                    if self._ended.is_set():
                        break
                    if consumer.deliveries(message) or time.monotonic() > self._keep_at:
                        # Somebody may have died over one of these, or each takes its time.
                        self._keep(intake, handled)
                        handled = None
                        connection.heartbeat_check()
            finally:
                # What was handled, also when the next one can not be.
                if handled is not None:
                    self._keep(intake, handled)

    def _keep(self, intake, message):
        """Remember what was handled up to a message, and then acknowledge it."""
        self._save()
        intake.acknowledge(message)
        self._pause = _FIRST_PAUSE
        self._quiet_since = time.monotonic()
        self._keep_at = self._quiet_since + _KEEP_EVERY

    def _save(self):
        if self._saved and (self._trying or self._sequence.position is not None):
            try:
                self._saved.save({**self._sequence.state, "trying": self._trying})
            except Exception as error:
                # Not the broker's failure, though it may be of the same class.
                raise _NotSaved from error

    def _declare(self, connection):
        dead_letters.declare(connection, self._options)
        topology.declare(connection, self._queue, {
            "x-queue-type": "quorum", "x-max-length": self._options.listener_max_length,
            "x-overflow": "drop-head", "x-message-ttl": self._options.listener_max_age * 1000,
            # In order, whoever takes over.
            "x-single-active-consumer": True,
            # The listener counts by itself: what is dropped for age must not be a dead letter.
            "x-delivery-limit": 1_000_000})
        channel = connection.channel()
        topology.declare_exchange(channel, self._exchange, self._conf.oslo_messaging_rabbit)
        channel.queue_bind(
            self._queue, exchange=self._exchange,
            routing_key=f"{self._conf.notifications.topic}.{envelope.PRIORITY}")
        channel.close()

    def _handle(self, graves, message):
        """Have an event handled, or buried; :raises: nothing that the handler raises"""
        try:
            event = Event.of_message(message.body)
        except ValueError as error:
            self._bury(graves, message, "a message", str(error))
            return
        replayed = (message.headers or {}).get(dead_letters.REPLAYED)
        if not (replayed or self._sequence.is_new(event)):
            return
        self._sequence.tell_gap(event)
        if event.known:
            self._try(graves, message, event)
        else:
            self._pass_over(event)
        self._sequence.add(event)

    def _try(self, graves, message, event):
        """Call the handler, until it returns or the attempts are used up."""
        pause, error = _FIRST_PAUSE, "the listener died over it each time"
        for attempt in self._attempts(message, event):
            try:
                self._handler(event)
                return
            except Exception as failure:
                error = f"{type(failure).__name__}: {failure}"
                LOG.warning("Attempt %d at event %d (%s) failed: %s", attempt, event.position,
                            event.event_type, error, exc_info=True)
            if attempt < self._options.listener_attempts and self._ended.wait(pause):
                # Not acknowledged: to whoever listens next.
                raise _ToldToStop
            pause = min(_LONGEST_PAUSE, 2 * pause)
        self._bury(graves, message, f"event {event.position} ({event.event_type})", error)

    def _attempts(self, message, event):
        """Count attempts, those of processes that died included; gives the number of each."""
        deliveries = consumer.deliveries(message)
        if not self._saved and deliveries >= _MOST_DELIVERIES:
            return
        # An event that an operator had sent again begins anew.
        counted = str((message.headers or {}).get(dead_letters.REPLAYED) or event.event_id)
        made = self._trying["attempts"] if self._trying.get("of") == counted else 0
        while made < self._options.listener_attempts:
            made += 1
            if deliveries:
                self._trying = {"of": counted, "attempts": made}
                self._save()
            yield made

    def _bury(self, graves, message, what, reason):
        LOG.error("Queue %s: %s goes to the dead letters: %s", self._queue, what, reason)
        dead_letters.dead_letter(graves, self._options, message, self._queue, reason)

    def _pass_over(self, event):
        if event.event_type not in self._strangers:
            self._strangers.add(event.event_type)
            LOG.warning("Events of the type %s are not known to this release and passed over",
                        event.event_type)
