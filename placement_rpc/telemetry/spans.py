# SPDX-License-Identifier: Apache-2.0
"""Where the time of a call goes, for the line that tells of a slow one.

Whoever does something that may take long says what it is: ``with stage("database"):``. Outside of
a call that is watched this costs next to nothing.
"""

import contextlib
import threading
import time

_local = threading.local()


@contextlib.contextmanager
def collected():
    """Collect the stages of this thread for a block.

    :returns: context manager giving a dict of stage to seconds, without those of the stages in it
    """
    before = getattr(_local, "stack", None), getattr(_local, "spent", None)
    spent = {}
    _local.stack, _local.spent = [], spent
    try:
        yield spent
    finally:
        _local.stack, _local.spent = before


class span:  # noqa: N801
    """A block that is one stage of a call.

    :param name: str
    """

    __slots__ = ("_began", "_name", "_within")

    def __init__(self, name):
        self._name = name

    def __enter__(self):
        stack = getattr(_local, "stack", None)
        if stack is not None:
            self._within = 0.0
            stack.append(self)
            self._began = time.perf_counter()

    def __exit__(self, *_error):
        stack = getattr(_local, "stack", None)
        if not stack or stack[-1] is not self:
            return
        took = time.perf_counter() - self._began
        stack.pop()
        _local.spent[self._name] = _local.spent.get(self._name, 0.0) + took - self._within
        if stack:
            stack[-1]._within += took
