# SPDX-License-Identifier: Apache-2.0
"""Spans: the time that each part of a call takes, for the log line of a slow call and for traces.

Code that may take long names itself with ``with span("database"):``. Outside of a call that is
being measured, that costs next to nothing.
"""

import contextlib
import threading
import time

from placement_rpc.telemetry import tracing

_local = threading.local()


@contextlib.contextmanager
def collected():
    """Collect the spans of this thread for a block.

    :returns: context manager that gives a dict of span name to seconds, excluding the time of
        nested spans
    """
    before = getattr(_local, "stack", None), getattr(_local, "spent", None)
    spent = {}
    _local.stack, _local.spent = [], spent
    try:
        yield spent
    finally:
        _local.stack, _local.spent = before


class span:  # noqa: N801
    """A context manager that measures one part of a call.

    :param name: str
    """

    __slots__ = ("_began", "_name", "_traced", "_within")

    def __init__(self, name):
        self._name = name

    def __enter__(self):
        self._traced = tracing.part(self._name)
        if self._traced is not None:
            self._traced.__enter__()
        stack = getattr(_local, "stack", None)
        if stack is not None:
            self._within = 0.0
            stack.append(self)
            self._began = time.perf_counter()

    def __exit__(self, *_error):
        if self._traced is not None:
            self._traced.__exit__(None, None, None)
        stack = getattr(_local, "stack", None)
        if not stack or stack[-1] is not self:
            return
        took = time.perf_counter() - self._began
        stack.pop()
        _local.spent[self._name] = _local.spent.get(self._name, 0.0) + took - self._within
        if stack:
            stack[-1]._within += took
