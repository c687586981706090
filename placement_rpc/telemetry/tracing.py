# SPDX-License-Identifier: Apache-2.0
"""Traces of OpenTelemetry: off until a process calls :func:`begin`.

This is what the parts of the service use. What travels with a message, and the export of spans,
is oslo.messaging's: see :mod:`placement_rpc.rpc.tracing`. ``opentelemetry`` is imported only if
traces are on.
"""

import contextlib
from collections.abc import Iterable
from typing import Any

_tracer: Any = None


def begin(tracer: Any) -> None:
    """Begin to make spans, in the whole process.

    :param tracer: an ``opentelemetry.trace.Tracer``; None to make no more spans
    """
    global _tracer
    _tracer = tracer


def part(name: str) -> contextlib.AbstractContextManager | None:
    """Return a context manager that is a span within the current one; None without traces.

    Work outside of a trace, such as the polling of housekeeping, makes no spans.
    """
    if _tracer is None:
        return None
    from opentelemetry import trace

    if not trace.get_current_span().is_recording():
        return None
    return _tracer.start_as_current_span(name)


def root(name: str, of: Iterable[Any] = (),
         **attributes: Any) -> contextlib.AbstractContextManager:
    """Return a context manager that is a trace of its own, for work that belongs to many calls.

    :param of: the spans whose work it does, to which it links
    :param attributes: of the span
    """
    if _tracer is None:
        return contextlib.nullcontext()
    from opentelemetry import context, trace

    return _tracer.start_as_current_span(
        name, context=context.Context(), attributes=attributes, links=[
            trace.Link(span.get_span_context()) for span in of])


def current() -> Any:
    """Return the current span; None without traces."""
    if _tracer is None:
        return None
    from opentelemetry import trace

    return trace.get_current_span()
