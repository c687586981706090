# SPDX-License-Identifier: Apache-2.0
"""How far a reader has read the feed of events, and whether the store still has all of that.

A store that has lost changes, as after a failover, may give their positions and row ids to others.
Events are the same if they have the same event id.
"""

from typing import NamedTuple, Self

from placement_rpc.db.queries.feed import Since


class Place(NamedTuple):
    """A place in the feed.

    :param position: the last position that the relay assigned
    :param epoch: of the positions
    :param event_id: of the event at the position; None if it was not stored any more
    :param waiting: the event ids of the events that have no position
    """

    position: int
    epoch: str | None
    event_id: str | None
    waiting: set[str]

    @classmethod
    def after(cls, found: Since) -> Self:
        """Return the place at the end of what was read."""
        return cls(found.position, found.epoch,
                   next((each.event_id for each in found.events
                         if each.position == found.position), None),
                   {each.event_id for each in found.events if each.position is None})

    def is_lost(self, found: Since) -> bool:
        """Return whether the store is another one, or has lost changes from before this place.

        :param found: what was read from this place on
        """
        # Stores of release 2026.2 have no epoch yet.
        if self.epoch not in (None, found.epoch):
            return True
        if any(each.position == self.position and each.event_id != self.event_id
               for each in found.events):
            return True
        return not self.waiting <= {each.event_id for each in found.events}

    def beyond(self, found: Since) -> list:
        """Return the events that were read and are not at this place: those after it, and those
        without a position, among which may be some that waited before.
        """
        return [each for each in found.events if each.position != self.position]
