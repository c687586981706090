# SPDX-License-Identifier: Apache-2.0
"""Events by their position, for those who have no broker to listen to."""

from placement_rpc import exception
from placement_rpc.db.queries import events as queries
from placement_rpc.objects import base, fields

_POSITION = 2 ** 63 - 1


@base.PlacementObjectRegistry.register
class EventPositions(base.PlacementObject):
    """Where the events begin and end.

    ``last`` is the newest position: what was read after it was has everything in it that the
    events up to there tell. ``oldest`` is the oldest that is kept, and one more than ``last``
    where none is.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "oldest": fields.field(fields.WholeNumber(maximum=_POSITION)),
        "last": fields.field(fields.WholeNumber(maximum=_POSITION)),
    }

    @classmethod
    def get(cls, context):
        """:returns: :class:`EventPositions` as they are now"""
        with context.database.reader() as tx:
            return cls.read(tx)

    @classmethod
    def read(cls, tx):
        """As :meth:`get`, in a transaction."""
        oldest, last = queries.bounds(tx)
        return cls(last=last, oldest=last + 1 if oldest is None else oldest)


@base.PlacementObjectRegistry.register
class EventPage(base.PlacementObject):
    """Events in their order, and the position to go on from.

    Each is a mapping of ``position``, ``event_type``, ``event_id``, ``occurred_at`` and
    ``payload``.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "events": fields.field(fields.Several(fields.Json(), maximum=1000)),
        "position": fields.field(fields.WholeNumber(maximum=_POSITION)),
    }


def rows_after(context, after, limit):
    """The rows of events after a position.

    :param after: int; None for the oldest that is kept
    :param limit: int, how many at the most
    :returns: tuple of a list of rows and the position to go on from
    :raises EventsPruned: where some of them are not kept any more
    :raises InvalidInput: for a position that was not given yet
    """
    with context.database.reader() as tx:
        # The rows first: what is pruned meanwhile is missed by neither look.
        rows = queries.after(tx, after or 0, limit)
        bounds = EventPositions.read(tx)
    if after is None:
        after = (rows[0].position if rows else bounds.oldest) - 1
    elif after > max(bounds.last, rows[-1].position if rows else 0):
        raise exception.InvalidInput(
            what="after", reason=f"position {after} was not given yet; the last is {bounds.last}")
    first = rows[0].position if rows else bounds.oldest
    if after + 1 < first and after < bounds.last:
        raise exception.EventsPruned(after=after, oldest=first)
    return rows, rows[-1].position if rows else after
