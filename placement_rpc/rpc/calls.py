# SPDX-License-Identifier: Apache-2.0
"""Turn the calls of a request queue into answers, one by one or in batches."""

import functools
import logging
import time
from typing import Any

from placement_rpc import bodies, exception
from placement_rpc.rpc import dispatcher, envelope, precedence, received
from placement_rpc.rpc.tracing import Tracing
from placement_rpc.telemetry import spans

LOG = logging.getLogger(__name__)


class Calls:
    """Has calls processed by a manager; it knows nothing of the broker.

    :param manager: :class:`placement_rpc.manager.Manager`
    :param queue: one of :data:`placement_rpc.rpc.routing.QUEUES`, whose batched calls are settled
        together and whose remembered ones are looked for together; None if no call is
    :param limits: of the answers
    :param only_batched: whether the queue serves no other calls
    """

    def __init__(self, manager: Any, queue: str | None, limits: bodies.Limits,
                 only_batched: bool = False) -> None:
        self._manager = manager
        self._tracing = Tracing(manager.conf)
        self._queue = queue
        self._answers = limits
        self._only_batched = only_batched
        self._dispatcher = dispatcher.Dispatcher(manager, manager.release, manager.seen_clients)

    def is_batched(self, call: envelope.Call) -> bool:
        """Return whether a call is settled together with others."""
        found = self._manager.call_of(call.method)
        return found is not None and found.batched and found.queue == self._queue

    def is_remembered(self, call: envelope.Call) -> bool:
        """Return whether the answer to a call may be in memory; see :meth:`recall`."""
        found = self._manager.call_of(call.method)
        return found is not None and found.remembered and found.queue == self._queue

    def is_large(self, call: envelope.Call) -> bool:
        """Return whether the answer to a call may be large."""
        found = self._manager.call_of(call.method)
        return found is not None and found.is_large(call.args)

    def answer(self, call: envelope.Call) -> str:
        """Return the body of the answer to a call that is not batched."""
        try:
            if self._only_batched:
                raise exception.UnsupportedCall(
                    reason=f"{str(call.method)[:64]} is not served by this queue")
            with self._tracing.receiving(call):
                return envelope.seal_answer(call, self._dispatcher.answer(
                    call.version, call.method, call.context, call.args, call.namespace),
                    limits=self._answers, in_pieces=self.is_large(call))
        except Exception as error:
            return received.refused(call, error)[1]

    def overloaded(self, call: envelope.Call, retry_after: float) -> str:
        """Return the body of the answer to a call that is refused, because its client has many.

        :param retry_after: seconds
        """
        self._manager.metrics.refused(self._queue or "calls")
        return received.overloaded(
            call, "this client has more calls waiting than its share", retry_after)

    def settle(self, calls: list[envelope.Call]) -> list[tuple[envelope.Call, str]]:
        """Settle calls; return a list of each call and the body of its answer."""
        with precedence.of_process.quick():
            return self._together(
                calls, functools.partial(self._manager.settle, self._queue), self._manager.answer)

    def recall(self, calls: list[envelope.Call]) -> list[tuple[envelope.Call, str]]:
        """Answer the calls of which the answers are in memory, and those that are refused.

        :returns: list of each of these calls and the body of its answer; the others have to be
            worked on
        """
        return self._together(calls, self._known, lambda result: result)

    def _known(self, pending):
        try:
            return self._manager.recall(pending)
        except exception.PlacementException:
            raise
        except Exception:
            # Those that are refused are answered now, and the others not with this error.
            LOG.exception("Looking for answers in memory failed")
            return [None] * len(pending)

    def _together(self, calls, ask, read):
        """Answer calls together.

        :param ask: callable of a list of pending calls; returns what it found for each of them,
            None for no answer
        :param read: callable that returns the result in what was found, or raises an error
        """
        began = time.perf_counter()
        with self._tracing.batch(calls), spans.collected() as spent:
            answers = list(self._outcomes(calls, ask, read))
        seconds = time.perf_counter() - began
        for call, _, outcome in answers:
            self._manager.metrics.answered(
                call.method, outcome, seconds, spent,
                call.args.get("request_id") if isinstance(call.args, dict) else None)
        return [(call, body) for call, body, _ in answers]

    def _outcomes(self, calls, ask, read):
        """Yield each call, the body of its answer, and ``done`` or the code of an error."""
        asked = []
        for call in calls:
            try:
                with spans.span("reading"):
                    asked.append((call, *self._entered(call)))
            except Exception as error:
                yield received.refused(call, error)
        if not asked:
            return
        try:
            found = ask([each for *_, each in asked])
        except Exception as error:
            for call, *_ in asked:
                yield received.refused(call, error)
            return
        for (call, context, _), each in zip(asked, found, strict=True):
            if each is None:
                continue
            try:
                with spans.span("writing"):
                    result = self._dispatcher.serializer.serialize_entity(context, read(each))
                    yield call, envelope.seal_answer(
                        call, result, limits=self._answers), "done"
            except Exception as error:
                yield received.refused(call, error)

    def _entered(self, call):
        context, arguments = self._dispatcher.arguments(
            call.version, call.method, call.context, call.args, call.namespace)
        return context, self._manager.enter(context, call.method, arguments)
