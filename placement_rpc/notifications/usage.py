# SPDX-License-Identifier: Apache-2.0
"""Resource-hours, computed from events alone.

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

from placement_rpc import exception

#: The assumed maximum difference between the clocks of conductors.
SKEW = datetime.timedelta(minutes=1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_MICROSECONDS_AN_HOUR = 3_600_000_000
_ALLOCATIONS = frozenset((
    "allocation.create", "allocation.update", "allocation.delete", "allocation.exists"))
# How many event ids are remembered, about 10 MB: an asynchronous standby is behind by fewer.
_REMEMBERED = 50_000


@dataclasses.dataclass(frozen=True, slots=True)
class UsageLine:
    """The usage of one class of one provider by a project and user.

    ``resource_hours`` is the amount times the hours for which it was held, a
    :class:`decimal.Decimal`; ``held`` is the amount at the end of the period.
    """

    project_id: str
    user_id: str
    resource_class: str
    provider_uuid: str
    resource_hours: decimal.Decimal
    held: int


@dataclasses.dataclass(slots=True)
class _Holding:
    """The amounts of a consumer by provider and class, their owner, and since when."""

    owner: tuple
    amounts: dict
    since: datetime.datetime


class UsageAccount:
    """Accounts for the amounts that were held in a period.

    Events are applied in the order of their positions, from any position on. The account is
    :attr:`complete` if the events begin with the very first one, or with a whole snapshot that
    began before the period, if no event is missing from there to a minute after the period, and if
    each is consistent with those before it. Events after the period may be applied and change
    nothing. An amount is billed under the name that its class had while it was held.

    What ``outbox.reconciled`` takes back was held until then, as it was published: it counts for
    the hours until that event, and not after it. An event that is published again at another
    position, before ``outbox.reconciled``, counts once.

    :param begin: datetime with a zone
    :param end: datetime with a zone, not before it, after which nothing counts
    :raises InvalidInput: if they are not
    """

    def __init__(self, begin, end):
        for what, value in (("begin", begin), ("end", end)):
            if not isinstance(value, datetime.datetime) or value.tzinfo is None:
                raise exception.InvalidInput(what=what, reason="it is not a datetime with a zone")
        if end < begin:
            raise exception.InvalidInput(what="end", reason="it is before the begin")
        self.begin = begin
        self.end = end
        #: int, the position of the last event that was applied; None before the first
        self.position = None
        #: datetime, the time of the latest event that was applied; None before the first
        self.as_of = None
        self._complete = False
        # The ids of the last events, and the latest time of those that are forgotten.
        self._recent: collections.OrderedDict[str, datetime.datetime] = collections.OrderedDict()
        self._forgotten_until: datetime.datetime | None = None
        # Renamings of classes in order: event id to the old name and the new one; and the ids of
        # those that the store has lost.
        self._renamings: dict[str, tuple[str, str]] = {}
        self._lost_renamings: set[str] = set()
        self._restart()

    def _restart(self):
        """Forget all events so far, which were before the period."""
        self._holdings = {}
        self._hours = collections.Counter()
        # Consumers with an event after the end of the period: their amounts at the end are known.
        self._final = set()
        # Since when allocations that are only found later have counted.
        self._counts_from = self.begin
        # Old name of a class to its new name; and name given after the end of the period to the
        # name at the end.
        self._renamed, self._renamed_late = {}, {}
        self._snapshot = None
        self._exists = 0
        # Consumers whose events of a new epoch contradict earlier ones, until outbox.reconciled
        # says what they hold.
        self._epoch, self._is_new_epoch, self._doubted = None, False, set()

    @property
    def complete(self):
        """bool, whether all amounts held in the period are known, up to :attr:`as_of`"""
        return self._complete and not self._doubted

    @property
    def hopeless(self):
        """bool, whether no later event can make it complete"""
        return not self.complete and self._snapshot is None and (
            self.as_of is not None and self.as_of > self.begin)

    def nothing_happened(self):
        """Mark the account as complete, since no event was ever recorded."""
        self._complete = True

    def apply(self, event):
        """Apply an event to the account.

        :param event: :class:`placement_rpc.notifications.event.Event`; one that was applied
            before changes nothing
        """
        if self.position is not None and event.position <= self.position:
            return
        if event.position == 1:
            self._complete = True
        elif self.position is not None and event.position > self.position + 1 and (
                self.as_of <= self.end + SKEW):
            # The missing events may have changed anything.
            self._complete, self._snapshot = False, None
        self.position = event.position
        self.as_of = max(event.time, self.as_of or event.time)
        self._is_new_epoch |= None not in (event.epoch, self._epoch) and (
            event.epoch != self._epoch)
        self._epoch = event.epoch or self._epoch
        if not self._is_repeated(event):
            self._apply(event)

    def _is_repeated(self, event):
        """Return whether an event was applied at another position; if not, remember it."""
        if event.event_id in self._recent:
            return True
        if self._is_new_epoch and self._forgotten_until is not None and (
                event.time <= self._forgotten_until):
            # Its id may be one of those that are forgotten.
            self._complete, self._snapshot = False, None
        self._recent[event.event_id] = event.time
        if len(self._recent) > _REMEMBERED:
            time = self._recent.popitem(last=False)[1]
            self._forgotten_until = max(time, self._forgotten_until or time)
        return False

    def _apply(self, event):
        if event.event_type == "allocation.snapshot.begin":
            self._begin_snapshot(event)
        elif event.event_type == "allocation.snapshot.end":
            self._end_snapshot(event)
        elif event.event_type == "resource_class.update":
            self._rename(event)
        elif event.event_type == "resource_class.create":
            # If another class had this name before, the name now means the new one.
            self._renamed.pop(event.payload["name"], None)
        elif event.event_type == "store.import":
            # An import begins with an empty store, and only the allocations that it has brought
            # when it is finished count.
            self._counts_from = max(self.begin, event.time)
        elif event.event_type == "outbox.reconciled":
            self._reconcile(event)
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
        self._renamings[event.event_id] = old, new
        self._rename_class(event, old, new)

    def _rename_class(self, event, old, new):
        if event.time >= self.end:
            self._renamed_late[new] = self._renamed_late.pop(old, old)
            return
        # A claim that was under way meanwhile may name it as it was before an earlier renaming.
        self._renamed = {name: new if now == old else now for name, now in self._renamed.items()}
        self._renamed[old] = new
        # If a renamed class had this name before, the name now means this class.
        self._renamed.pop(new, None)
        for consumer, holding in self._holdings.items():
            if consumer in self._final or not any(name == old for _, name in holding.amounts):
                continue
            self._advance(holding, event)
            holding.amounts = _translate(holding.amounts, {old: new})

    def _allocate(self, event):
        payload = event.payload
        consumer = payload["consumer_uuid"]
        if consumer in self._final:
            return
        before = _amounts(payload, "before")
        # There is none before the first allocations.
        owner = payload["previous_project_id"] or "", payload["previous_user_id"] or ""
        holding = self._holdings.get(consumer)
        if holding is None and self._complete and self._is_new_epoch:
            # All that is held is known. Anything else is held by a deletion that was lost.
            holding = self._holdings[consumer] = _Holding(("", ""), {}, event.time)
        elif holding is None:
            # What it held before this event it has held since the account began, or since another
            # store's allocations were brought over.
            holding = self._holdings[consumer] = _Holding(
                owner, {} if self._counts_from >= self.end else _translate(
                    before, self._renamed_late), self._counts_from)
        if event.time >= self.end:
            self._final.add(consumer)
            return
        if holding.owner != owner or (
                _translate(holding.amounts, self._renamed) != _translate(before, self._renamed)):
            # The event contradicts earlier ones: a store was restored, or events were lost.
            if self._is_new_epoch:
                # What was held before was published, and counts until now.
                self._doubted.add(consumer)
                self._advance(holding, event)
            else:
                self._complete, self._snapshot = False, None
            holding.owner, holding.amounts = owner, before
        self._advance(holding, event)
        holding.owner = payload["project_id"], payload["user_id"]
        # A claim that was under way while the class was renamed names it as it was before.
        holding.amounts = _translate(_amounts(payload, "after"), self._renamed)
        if not holding.amounts:
            del self._holdings[consumer]

    def _reconcile(self, event):
        """Replace what is held by what the store has."""
        for each in event.payload["consumers"]:
            consumer = each["consumer_uuid"]
            self._doubted.discard(consumer)
            if consumer in self._final:
                continue
            holding = self._holdings.get(consumer)
            if event.time >= self.end:
                # One that is not known to hold anything may hold something by a deletion that was
                # lost. It counted until then, and the next event must not make it count again.
                if holding is not None or self._complete:
                    self._final.add(consumer)
                continue
            if holding is not None:
                self._advance(holding, event)
                del self._holdings[consumer]
            if each["allocations"]:
                self._holdings[consumer] = _Holding(
                    (each["project_id"] or "", each["user_id"] or ""),
                    {(provider, name): amount
                     for provider, amounts in each["allocations"].items()
                     for name, amount in amounts.items()}, max(event.time, self._counts_from))
        self._lost_renamings.update(
            each["event_id"] for each in event.payload["lost_events"]
            if each["event_type"] == "resource_class.update")
        if event.payload["part"] == event.payload["parts"]:
            self._take_back_renamings(event)

    def _take_back_renamings(self, event):
        """Give the classes of which a renaming was lost their old names, the last one first."""
        stored = event.payload["resource_classes"]
        for event_id, (old, new) in reversed(list(self._renamings.items())):
            if event_id not in self._lost_renamings:
                continue
            del self._renamings[event_id]
            if stored.get(new):
                # Which class has the name is not known.
                self._complete, self._snapshot = False, None
            else:
                self._rename_class(event, new, old)
        self._lost_renamings.clear()

    def _advance(self, holding, event):
        """Account for the amounts held until an event."""
        # The clocks of two conductors may differ slightly.
        now = max(holding.since, event.time)
        self._accrue(self._hours, holding, now)
        holding.since = now

    def _accrue(self, hours, holding, until):
        length = (min(until, self.end) - max(holding.since, self.begin)) // _MICROSECOND
        if length > 0:
            for (provider, name), amount in holding.amounts.items():
                hours[*holding.owner, name, provider] += amount * length

    def lines(self):
        """Return a list of :class:`UsageLine`, by project, user, class and provider."""
        hours, held = self._hours.copy(), collections.Counter()
        for holding in self._holdings.values():
            self._accrue(hours, holding, self.end)
            for (provider, name), amount in holding.amounts.items():
                held[*holding.owner, name, provider] += amount
        return [UsageLine(
            *key, decimal.Decimal(hours[key]) / _MICROSECONDS_AN_HOUR, held[key])
            for key in sorted(hours.keys() | held.keys())]


def _translate(amounts, names):
    """Return a dict of provider and class to amount, with translated names of classes.

    Without names to translate it is the same dict.
    """
    if not names:
        return amounts
    return {(provider, names.get(name, name)): amount
            for (provider, name), amount in amounts.items()}


def _amounts(payload, side):
    """Return one side of an event's payload as a dict of provider and class to amount."""
    return {(each["provider_uuid"], name): amount
            for each in payload["providers"] for name, amount in each[side].items()}
