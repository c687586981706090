# SPDX-License-Identifier: Apache-2.0
"""The server of a request queue on RabbitMQ, which answers a call before it acknowledges it.

An ordinary server of the library acknowledges a call, hands it to a thread, and sends the answer
over a connection of its own. This one answers and then acknowledges: calls that a killed process
held are delivered to another, which recognises by the request id those that were committed. Calls
that can be batched are settled together: those that have arrived, as many as one transaction
takes. The server waits for the first message only, so a lone call is not delayed; the busier the
service, the larger the batches. Answers that may be in memory are looked for together likewise.
The other calls are answered by threads.

The server takes more messages than it works on, and calls of the clients that made them in turns:
see :mod:`placement_rpc.rpc.fair_queue`.

The broker does not confirm answers: a client without an answer retries under the same request id.
"""

import functools
import logging
import threading

from placement_rpc import bodies
from placement_rpc.amqp import topology
from placement_rpc.amqp.broker import CONNECT_TIMEOUT
from placement_rpc.amqp.consumer import Consumer, is_redelivered
from placement_rpc.amqp.frames import FAILURES
from placement_rpc.amqp.reconnect import Reconnect
from placement_rpc.amqp.rejections import Rejections
from placement_rpc.rpc import command_queue, overload, precedence, received, routing
from placement_rpc.rpc.batches import Batches
from placement_rpc.rpc.calls import Calls
from placement_rpc.rpc.monitored_calls import MonitoredCalls
from placement_rpc.rpc.session import Session
from placement_rpc.rpc.thread_pool import thread_pool
from placement_rpc.rpc.turns import Turns

LOG = logging.getLogger(__name__)
# Seconds after which an idle server checks whether it is to stop.
_IDLE = 0.1
# Calls to answer together for each thread, if the queue has threads.
_BATCH = 4
# Messages to take for each place, so that those of other clients are seen behind those of one.
_WINDOW, _FLEET_WINDOW = 8, 16
_CLAIMS_WINDOW = 4
# Large answers that are made at a time: of two, each has the interpreter for half of the time.
_LARGE = 1
# Calls to hold from the queue of this process.
_OWN_WINDOW = 4


class BatchServer:
    """Answers the calls of a request queue.

    A message that is not a call becomes a dead letter. A call that was delivered before may have
    ended the process that worked on it: such calls are worked on one by one, apart from the
    others, and one during which processes end becomes a dead letter, too.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param broker: :class:`placement_rpc.amqp.broker.Broker`
    :param manager: :class:`placement_rpc.manager.Manager`
    :param queues: list of str, the AMQP queues: that of the request queue, and any others
    :param threads: int, how many calls it works on at a time in addition to those that are
        batched or remembered; 0 if all calls of the queue are batched
    :param attempts: :class:`placement_rpc.service.attempts.Attempts`
    :param queue: one of :data:`placement_rpc.rpc.routing.QUEUES`: its batched calls are settled
        together, its remembered ones looked for together, and any other is worked on by itself
    """

    def __init__(self, conf, broker, manager, queues, threads, attempts, queue=None):
        self._options = broker.options
        self._requests = bodies.Limits.of_requests(conf)
        self._dead_letters = command_queue.dead_letter_queue(
            conf.queues, manager.metrics.dead_lettered)
        self._attempts, self._attempts_limit = attempts, conf.queues.calls_attempts
        self._broker = broker
        self._queues = queues
        #: int, how many messages it holds at a time
        self.places = _places(threads, queue, conf)
        # Otherwise one client could fill all places, and calls of others would not be seen. The
        # limit applies to each kind of calls by itself.
        self._for_one = min(
            conf.conductor.calls_per_client, self.places // (1 + _kinds(threads, queue)))
        self._busy, self._counting = 0, threading.Lock()
        self._drain_timeout = conf.conductor.drain_timeout or None
        self._calls = Calls(
            manager, queue, bodies.Limits.of_answers(conf), only_batched=not threads)
        self._threads = threads and Turns(threads, queues[0])
        # Large answers have a thread of their own, which takes its share of the interpreter from
        # the calls that are quick: they must not occupy the other threads.
        self._large_threads = threads and Turns(
            _LARGE, f"{queues[0]}_large", precedence.of_process.give_way)
        # One settles the batches, one looks for answers in memory, and one works on the calls that
        # were delivered before.
        self._aside = thread_pool(3, f"{queues[0]}_aside") if threads else None
        together = _BATCH * threads or conf.conductor.claims_together
        self._batches = Batches(together, self._settle, self._aside)
        self._remembered = Batches(together, self._recall, self._aside)
        # The calls that wait, of each kind.
        self._waiting = [each.queue for each in (
            self._batches, self._remembered, self._threads, self._large_threads) if each]
        self._monitored = MonitoredCalls()
        self._ended, self._listens = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=queues[0], daemon=True)

    @property
    def busy(self) -> int:
        """How many calls it holds: those that wait and those that are being worked on."""
        return self._busy

    def begin(self) -> None:
        """Start, and wait until it consumes; no longer than one attempt to connect may take."""
        self._thread.start()
        self._listens.wait(CONNECT_TIMEOUT)

    def stop(self) -> None:
        """Take no further calls.

        Those that it holds are answered. Were they requeued, others would work on them one by one,
        as on all that was delivered before. RabbitMQ requeues what is on its way meanwhile.
        """
        self._ended.set()

    def wait(self) -> None:
        """Wait until the calls that it holds are answered, ``drain_timeout`` at the most."""
        if self._thread.is_alive():
            self._thread.join(self._drain_timeout)
        if self._thread.is_alive():
            LOG.warning("Calls are left to another process: they take too long, or the store or "
                        "the broker did not answer in time")
        if self._threads:
            # First the one that hands calls over to the others.
            for pool in (self._aside, self._threads, self._large_threads):
                pool.shutdown(wait=not self._thread.is_alive())

    # -- the thread that reads ------------------------------------------------------------

    def _run(self):
        for session in Reconnect(f"Calls to {self._queues[0]}", self._broker, self._ended,
                                 survives=(Exception,),
                                 largest_body=self._requests.size).sessions():
            with session as connection:
                for queue in self._queues:
                    topology.declare_call_queue(
                        connection, queue, routing.EXCHANGE, self._options)
                bindings = topology.KeptBindings(
                    connection, routing.EXCHANGE, self._options,
                    [topology.Binding(queue, queue) for queue in self._queues])
                consumer = Consumer(connection)
                with self._monitored.reported(consumer.answer), Session(
                        consumer, Rejections(connection, consumer, self._dead_letters),
                        self._attempts, self._attempts_limit, self._requests) as found:
                    self._serve(found, bindings)

    def _serve(self, session, bindings):
        consumer = session.consumer
        first, *others = self._queues
        arguments = topology.consumer_arguments(self._options)
        consumer.consume(first, self.places, arguments)
        for queue in others:
            consumer.consume(queue, _OWN_WINDOW, arguments)
        self._listens.set()
        while not self._ended.is_set():
            bindings.keep()
            is_behind = (session.doubtful or self._batches.queue.waiting) and not self._threads
            messages = consumer.receive(0 if is_behind else _IDLE, self.places)
            if messages:
                self._take(session, messages)
            self._batches.work()
            self._remembered.work()
            if session.doubtful:
                self._work_off(session)
            session.rejections.settle()
        consumer.cancel()
        while True:
            if not self._threads:
                self._batches.work()
            busy = self._busy or session.rejections.pending
            messages = consumer.receive(_IDLE / 2 if busy else 0, self.places)
            for message in [*messages, *session.take_doubtful()]:
                consumer.requeue(message)
            session.rejections.settle()
            if not busy:
                return

    def _take(self, session, messages):
        for message in messages:
            if is_redelivered(message):
                # It may have ended a process.
                session.doubtful.append(message)
                continue
            call = self._begun(session, message)
            if call is None:
                continue
            if self._calls.is_batched(call):
                self._queue(session, message, call, [self._batches.queue], functools.partial(
                    self._batches.add, session, message, call))
            elif not self._threads:
                self._work(session, message, call)
            elif self._calls.is_remembered(call):
                # It may have to wait for a thread afterwards.
                self._queue(session, message, call, [
                    self._remembered.queue, self._threads.queue], functools.partial(
                        self._remembered.add, session, message, call))
            else:
                self._hand_over(session, message, call)

    def _hand_over(self, session, message, call):
        """Have a thread work on a call."""
        pool = self._pool(call)
        self._queue(session, message, call, [pool.queue], functools.partial(
            self._submit, pool, session, message, call))

    def _queue(self, session, message, call, queues, add):
        """Have a call wait for its turn, or refuse it if its client has too many.

        :param queues: the calls that wait with it
        :param add: has it wait; callable of the client
        """
        client = overload.client_of(call)
        seconds = max((found for queue in queues if (found := overload.retry_after(
            queue, client, call, self._for_one, self._waiting)) is not None), default=None)
        if seconds is None:
            add(client)
            return
        self._forget([(message, call)])
        session.consumer.answer_all(
            [(call.reply_to, self._calls.overloaded(call, seconds))], [message])

    def _submit(self, pool, session, message, call, client):
        pool.submit(client, self._work, session, message, call)

    def _begun(self, session, message):
        """Return the call in a message; None if the message is rejected."""
        try:
            call = received.call_of(message, self._requests)
        except Exception as error:
            # Whatever is wrong with it, it is wrong with this message only.
            session.reject(message, f"not a call: {str(error) or repr(error)}", error)
            return None
        self._count(1)
        self._monitored.add(call)
        return call

    def _pool(self, call):
        return self._large_threads if self._calls.is_large(call) else self._threads

    def _count(self, change):
        with self._counting:
            self._busy += change

    # -- calls that were delivered before ---------------------------------------------------

    def _work_off(self, session):
        """Work on the calls that were delivered before, one after the other."""
        if not self._threads:
            # Calls that arrive meanwhile do not wait for all of them.
            self._try(session, session.doubtful.popleft())
        elif not session.trying:
            session.trying = True
            self._aside.submit(self._try_all, session)

    def _try_all(self, session):
        try:
            for message in session.take_doubtful():
                self._try(session, message)
                if self._ended.is_set():
                    break
        except FAILURES as error:
            LOG.info("Calls are delivered again: %s", error)
        except Exception:
            LOG.exception("A call that was delivered before cannot be worked on")
            session.consumer.end()
        finally:
            session.trying = False

    def _try(self, session, message):
        """Work on a call by itself, unless processes ended while they worked on it."""
        with session.attempt(message) as may_be_made:
            call = self._begun(session, message) if may_be_made else None
            if call is None:
                return
            if self._calls.is_batched(call):
                self._settle(session, [(message, call)])
            else:
                self._work(session, message, call)

    # -- calls that are answered together --------------------------------------------------------

    def _settle(self, session, batch):
        try:
            if not session.is_over:
                self._settle_all(session, batch)
        finally:
            self._forget(batch)

    def _forget(self, batch):
        self._count(-len(batch))
        self._unmonitor(batch)

    def _unmonitor(self, batch):
        for _, call in batch:
            self._monitored.remove(call)

    def _settle_all(self, session, batch):
        try:
            answers = self._calls.settle([call for _, call in batch])
        except Exception as error:
            if len(batch) > 1:
                # Whatever is wrong with one of them, the others are answered.
                LOG.exception("A batch cannot be settled; each call is settled on its own")
                for each in batch:
                    self._settle_all(session, [each])
                return
            (message, call), = batch
            session.reject(message, f"it cannot be answered: {error!r}",
                           received.expected(call.method, error), whole=True)
            return
        self._answer(session, answers, batch)

    def _recall(self, session, batch):
        """Answer what is in memory, and what is refused; threads work on the other calls."""
        try:
            answers = [] if session.is_over else self._calls.recall([call for _, call in batch])
        except Exception:
            LOG.exception("Looking for answers in memory failed; each of the calls is worked on")
            answers = []
        known = {id(call) for call, _ in answers}
        answered = [each for each in batch if id(each[1]) in known]
        others = [each for each in batch if id(each[1]) not in known]
        try:
            if answered:
                self._answer(session, answers, answered)
        finally:
            self._forget(answered)
            if session.is_over:
                self._forget(others)
            else:
                for message, call in others:
                    self._hand_over_aside(session, message, call)

    def _hand_over_aside(self, session, message, call):
        try:
            self._hand_over(session, message, call)
        except FAILURES as error:
            LOG.info("The refusal of %s is lost with the connection: %s", call.method, error)
        except Exception:
            LOG.exception("No thread can work on %s, which is delivered again", call.method)
            self._forget([(message, call)])
            session.consumer.end()

    def _answer(self, session, answers, batch):
        self._unmonitor(batch)
        session.consumer.answer_all([(call.reply_to, body) for call, body in answers],
                                    [message for message, _ in batch])

    # -- the other calls --------------------------------------------------------------------

    def _work(self, session, message, call):
        try:
            if session.is_over:
                # It waited until the connection was lost, and is delivered again.
                return
            body = self._calls.answer(call)
            self._monitored.remove(call)
            session.consumer.answer_all([(call.reply_to, body)], [message])
        except FAILURES as error:
            LOG.info("The answer to %s is lost with the connection: %s", call.method, error)
        except Exception as error:
            LOG.exception("The answer to %s cannot be made", call.method)
            session.reject(message, f"it cannot be answered: {error!r}",
                           received.expected(call.method, error), whole=True)
        finally:
            self._monitored.remove(call)
            self._count(-1)


def _places(threads, queue, conf):
    if not threads:
        return _CLAIMS_WINDOW * conf.conductor.claims_together
    # Few enough to leave calls for other processes.
    return (_WINDOW if queue is None else _FLEET_WINDOW) * threads


def _kinds(threads, queue):
    """Return how many kinds of calls wait apart from each other."""
    if not threads:
        return 1
    # Large answers and others; or calls that are batched, those that are remembered, and others.
    return 2 if queue is None else 3
