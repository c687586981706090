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
    first event, or with a snapshot that began before the time and is whole, none is missing
    since, and each fits to the one before. Events from after the time may be applied and change
    nothing. A class is billed by the name that it had at the time.

    :param begin: datetime with a zone
    :param end: datetime with a zone, after which nothing counts
    """

    def __init__(self, begin, end):
        self.begin = begin
        self.end = end
        #: int, the position of the last event that was applied; None before the first
        self.position = None
        #: datetime, the time of the latest event that was applied; None before the first
        self.as_of = None
        self._complete = False
        self._restart()

    def _restart(self):
        """Forget everything; nothing of the time itself has been accounted for yet."""
        self._holdings = {}
        self._hours = collections.Counter()
        # Consumers of which something was told after the end: what they held then is known.
        self._final = set()
        # Names that classes had, and those that they got; and those that they got after the end,
        # with the ones that they had at it.
        self._renamed, self._renamed_late = {}, {}
        self._snapshot = None
        self._exists = 0

    @property
    def complete(self):
        """bool, whether everything that was held in the time is known, up to :attr:`as_of`"""
        return self._complete

    @property
    def hopeless(self):
        """bool, whether no event to come can make it complete"""
        return not self._complete and self._snapshot is None and (
            self.as_of is not None and self.as_of > self.begin)

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
        self.as_of = max(event.time, self.as_of or event.time)
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
        if event.time >= self.end:
            self._renamed_late[new] = self._renamed_late.pop(old, old)
            return
        self._renamed[old] = new
        # A class that is there anew under a name of old is another one.
        self._renamed.pop(new, None)
        for consumer, holding in self._holdings.items():
            if consumer in self._final or not any(name == old for _, name in holding.amounts):
                continue
            self._advance(holding, event)
            holding.amounts = _translate(holding.amounts, self._renamed)

    def _allocate(self, event):
        payload = event.payload
        consumer = payload["consumer_uuid"]
        if consumer in self._final:
            return
        before = _amounts(payload, "before")
        owner = payload["previous_project_id"], payload["previous_user_id"]
        holding = self._holdings.get(consumer)
        if holding is None:
            # Whatever it held before it has held since the account began.
            holding = self._holdings[consumer] = _Holding(
                owner, _translate(before, self._renamed_late), self.begin)
        if event.time >= self.end:
            self._final.add(consumer)
            return
        if holding.owner != owner or (
                _translate(holding.amounts, self._renamed) != _translate(before, self._renamed)):
            # Of another past than the events before: a store was restored, or something is lost.
            self._complete, self._snapshot = False, None
            holding.owner, holding.amounts = owner, before
        self._advance(holding, event)
        holding.owner = payload["project_id"], payload["user_id"]
        holding.amounts = _amounts(payload, "after")
        if not holding.amounts:
            del self._holdings[consumer]

    def _advance(self, holding, event):
        """Account for what was held up to an event."""
        # Clocks of two conductors may differ by a little.
        now = max(holding.since, event.time)
        self._accrue(self._hours, holding, now)
        holding.since = now

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


def _translate(amounts, names):
    """:returns: dict of provider and class to amount, with other names for classes"""
    return {(provider, names.get(name, name)): amount
            for (provider, name), amount in amounts.items()}


def _amounts(payload, side):
    """:returns: dict of provider and class to amount"""
    return {(each["provider_uuid"], name): amount
            for each in payload["providers"] for name, amount in each[side].items()}
