# SPDX-License-Identifier: Apache-2.0
"""The consumer of the command queue: a command is committed first and acknowledged then.

One conductor at a time consumes the queue, so that commands are settled in the order in which they
were sent; another takes over when it dies. RabbitMQ delivers unacknowledged commands again, and
those that had been committed are recognised by their request id.
"""

import logging
import threading

from placement_rpc import exception
from placement_rpc.accounting.batch import Outcome
from placement_rpc.amqp import consumer, dead_letters, publisher
from placement_rpc.amqp.broker import FAILURES, wait
from placement_rpc.db.queries import commands as queries
from placement_rpc.rpc import command_queue, dispatcher, routing

LOG = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_STOP_TIMEOUT = 30


class _ToldToStop(Exception):
    """The consumer was stopped during a wait."""


class CommandConsumer:
    """Consume the commands of a topic.

    A command that cannot be parsed becomes a dead letter. While the database is unreachable, the
    received commands are kept and retried until it is back. A command that fails otherwise, or
    during which the worker dies, is tried ``[queues] commands_attempts`` times and then becomes a
    dead letter.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param broker: :class:`placement_rpc.amqp.broker.Broker`
    :param manager: :class:`placement_rpc.manager.Manager`
    :param topic: str, the topic of the service
    """

    def __init__(self, conf, broker, manager, topic=routing.TOPIC):
        self._options = conf.queues
        self._broker = broker
        self._manager = manager
        self._topic = topic
        self._queue = command_queue.name(topic)
        # Not limited by the pin: a queued command of any release that this program knows must not
        # be lost.
        self._dispatcher = dispatcher.Dispatcher(manager, seen_clients=manager.seen_clients)
        self._ended = threading.Event()
        self._pause = _FIRST_PAUSE
        self._thread = threading.Thread(target=self._run, name="commands", daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        """Finish the current commands and stop; RabbitMQ requeues those that were not begun."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_TIMEOUT)
        if self._thread.is_alive():
            LOG.warning("Commands at hand are left to another process: the broker hangs")

    def _run(self):
        while not self._ended.is_set():
            try:
                with self._broker.connected() as connection:
                    command_queue.declare(connection, self._topic, self._options)
                    self._consume(connection)
            except _ToldToStop:
                LOG.info("Commands at hand go back to their queue")
            except (publisher.Unconfirmed, *FAILURES) as error:
                LOG.warning("Commands wait for the broker: %s", error)
            except Exception:
                LOG.exception("Commands failed; the queue is opened anew")
            self._ended.wait(self._pause)
            self._pause = min(_LONGEST_PAUSE, 2 * self._pause)

    def _consume(self, connection):
        graves = publisher.ConfirmedChannel(connection)
        intake = consumer.QueueConsumer(connection, self._queue)
        while not self._ended.is_set():
            received = intake.receive(0.5, self._options.commands_batch)
            # If one was delivered before, a worker may have died on it: settle them one by one.
            doubtful = any(map(consumer.deliveries, received))
            for batch in [[message] for message in received] if doubtful else [received]:
                self._work(connection, graves, batch, doubtful)
                if batch:
                    intake.acknowledge(batch[-1])
                    # The broker works again.
                    self._pause = _FIRST_PAUSE

    def _work(self, connection, graves, batch, doubtful):
        """Settle commands; those that cannot be settled become dead letters."""
        commands = []
        for message in batch:
            try:
                commands.append((message, self._settlement(message)))
            except exception.PlacementException as error:
                self._bury(graves, message, f"{error.code}: {error.text}")
            except Exception as error:
                # Requeueing it would loop for ever and block the queue.
                LOG.exception("A command can not be read")
                self._bury(graves, message, repr(error)[:200])
        if doubtful:
            for message, settlement in commands:
                self._try(connection, graves, message, settlement)
            return
        answers = self._settle(connection, [settlement for _, settlement in commands])
        for (message, settlement), settled in zip(commands, answers, strict=True):
            self._conclude(connection, graves, message, settlement, settled.error)

    def _conclude(self, connection, graves, message, settlement, error):
        """Retry or dead-letter a command that was not settled."""
        if isinstance(error, exception.RequestIdReused):
            # Its id belongs to another request, so no outcome can ever be stored for it.
            self._bury(graves, message, f"{error.code}: {error.text}")
        elif _is_failure(error):
            self._try(connection, graves, message, settlement, repr(error))

    def _try(self, connection, graves, message, settlement, error=None):
        """Settle a command by itself, counting the attempts."""
        request_id, pause = settlement.request.request_id, _FIRST_PAUSE
        counted = str((message.headers or {}).get(dead_letters.REPLAYED) or request_id)[:64]
        while self._insist(
                connection, lambda: self._count(counted)) <= self._options.commands_attempts:
            settled, = self._settle(connection, [settlement])
            if not _is_failure(settled.error):
                self._conclude(connection, graves, message, settlement, settled.error)
                return
            error = repr(settled.error)
            LOG.error("Command %s failed and is tried again: %s", request_id, error)
            self._wait(connection, pause)
            pause = min(_LONGEST_PAUSE, 2 * pause)
        self._bury(graves, message, error or "whoever worked on it died each time")

    def _count(self, counted):
        return self._manager.database.write(
            lambda tx: queries.count_attempt(tx, counted), "command")

    def _settle(self, connection, settlements):
        """Return the list of outcomes, after waiting until the database can be reached."""
        def settle():
            try:
                answers = self._manager.group_commit.settle(settlements)
            except exception.StoreBusy as error:
                return [Outcome(error=error) for _ in settlements]
            for settled in answers:
                if isinstance(settled.error, exception.StoreUnavailable):
                    raise settled.error
            return answers

        return self._insist(connection, settle) if settlements else []

    def _insist(self, connection, do):
        """Return what a callable returns, retrying while the database is unreachable.

        :raises _ToldToStop: if the consumer is stopped meanwhile
        """
        pause = _FIRST_PAUSE
        while True:
            try:
                return do()
            except exception.PlacementException as error:
                if not error.retryable:
                    raise
                LOG.warning("Commands wait for the store: %s", error)
            # The messages are kept meanwhile: requeueing them would count as a delivery.
            self._wait(connection, pause)
            pause = min(_LONGEST_PAUSE, 2 * pause)

    def _wait(self, connection, seconds):
        if self._ended.is_set():
            raise _ToldToStop
        wait(connection, seconds)

    def _settlement(self, message):
        """Return the pending request of a message.

        :raises PlacementException: if the message cannot be parsed
        """
        command = command_queue.opened(message.body)
        method = command["method"]
        call = self._manager.call_of(method)
        if call is None or not call.castable:
            raise exception.UnsupportedCall(reason=f"{str(method)[:64]!r} is no command")
        context, arguments = self._dispatcher.arguments(
            command["version"], method, command["context"], command["args"])
        # A command has no deadline: it waits in the queue for as long as necessary.
        context.deadline = None
        return self._manager.enter(context, method, arguments)

    def _bury(self, graves, message, reason):
        LOG.error("A command goes to the dead letters: %s", reason)
        dead_letters.dead_letter(graves, self._options, message, self._queue, reason)


def _is_failure(error):
    """Return whether a retry may succeed: the error is not the command's outcome."""
    return error is not None and (
        isinstance(error, exception.StoreBusy)
        or not isinstance(error, exception.PlacementException))
