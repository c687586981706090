# SPDX-License-Identifier: Apache-2.0
"""Compare what clients were answered with the store, and the store with the stream."""

import collections
import time
from typing import NamedTuple

import sqlalchemy as sa

from placement_rpc.db import models
from tests import stream_books
from tests.soak import history, linearizability

_MOST_SHOWN = 10


class Verdict(NamedTuple):
    """What was found: ``faults`` is a list of str, the others are counts of its kinds."""

    faults: list
    lost: int
    doubled: int
    over_committed: int
    happened: int


def of(store, reports, paths, books, last_position):
    """Return the :class:`Verdict` of a run that has ended.

    :param store: a :class:`placement_rpc.db.api.Database`
    :param reports: list of dicts, as :mod:`tests.soak.client` prints them
    :param paths: of the histories
    :param books: :class:`tests.stream_books.StreamBooks`, of a listener
    :param last_position: that of the last event of the store
    """
    with store.reader() as tx:
        state = State(tx)
    lost, appeared = compare_holdings(state, reports)
    over = [f"{name} of {provider}: {used} used of {capacity}, allocated {allocated}"
            for (provider, name), (used, capacity, allocated) in state.inventories.items()
            if used > capacity or used != allocated]
    providers, operations = history.load(*paths)
    checked = linearizability.check(
        providers, [*operations, state.as_operation({each.provider for each in providers})])
    doubled = [fault for fault in checked.faults
               if "two requests made" in fault or "no request made" in fault]
    faults = [failure for report in reports for failure in report["failures"]]
    faults += lost + appeared + over + checked.faults
    faults += compare_books(stream_books.stored(store), books, last_position)
    return Verdict(faults, len(lost), len(doubled) + len(appeared), len(over), checked.happened)


class State:
    """The contents of a store.

    :ivar generations: dict of provider to generation
    :ivar held: dict of provider to consumer to class name to amount
    :ivar inventories: dict of provider and class name to a tuple of the used amount, the capacity,
        and the sum of the allocations
    """

    def __init__(self, tx):
        providers = models.resource_providers
        self.generations = dict(tx.execute(
            sa.select(providers.c.uuid, providers.c.generation)).all())
        self.held = {provider: {} for provider in self.generations}
        allocated = collections.Counter()
        for provider, consumer, name, used in tx.execute(_ALLOCATIONS):
            self.held[provider].setdefault(consumer, {})[name] = used
            allocated[provider, name] += used
        self.inventories = {
            (row.uuid, row.name): (row.used, row.capacity, allocated[row.uuid, row.name])
            for row in tx.execute(_INVENTORIES)}
        self.consumers = set(tx.execute(sa.select(models.consumers.c.uuid)).scalars())

    def as_operation(self, providers):
        """Return a read of some providers: :class:`tests.soak.history.Operation`."""
        now = time.monotonic()
        return history.Operation("store", history.ACCEPTED, now, now, {}, {}, 1, {
            provider: history.Read(
                self.generations[provider],
                {name: used for (uuid, name), (used, _, _) in self.inventories.items()
                 if uuid == provider},
                self.held[provider]) for provider in providers})


_ALLOCATIONS = sa.select(
    models.resource_providers.c.uuid, models.consumers.c.uuid, models.resource_classes.c.name,
    models.allocations.c.used,
).select_from(models.allocations).join(models.consumers).join(
    models.resource_providers,
    models.resource_providers.c.id == models.allocations.c.resource_provider_id,
).join(models.resource_classes,
       models.resource_classes.c.id == models.allocations.c.resource_class_id)
_INVENTORIES = sa.select(
    models.resource_providers.c.uuid, models.resource_classes.c.name, models.inventories.c.used,
    models.inventories.c.capacity,
).select_from(models.inventories).join(models.resource_providers).join(models.resource_classes)


def compare_holdings(state, reports):
    """Compare what consumers hold with what their clients were answered.

    :returns: tuple of two lists of str: what was accepted and is not there, and what is there and
        was not accepted
    """
    actual = collections.defaultdict(dict)
    for provider, consumers in state.held.items():
        for consumer, amounts in consumers.items():
            actual[consumer][provider] = amounts
    lost, appeared = [], []
    for report in reports:
        for consumer, wanted in report["held"].items():
            found = actual.pop(consumer, {})
            if found != wanted:
                lost.append(f"consumer {consumer} holds {found} instead of {wanted}")
        for consumer, *either in report["uncertain"]:
            found = actual.pop(consumer, {})
            if found not in either:
                lost.append(f"consumer {consumer} holds {found}, which is neither of {either}")
    appeared += [f"consumer {consumer} should hold nothing, and holds {found}"
                 for consumer, found in actual.items()]
    held = {consumer for consumers in state.held.values() for consumer in consumers}
    appeared += [f"consumer {consumer} is there and holds nothing"
                 for consumer in state.consumers - held]
    return lost, appeared


def compare_books(stored, books, last_position):
    """Return the differences of a listener's books from the store, a list of str.

    :param stored: as of :func:`tests.stream_books.stored`
    """
    faults = [f"no position between {earlier} and {later}" for earlier, later in books.gaps]
    faults += [f"{event.event_type} {event.position} does not follow the generation of {provider}"
               for event, provider in books.broken]
    if books.position != last_position:
        faults.append(f"the listener is at position {books.position}, the store at "
                      f"{last_position}")
    noted = books.as_stored()
    for what, ours in stored.items():
        differing = [key for key in ours.keys() | noted[what].keys()
                     if ours.get(key) != noted[what].get(key)]
        faults += [f"{what} of {key} are {ours.get(key)}, in the listener's books "
                   f"{noted[what].get(key)}" for key in differing[:_MOST_SHOWN]]
    return faults
