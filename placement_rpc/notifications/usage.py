# SPDX-License-Identifier: Apache-2.0
"""Resource-hours, worked out from events alone.

::

    account = UsageAccount(begin, end)
    for event in events:
        account.apply(event)
    if account.complete:
        bill(account.lines())
"""

import collections
import dataclasses
import datetime
import decimal

_MICROSECOND = datetime.timedelta(microseconds=1)
_MICROSECONDS_AN_HOUR = 3_600_000_000
_ALLOCATIONS = frozenset((
    "allocation.create", "allocation.update", "allocation.delete", "allocation.exists"))


@dataclasses.dataclass(frozen=True, slots=True)
class UsageLine:
    """What a project and user used of one class of one provider.

    ``resource_hours`` is the amount times the hours for which it was held, a
    :class:`decimal.Decimal`; ``held`` is the amount at the end of the time.
    """

    project_id: str
    user_id: str
    resource_class: str
    provider_uuid: str
    resource_hours: decimal.Decimal
    held: int


@dataclasses.dataclass(slots=True)
class _Holding:
    """What a consumer holds: by provider and class, whose it is, and since when."""

    owner: tuple
    amounts: dict
    since: datetime.datetime


class UsageAccount:
    """Accounts for what was held between two times.

    Events are applied in the order of their positions, from any position on; when they are
    enough to know all that was held, the account is :attr:`complete`: they begin with the very
    first event, or with a snapshot that began before the time and is whole, and none is missing
    since. Events from after the time may be applied and change nothing.

    :param begin: datetime with a zone
    :param end: datetime with a zone, after which nothing counts
    """

    def __init__(self, begin, end):
        self.begin = begin
        self.end = end
        #: int, the position of the last event that was applied; None before the first
        self.position = None
        self._restart()
        self._complete = False

    def _restart(self):
        """Forget everything; nothing of the time itself has been accounted for yet."""
        self._holdings = {}
        self._hours = collections.Counter()
        # Consumers of which something was told after the end: what they held then is known.
        self._final = set()
        self._snapshot = None
        self._exists = 0

    @property
    def complete(self):
        """bool, whether everything that was held in the time is known"""
        return self._complete

    def apply(self, event):
        """Take an event into account.

        :param event: :class:`placement_rpc.notifications.event.Event`; one that was applied
            before changes nothing
        """
        if self.position is not None and event.position <= self.position:
            return
        if event.position == 1:
            self._complete = True
        elif self.position is not None and event.position > self.position + 1:
            # What is missing may be anything.
            self._complete, self._snapshot = False, None
        self.position = event.position
        if event.event_type == "allocation.snapshot.begin":
            self._begin_snapshot(event)
        elif event.event_type == "allocation.snapshot.end":
            self._end_snapshot(event)
        elif event.event_type == "resource_class.update":
            self._rename(event)
        elif event.event_type in _ALLOCATIONS:
            self._exists += event.event_type == "allocation.exists"
            self._allocate(event)

    def _begin_snapshot(self, event):
        if not self._complete and event.time <= self.begin:
            self._restart()
            self._snapshot = event.payload["snapshot_id"]

    def _end_snapshot(self, event):
        if event.payload["snapshot_id"] == self._snapshot and (
                event.payload["consumers"] == self._exists):
            self._complete = True

    def _rename(self, event):
        old, new = event.payload["previous_name"], event.payload["name"]
        for holding in self._holdings.values():
            for provider, name in [key for key in holding.amounts if key[1] == old]:
                holding.amounts[provider, new] = holding.amounts.pop((provider, name))

    def _allocate(self, event):
        payload = event.payload
        consumer = payload["consumer_uuid"]
        if consumer in self._final:
            return
        holding = self._holdings.get(consumer)
        if holding is None:
            # Whatever it held before it has held since the account began.
            holding = _Holding(
                (payload["previous_project_id"], payload["previous_user_id"]),
                _amounts(payload, "before"), self.begin)
            self._holdings[consumer] = holding
        if event.time >= self.end:
            self._final.add(consumer)
            return
        # Clocks of two conductors may differ by a little.
        now = max(holding.since, event.time)
        self._accrue(self._hours, holding, now)
        holding.owner = payload["project_id"], payload["user_id"]
        holding.amounts = _amounts(payload, "after")
        holding.since = now
        if not holding.amounts:
            del self._holdings[consumer]

    def _accrue(self, hours, holding, until):
        length = (min(until, self.end) - max(holding.since, self.begin)) // _MICROSECOND
        if length > 0:
            for (provider, name), amount in holding.amounts.items():
                hours[*holding.owner, name, provider] += amount * length

    def lines(self):
        """:returns: list of :class:`UsageLine`, by project, user, class and provider"""
        hours, held = self._hours.copy(), collections.Counter()
        for holding in self._holdings.values():
            self._accrue(hours, holding, self.end)
            for (provider, name), amount in holding.amounts.items():
                held[*holding.owner, name, provider] += amount
        return [UsageLine(
            *key, decimal.Decimal(hours[key]) / _MICROSECONDS_AN_HOUR, held[key])
            for key in sorted(hours.keys() | held.keys())]


def _amounts(payload, side):
    """:returns: dict of provider and class to amount"""
    return {(each["provider_uuid"], name): amount
            for each in payload["providers"] for name, amount in each[side].items()}
