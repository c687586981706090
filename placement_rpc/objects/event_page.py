# SPDX-License-Identifier: Apache-2.0
"""Events by their position, for those who have no broker to listen to."""

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
