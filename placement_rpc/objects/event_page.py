# SPDX-License-Identifier: Apache-2.0
"""Events by position, for clients without access to the broker."""

from placement_rpc.objects import base, fields

_POSITION = 2 ** 63 - 1


@base.PlacementObjectRegistry.register
class EventPositions(base.PlacementObject):
    """The oldest and the newest position of events.

    Everything that is read after ``last`` was determined includes the changes of all events up to
    it. ``oldest`` is the position of the oldest event that is kept, and ``last`` + 1 if there is
    none.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "oldest": fields.field(fields.WholeNumber(maximum=_POSITION)),
        "last": fields.field(fields.WholeNumber(maximum=_POSITION)),
    }


@base.PlacementObjectRegistry.register
class EventPage(base.PlacementObject):
    """Events in order, and the position to continue from.

    Each is a mapping of ``position``, ``event_type``, ``event_id``, ``occurred_at`` and
    ``payload``.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "events": fields.field(fields.Several(fields.Json(), maximum=1000)),
        "position": fields.field(fields.WholeNumber(maximum=_POSITION)),
    }
