# SPDX-License-Identifier: Apache-2.0
"""The server's end of the command queue: settled, committed, and only then acknowledged.

One conductor of all works on the queue at a time, so that commands are settled in the order in
which they were sent; another takes over when it is killed. Commands that it had not acknowledged
are delivered again, and those that were committed are recognised by their request ids.
"""

import logging
import threading

from placement_rpc import bodies, exception
from placement_rpc.accounting import holding
from placement_rpc.accounting.batch import Outcome
from placement_rpc.amqp import consumer, publisher
from placement_rpc.amqp.frames import FAILURES
from placement_rpc.amqp.reconnect import Reconnect
from placement_rpc.backoff import Backoff
from placement_rpc.rpc import command_queue, dispatcher, routing
from placement_rpc.service.attempts import Attempts

LOG = logging.getLogger(__name__)
_STOP_TIMEOUT = 30
# Seconds after which an idle consumer checks whether it is to stop.
_IDLE = 0.1
# Seconds after which it looks again whether the store accepts changes.
_HELD = 1.0


class _Stopped(Exception):
    """The consumer was stopped while it waited."""


class _Held(Exception):
    """The store accepts no changes; the commands at hand are left to the queue."""


class _Unusable(Exception):
    """A message that cannot be settled, and becomes a dead letter.

    :param reason: str
    :param whole: bool, as of
        :meth:`placement_rpc.amqp.dead_letters.DeadLetterQueue.dead_letter`
    """

    def __init__(self, reason, whole=True):
        super().__init__(reason)
        self.reason, self.whole = reason, whole


class CommandConsumer:
    """Settles the commands of a topic.

    A command that cannot be understood becomes a dead letter. While the store is away the commands
    at hand are kept, and retried until it is back. A command that fails otherwise, or that kills
    the process, is tried ``[queues] commands_attempts`` times and then becomes a dead letter.
    While the store is held, which can take days, the commands stay in the queue: the broker ends
    a connection that keeps messages for long, and their deliveries would count as attempts.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param broker: :class:`placement_rpc.amqp.broker.Broker`
    :param manager: :class:`placement_rpc.manager.Manager`
    :param topic: str, where the service listens
    """

    def __init__(self, conf, broker, manager, topic=routing.TOPIC):
        self._options = conf.queues
        self._limits = bodies.Limits.of_requests(conf)
        self._manager = manager
        self._topic = topic
        self._queue = command_queue.name(topic)
        self._attempts = Attempts(manager.database)
        self._dead_letters = command_queue.dead_letter_queue(
            conf.queues, manager.metrics.dead_lettered)
        # Not limited by the pin: a queued command of any release that this program knows must not
        # be lost.
        self._dispatcher = dispatcher.Dispatcher(manager, seen_clients=manager.seen_clients)
        self._ended = threading.Event()
        self._reconnect = Reconnect(
            "Commands", broker, self._ended, survives=(Exception,),
            largest_body=self._limits.size)
        # These belong to the open connection; only the thread uses them.
        self._consumer = self._channel = None
        self._thread = threading.Thread(target=self._run, name="commands", daemon=True)

    def start(self):
        """Start the thread that settles commands."""
        self._thread.start()

    def stop(self):
        """Stop after the commands at hand; the broker requeues those that were not begun."""
        self._ended.set()

    def wait(self):
        """Wait until the commands at hand are settled, for 30 seconds at most."""
        if self._thread.is_alive():
            self._thread.join(_STOP_TIMEOUT)
        if self._thread.is_alive():
            LOG.warning("The broker does not answer; commands at hand are left to another process")

    def _run(self):
        for session in self._reconnect.sessions(until=self._ended_while_held):
            with session as connection:
                command_queue.declare(connection, self._topic, self._options)
                self._channel = publisher.ConfirmedChannel(connection)
                self._consumer = consumer.Consumer(connection)
                try:
                    self._consume()
                except _Stopped:
                    LOG.info("Commands at hand are requeued")
                except _Held as error:
                    LOG.info("Commands wait in their queue: %s", error.__cause__)

    def _ended_while_held(self):
        """Wait until the store accepts changes; return whether this was stopped meanwhile."""
        is_held = True
        while is_held and not self._ended.is_set():
            try:
                is_held = holding.is_held(self._manager.database)
            except exception.PlacementException as error:
                LOG.warning("Commands wait for the store: %s", error)
            if is_held:
                self._ended.wait(_HELD)
        return self._ended.is_set()

    def _consume(self):
        self._consumer.consume(self._queue)
        while not self._ended.is_set():
            received = self._consumer.receive(_IDLE, self._options.commands_batch)
            # A redelivered command may have killed a process: settle these one by one.
            doubtful = any(map(consumer.is_redelivered, received))
            for batch in [[message] for message in received] if doubtful else [received]:
                self._work(batch, doubtful)
                if batch:
                    self._consumer.acknowledge(batch)

    def _work(self, batch, doubtful):
        """Settle commands, or dead-letter them."""
        if doubtful:
            for message in batch:
                # Reading it may have ended the process.
                self._try(message)
            return
        commands, unusable = [], []
        for message in batch:
            try:
                commands.append((message, self._opened(message)))
            except _Unusable as error:
                unusable.append((message, error))
        answers = self._settle([pending for _, pending in commands])
        for (message, pending), settled in zip(commands, answers, strict=True):
            self._conclude(message, pending, settled.error)
        # Not before the others are settled: a batch that is left to the queue comes again whole.
        for message, error in unusable:
            self._dead_letter(message, error.reason, error.whole)

    def _opened(self, message):
        """Return the pending request of a message.

        :raises _Unusable: if the message is to become a dead letter
        :raises _Stopped: if this is stopped while the store is away
        :raises FAILURES: if the connection to the broker is lost meanwhile
        """
        try:
            self._limits.check_size(message.body_size)
            command = command_queue.opened(
                consumer.body_of(message), (message.headers or {}).get("compression"),
                self._limits)
        except exception.PlacementException as error:
            raise _Unusable(f"{error.code}: {error.text}", whole=False) from error
        except Exception as error:
            raise _Unusable(f"it cannot be read: {error!r}"[:200], whole=False) from error
        try:
            # What the command asks for may have to be compared with the store.
            return self._when_the_store_is_there(lambda: self._pending_request(command))
        except exception.PlacementException as error:
            raise _Unusable(f"{error.code}: {error.text}") from error

    def _conclude(self, message, pending, error):
        """Retry or dead-letter a command that was not settled."""
        if isinstance(error, exception.RequestIdReused):
            # No outcome is stored for it, and none ever can be.
            self._dead_letter(message, f"{error.code}: {error.text}")
        elif _is_failure(error):
            self._try(message, pending, repr(error))

    def _try(self, message, pending=None, error=None):
        """Settle a command by itself, counting the attempts.

        :param pending: its pending request; None if it was not read yet
        """
        counted, backoff = self._attempts.id_of(message), Backoff()
        while self._when_the_store_is_there(
                lambda: self._attempts.begin(counted)) <= self._options.commands_attempts:
            try:
                pending = pending or self._opened(message)
                settled, = self._settle([pending])
            except _Unusable as unusable:
                self._dead_letter(message, unusable.reason, unusable.whole)
                return
            except (_Held, _Stopped, *FAILURES):
                # No reason to count: each consumer that gets it next would do so.
                self._uncount(counted)
                raise
            if not _is_failure(settled.error):
                self._conclude(message, pending, settled.error)
                return
            error = repr(settled.error)
            LOG.error("Command %s failed and is retried: %s", pending.request.request_id, error)
            self._wait(backoff.next())
        self._dead_letter(message, error or "each process that worked on it died")

    def _uncount(self, counted):
        try:
            self._attempts.survived(counted)
        except exception.PlacementException as error:
            LOG.info("The number of attempts at a command cannot be reset: %s", error)

    def _settle(self, pending):
        """Return the outcome of each pending request, retrying until the store can be reached.

        :raises _Stopped: if this is stopped while the store is away
        :raises _Held: if the store accepts no changes
        """
        def settle():
            try:
                answers = self._manager.group_commit.settle(pending)
            except exception.StoreBusy as error:
                return [Outcome(error=error) for _ in pending]
            except exception.StoreHeld as error:
                raise _Held from error
            for settled in answers:
                if isinstance(settled.error, exception.StoreHeld):
                    raise _Held from settled.error
                if settled.blocked or _is_outage(settled.error):
                    raise settled.error
            return answers

        return self._when_the_store_is_there(settle) if pending else []

    def _when_the_store_is_there(self, call):
        """Make a call, and retry it while the store is away; return its result.

        :raises _Stopped: if this is stopped meanwhile
        """
        backoff = Backoff()
        while True:
            try:
                return call()
            except exception.PlacementException as error:
                if not error.retryable:
                    raise
                LOG.warning("Commands wait for the store: %s", error)
            # The messages are kept: requeueing would count as another delivery.
            self._wait(backoff.next())

    def _wait(self, seconds):
        if self._ended.is_set():
            raise _Stopped
        self._consumer.keep_alive(seconds)

    def _pending_request(self, command):
        """Return the pending request of a command.

        :raises PlacementException: if it is not a command of this service
        :raises _Unusable: for an unexpected error
        """
        try:
            return self._read(command)
        except exception.PlacementException:
            raise
        except Exception as error:
            # Requeueing would loop for ever and block the queue.
            LOG.exception("A command cannot be read")
            raise _Unusable(repr(error)[:200]) from error

    def _read(self, command):
        method = command["method"]
        call = self._manager.call_of(method)
        if call is None or not call.castable:
            raise exception.UnsupportedCall(reason=f"{str(method)[:64]!r} is not a command")
        context, arguments = self._dispatcher.arguments(
            command["version"], method, command["context"], command["args"])
        # A command has no deadline: it waits in the queue for as long as necessary.
        context.deadline = None
        return self._manager.enter(context, method, arguments)

    def _dead_letter(self, message, reason, whole=True):
        LOG.error("A command goes to the dead letters: %s", reason)
        self._dead_letters.dead_letter(self._channel, message, self._queue, reason, whole)


def _is_outage(error):
    """Return whether an error says that the store cannot be used now."""
    return (isinstance(error, exception.PlacementException) and error.retryable
            and not isinstance(error, exception.StoreBusy))


def _is_failure(error):
    """Return whether an error is not due to the command, which may succeed when retried."""
    return error is not None and (
        isinstance(error, exception.StoreBusy)
        or not isinstance(error, exception.PlacementException))
