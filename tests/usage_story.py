# SPDX-License-Identifier: Apache-2.0
"""A made-up cloud whose events are accounted for."""

import dataclasses
import datetime

from placement_rpc.notifications.event import Event
from placement_rpc.notifications.usage import UsageAccount

_DAY = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)


def at(hours):
    return _DAY + datetime.timedelta(hours=hours)


class Story:
    """Events of a made-up cloud, as they would be published."""

    def __init__(self):
        self.events = []
        self.held = {}
        self.epoch = "first"

    def add(self, event_type, hour, **payload):
        self.events.append(Event(
            f"event {len(self.events)}", event_type, len(self.events) + 1,
            at(hour).isoformat(), {**payload, "epoch": self.epoch}))

    def hold(self, hour, consumer, amounts, owner=("project", "user")):
        """A consumer holds these amounts of provider and class from now on."""
        before, previous = self.held.get(consumer, ({}, (None, None)))
        kind = "create" if not before else "update" if amounts else "delete"
        self._tell(f"allocation.{kind}", hour, consumer, before, amounts, previous, owner)
        self.held[consumer] = amounts, owner
        if not amounts:
            del self.held[consumer]

    def _tell(self, event_type, hour, consumer, before, after, previous, owner):
        providers = sorted({provider for provider, _ in [*before, *after]})
        self.add(event_type, hour, consumer_uuid=consumer, project_id=owner[0],
                 user_id=owner[1], previous_project_id=previous[0], previous_user_id=previous[1],
                 providers=[{
                     "provider_uuid": provider,
                     "before": {name: n for (uuid, name), n in before.items() if uuid == provider},
                     "after": {name: n for (uuid, name), n in after.items() if uuid == provider}}
                     for provider in providers])

    def publish_again(self, event):
        """An event has lost its position and gets another one."""
        self.events.append(dataclasses.replace(event, position=len(self.events) + 1, payload={
            **event.payload, "epoch": self.epoch}))

    def reconcile(self, hour, consumers, lost=(), classes=(), part=1, parts=1):
        """The store says what these consumers hold, and which of the classes it has."""
        found = []
        for consumer in sorted(consumers):
            amounts, owner = self.held.get(consumer, ({}, (None, None)))
            allocations = {}
            for (provider, name), amount in amounts.items():
                allocations.setdefault(provider, {})[name] = amount
            found.append({"consumer_uuid": consumer, "project_id": owner[0], "user_id": owner[1],
                          "allocations": allocations})
        self.add("outbox.reconciled", hour, consumers=found, part=part, parts=parts,
                 resource_classes=dict(classes), lost_events=[
                     {"event_id": each.event_id, "event_type": each.event_type} for each in lost])

    def rename(self, hour, old, new):
        self.add("resource_class.update", hour, name=new, previous_name=old)
        self.held = {consumer: (
            {(provider, new if name == old else name): amount
             for (provider, name), amount in amounts.items()}, owner)
            for consumer, (amounts, owner) in self.held.items()}

    def snapshot_begin(self, hour):
        self.add("allocation.snapshot.begin", hour, snapshot_id=f"s{hour}", consumers=0)

    def exists(self, hour, consumer):
        amounts, owner = self.held[consumer]
        self._tell("allocation.exists", hour, consumer, amounts, amounts, owner, owner)

    def snapshot_end(self, hour, begun, count):
        self.add("allocation.snapshot.end", hour, snapshot_id=f"s{begun}", consumers=count)

    def snapshot(self, hour):
        self.snapshot_begin(hour)
        for consumer in sorted(self.held):
            self.exists(hour, consumer)
        self.snapshot_end(hour, hour, len(self.held))

    def account(self, begin, end, first=1):
        account = UsageAccount(at(begin), at(end))
        for event in self.events[first - 1:]:
            account.apply(event)
        return account


def hours(account):
    return {(line.project_id, line.resource_class, line.provider_uuid): line.resource_hours
            for line in account.lines() if line.resource_hours}


def held(account):
    return {(line.project_id, line.resource_class, line.provider_uuid): line.held
            for line in account.lines() if line.held}


VCPU, DISK = ("node", "VCPU"), ("node", "DISK_GB")


def add_up(expected, held, since, until, begin, end):
    """Add what is held from one hour to another, as far as it is within a period.

    :param expected: dict of project, class and provider to resource-hours
    :param held: as of :class:`Story`
    """
    for each in range(max(since, begin), min(until, end)):
        del each
        for amounts, owner in held.values():
            for (provider, name), amount in amounts.items():
                key = owner[0], name, provider
                expected[key] = expected.get(key, 0) + amount
