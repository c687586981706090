# SPDX-License-Identifier: Apache-2.0
"""Who calls, on whose behalf, and until when the answer is wanted."""

import time

from oslo_context import context as oslo_context

from placement_rpc import exception

_WIRE_FIELDS = ("user_id", "project_id", "roles", "request_id", "global_request_id", "deadline")


class RequestContext(oslo_context.RequestContext):
    """The context of one call.

    :param deadline: float, seconds since the epoch after which the caller no longer waits; None
        for no deadline. Both ends need synchronised clocks.
    :param kwargs: see :class:`oslo_context.context.RequestContext`

    On the server it also carries ``database``, the store that the call works on; it is never
    sent. Neither is a token: a context reaches logs and queues.
    """

    def __init__(self, deadline=None, database=None, **kwargs):
        kwargs.setdefault("overwrite", False)
        super().__init__(**kwargs)
        self.deadline = deadline
        self.database = database

    def to_dict(self):
        """What travels with a message: JSON types, and only what is set."""
        values = ((name, getattr(self, name)) for name in _WIRE_FIELDS)
        return {name: value for name, value in values if value not in (None, [])}

    @classmethod
    def from_dict(cls, values, **kwargs):
        """Rebuild the context of a message; what this release does not know is dropped."""
        if not isinstance(values, dict):
            raise exception.InvalidInput(what="context", reason="it is not a mapping")
        deadline = values.get("deadline")
        if deadline is not None and type(deadline) not in (int, float):
            raise exception.InvalidInput(what="deadline", reason="it is not a number")
        known = {name: values[name] for name in _WIRE_FIELDS if name in values}
        return cls(**known, **kwargs)

    def check_deadline(self):
        """:raises RequestExpired: when the caller has stopped waiting (DESIGN rule 5)"""
        if self.deadline is not None and time.time() > self.deadline:
            raise exception.RequestExpired(late=round(time.time() - self.deadline, 3))
