# SPDX-License-Identifier: Apache-2.0
"""The server of the claims' intake on RabbitMQ: a batch of messages, one transaction.

An ordinary server of the library acknowledges a call, hands it to a thread, and sends each answer
by itself. This one takes as many messages as there are, settles them together, publishes the
answers in one go, and only then acknowledges: what a process held that died is delivered to
another, which knows by the request id what of it was committed. It waits for nothing but the
first message, so a lone claim is not delayed; the busier the service, the larger the batches.

Answers are not confirmed by the broker: a client that gets none asks again under the same
request id.
"""

import logging
import threading
import time
import uuid

import amqp

from placement_rpc import bus, exception, intakes, rabbit, stages, wire

LOG = logging.getLogger(__name__)

_PAUSE = 1.0
# Seconds after which an idle server looks whether it is to end.
_IDLE = 0.5
# How often the broker delivers a message that nobody survives, unless an operator says otherwise.
_DELIVERY_LIMIT = 20


class ClaimServer:
    """Answers the calls of the claims' intake.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param broker: :class:`placement_rpc.rabbit.Broker`
    :param manager: :class:`placement_rpc.manager.Manager`
    :param topic: str, where the service listens
    """

    def __init__(self, conf, broker, manager, topic=bus.TOPIC):
        self._options = conf.oslo_messaging_rabbit
        #: int, how many messages it takes at a time
        self.places = self._most = conf.conductor.claims_together
        #: int, how many it works on
        self.busy = 0
        self._drain_timeout = conf.conductor.drain_timeout or None
        self._broker = broker
        self._manager = manager
        self._topic = intakes.name(topic, intakes.CLAIMS)
        self._dispatcher = bus.Dispatcher(manager, manager.release, manager.callers)
        self._ended = threading.Event()
        self._listens = threading.Event()
        self._thread = threading.Thread(target=self._run, name="claims", daemon=True)

    def begin(self):
        """Start, and wait until it listens; no longer than a broker that is away lets it."""
        self._thread.start()
        self._listens.wait(rabbit.CONNECT_TIMEOUT)

    def stop(self):
        """Take in nothing after the batch at hand; the rest goes back to the queue."""
        self._ended.set()

    def wait(self):
        """Wait until the batch at hand is settled."""
        if self._thread.is_alive():
            self._thread.join(self._drain_timeout)
        if self._thread.is_alive():
            LOG.warning("Claims at hand are left to another process: the store or the broker "
                        "did not answer in time")

    def _run(self):
        while not self._ended.is_set():
            try:
                with self._broker.connected() as connection:
                    self._declare(connection)
                    self._serve(connection)
            except (*rabbit.FAILURES, rabbit.Unsuitable) as error:
                LOG.warning("The claims' intake waits for the broker: %s", error)
            except Exception:
                LOG.exception("The claims' intake failed; it begins anew")
            self._ended.wait(_PAUSE)

    def _declare(self, connection):
        """As the library declares the queue of a topic."""
        options = self._options
        channel = connection.channel()
        rabbit.declare_exchange(channel, bus.EXCHANGE, options)
        channel.close()
        if not options.rabbit_quorum_queue:
            channel = connection.channel()
            channel.queue_declare(self._topic, durable=options.amqp_durable_queues,
                                  auto_delete=options.amqp_auto_delete)
        else:
            rabbit.declare(connection, self._topic, _arguments(options))
            channel = connection.channel()
        channel.queue_bind(self._topic, bus.EXCHANGE, self._topic)
        channel.close()

    def _serve(self, connection):
        intake = rabbit.Intake(connection, self._topic, self._most)
        replies = connection.channel()
        self._listens.set()
        while not self._ended.is_set():
            messages = intake.receive(_IDLE, self._most)
            self.busy = len(messages)
            if not messages:
                continue
            calls = _calls(messages)
            for call in calls:
                if call.monitored:
                    _publish(replies, call, wire.sealed(call, ending=False))
            for call, body in self._answers(calls):
                _publish(replies, call, body)
            intake.acknowledge(messages[-1])

    def _answers(self, calls):
        """Settle what is asked for.

        :param calls: list of :class:`placement_rpc.wire.Call`
        :returns: list of tuples of call and the answer's body
        """
        began = time.perf_counter()
        with stages.collected() as spent:
            answers = list(self._outcomes(calls))
        seconds = time.perf_counter() - began
        for call, _, outcome in answers:
            if call.method in intakes.METHODS[intakes.CLAIMS]:
                self._manager.metrics.answered(
                    call.method, outcome, seconds, spent, call.args.get("request_id"))
        return [(call, body) for call, body, _ in answers]

    def _outcomes(self, calls):
        """:returns: generator of call, the answer's body, and ``done`` or the code of an error"""
        asked = []
        for call in calls:
            try:
                with stages.stage("reading"):
                    asked.append((call, *self._settlement(call)))
            except Exception as error:
                yield _refused(call, error)
        yield from self._settled(asked)

    def _settlement(self, call):
        context, arguments = self._dispatcher.arguments(
            call.version, call.method, call.context, call.args, call.namespace)
        if call.method not in intakes.METHODS[intakes.CLAIMS]:
            raise exception.UnsupportedCall(reason=f"{call.method} is not called here")
        context.database = self._manager.database
        return context, self._manager.settlement(context, call.method, arguments)

    def _settled(self, asked):
        if not asked:
            return
        try:
            outcomes = self._manager.group_commit.settle([each for *_, each in asked])
        except exception.PlacementException as error:
            for call, *_ in asked:
                yield _refused(call, error)
            return
        for (call, context, _), settled in zip(asked, outcomes, strict=True):
            try:
                with stages.stage("writing"):
                    yield call, wire.sealed(call, self._dispatcher.serializer.serialize_entity(
                        context, self._manager.answer(settled))), "done"
            except Exception as error:
                yield _refused(call, error)


def _calls(messages):
    """:returns: list of :class:`placement_rpc.wire.Call`; what is none is dropped"""
    calls = []
    for message in messages:
        try:
            calls.append(wire.opened(
                message.body, (message.headers or {}).get("compression")))
        except ValueError as error:
            LOG.warning("A message that is no call is dropped: %s", error)
    return calls


def _publish(channel, call, body):
    if call.reply_to is not None:
        channel.basic_publish(
            amqp.Message(body, content_type="application/json", content_encoding="utf-8",
                         delivery_mode=1),
            exchange="", routing_key=call.reply_to)


def _arguments(options):
    """The arguments of a quorum queue, as the library declares it, and a limit to deliveries."""
    arguments = {"x-queue-type": "quorum"}
    for name, value in (
            ("x-delivery-limit", options.rabbit_quorum_delivery_limit or _DELIVERY_LIMIT),
            ("x-max-in-memory-length", options.rabbit_quorum_max_memory_length),
            ("x-max-in-memory-bytes", options.rabbit_quorum_max_memory_bytes)):
        if value:
            arguments[name] = value
    return arguments


def _refused(call, error):
    """:returns: tuple of call, the answer's body and the code, of a call that an error ended"""
    if not isinstance(error, exception.PlacementException):
        incident = str(uuid.uuid4())
        LOG.error("Incident %s: %s failed", incident, call.method, exc_info=error)
        error = exception.RemoteFailure(method=str(call.method)[:64], incident=incident)
    error.__cause__ = error.__context__ = None
    return call, wire.sealed(call, error=error.with_traceback(None)), error.code
