# SPDX-License-Identifier: Apache-2.0
"""The books of a listener that knows nothing but the events."""

import collections

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.notifications.stream import StreamReader


class StreamBooks:
    """Providers with their inventories, and what consumers hold, from events in their order.

    ``apply`` each event of the stream, from the first one on. An event that arrives twice changes
    nothing, as its id is known.

    :ivar generations: dict of provider uuid to generation
    :ivar inventories: dict of provider uuid to dict of class name to total
    :ivar held: dict of consumer uuid to dict of provider uuid to dict of class name to amount
    :ivar position: int, the last position; 0 before the first
    :ivar epochs: list of the epochs, in order
    :ivar gaps: list of tuples of the position before a gap and the one after it
    :ivar broken: list of tuples of an event and a provider that did not have the previous
        generation, unless ``outbox.reconciled`` follows in the same epoch and names the provider
    :ivar reconciled: list of the events ``outbox.reconciled``
    """

    def __init__(self):
        self.generations, self.inventories, self.held = {}, {}, {}
        self.position, self.epochs = 0, []
        self.gaps, self.broken, self.reconciled = [], [], []
        self._seen = set()
        # The step of generations that the last event of a provider made, and its request.
        self._steps = {}

    def apply(self, event):
        """Apply an event; one with a known id changes nothing."""
        self._number(event.position)
        if event.event_id in self._seen:
            return
        self._seen.add(event.event_id)
        if event.epoch not in self.epochs:
            self.epochs.append(event.epoch)
        kind, payload = event.event_type, event.payload
        if kind == "outbox.reconciled":
            self._reconcile(event)
        elif kind == "resource_provider.delete":
            self.generations.pop(payload["provider_uuid"], None)
            self.inventories.pop(payload["provider_uuid"], None)
        elif kind.startswith("allocation.") and "providers" in payload:
            self._hold(event)
        elif "previous_generation" in payload:
            self._step(event, payload)
            self._stock(payload)

    def _number(self, position):
        if position > self.position:
            if position > self.position + 1:
                self.gaps.append((self.position, position))
            self.position = position

    def _stock(self, payload):
        for each in payload.get("inventories", ()):
            totals = self.inventories.setdefault(payload["provider_uuid"], {})
            totals.pop(each["resource_class"], None)
            if each["after"]:
                totals[each["resource_class"]] = each["after"]["total"]

    def _hold(self, event):
        held = self.held.setdefault(event.payload["consumer_uuid"], {})
        if event.event_type == "allocation.exists":
            held.clear()
        for each in event.payload["providers"]:
            held.pop(each["provider_uuid"], None)
            if each["after"]:
                held[each["provider_uuid"]] = each["after"]
            # A snapshot locks consumers, not providers: their generations may be older there.
            if event.event_type != "allocation.exists":
                self._step(event, each)
        if not held:
            del self.held[event.payload["consumer_uuid"]]

    def _step(self, event, change):
        uuid = change["provider_uuid"]
        step = (change["previous_generation"], change["generation"],
                event.payload["request_id"])
        if self._steps.get(uuid) != step and step[0] not in (None, self.generations.get(uuid)):
            self.broken.append((event, uuid))
        self._steps[uuid] = step
        self.generations[uuid] = change["generation"]

    def _reconcile(self, event):
        self.reconciled.append(event)
        named = {each["provider_uuid"] for each in event.payload["providers"]}
        self.broken = [(each, uuid) for each, uuid in self.broken
                       if each.epoch != event.epoch or uuid not in named]
        for each in event.payload["providers"]:
            uuid = each["provider_uuid"]
            self.generations.pop(uuid, None)
            self.inventories.pop(uuid, None)
            self._steps.pop(uuid, None)
            if each["generation"] is not None:
                self.generations[uuid] = each["generation"]
                self.inventories[uuid] = {
                    entry["resource_class"]: entry["total"] for entry in each["inventories"]}
        for each in event.payload["consumers"]:
            self.held.pop(each["consumer_uuid"], None)
            if each["allocations"]:
                self.held[each["consumer_uuid"]] = each["allocations"]

    @property
    def used(self):
        """The sums of what is held: dict of provider uuid and class name to amount"""
        found = collections.Counter()
        for held in self.held.values():
            for provider, amounts in held.items():
                for name, amount in amounts.items():
                    found[provider, name] += amount
        return dict(found)

    def as_stored(self):
        """Return the books in the form of :func:`stored`."""
        return {"generations": self.generations, "held": self.held, "used": self.used,
                "inventories": {uuid: found for uuid, found in self.inventories.items() if found}}


def stored(database):
    """Return what a store has, in the form of :meth:`StreamBooks.as_stored`."""
    providers, inventories = models.resource_providers, models.inventories
    allocations, consumers = models.allocations, models.consumers
    classes = models.resource_classes
    totals, used, held = {}, {}, {}
    with database.reader(snapshot=True) as tx:
        generations = {row.uuid: row.generation for row in tx.execute(sa.select(
            providers.c.uuid, providers.c.generation))}
        for uuid, name, total, amount in tx.execute(sa.select(
                providers.c.uuid, classes.c.name, inventories.c.total, inventories.c.used,
        ).select_from(inventories).join(
            providers, providers.c.id == inventories.c.resource_provider_id).join(
            classes, classes.c.id == inventories.c.resource_class_id)):
            totals.setdefault(uuid, {})[name] = total
            if amount:
                used[uuid, name] = amount
        for consumer, provider, name, amount in tx.execute(sa.select(
                consumers.c.uuid, providers.c.uuid, classes.c.name, allocations.c.used,
        ).select_from(allocations).join(consumers).join(
            providers, providers.c.id == allocations.c.resource_provider_id).join(
            classes, classes.c.id == allocations.c.resource_class_id)):
            held.setdefault(consumer, {}).setdefault(provider, {})[name] = amount
    return {"generations": generations, "held": held, "used": used, "inventories": totals}


def read(broker, stream):
    """Return the books of a listener that reads a stream from its first event to its last.

    :param broker: str, the URL
    :param stream: str, the name
    """
    books = StreamBooks()
    reader = StreamReader(broker, stream, 1)
    for event in reader.events(idle=1, tail=reader.tail()):
        books.apply(event)
    return books
