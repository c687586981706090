# SPDX-License-Identifier: Apache-2.0
"""The trace context in messages, as oslo.messaging writes and reads it.

Its option ``[oslo_messaging_tracing] tracing_enabled`` turns traces on, for this project's clients
and servers as for those of the library, which see each other's spans.
"""

import contextlib
import dataclasses
import logging
from collections.abc import Iterable, Iterator
from typing import Any

import oslo_messaging
from oslo_config import cfg
from oslo_messaging._tracing import client as library

from placement_rpc.rpc import envelope
from placement_rpc.telemetry import tracing

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class _Received:
    """What the library reads of a message."""

    ctxt: dict[str, Any]
    message: dict[str, Any]
    msg_id: str | None


class Tracing:
    """The spans of calls that one process sends or receives.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._is_on = conf.oslo_messaging_tracing.tracing_enabled
        if self._is_on:
            try:
                tracing.begin(library._get_tracer(conf))
            except Exception as error:
                # A program must not fail for want of its traces.
                self._is_on = False
                LOG.error("There are no traces: %s: %s", type(error).__name__, error)

    def sending(self, topic: str, method: str,
                context: dict[str, Any]) -> contextlib.AbstractContextManager:
        """Return a context manager that is the span of a call at its client.

        :param context: as it travels; the trace context is added to it
        """
        if not self._is_on:
            return contextlib.nullcontext()
        return library.trace_send(
            self._conf, oslo_messaging.Target(topic=topic), method, "call", context)

    def receiving(self, call: envelope.Call) -> contextlib.AbstractContextManager:
        """Return a context manager that is the span of a call at its server."""
        if not self._is_on:
            return contextlib.nullcontext()
        return library.trace_receive(self._conf, _Received(
            _texts(call.context), {"method": str(call.method)[:64]}, call.message_id))

    @contextlib.contextmanager
    def batch(self, calls: Iterable[envelope.Call]) -> Iterator[None]:
        """Make the spans of calls that are settled or looked for together, and of their batch.

        The batch is a trace of its own, which links to those of its calls.
        """
        if not self._is_on:
            yield
            return
        with contextlib.ExitStack() as stack:
            spans = []
            for call in calls:
                stack.enter_context(self.receiving(call))
                spans.append(tracing.current())
            with tracing.root("batch", spans, calls=len(spans)):
                yield


def _texts(context):
    """Return the texts of a received context: the library expects nothing else."""
    return {name: value for name, value in context.items() if isinstance(value, str)}
