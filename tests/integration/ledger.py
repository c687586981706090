# SPDX-License-Identifier: Apache-2.0
"""Check that a store agrees with the answers that its clients received."""

import collections
import datetime

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.notifications.usage import UsageAccount


def check(test, database, reports):
    """Compare a store with the reports of clients.

    No inventory is over its capacity; ``used`` is the sum of the allocations; every consumer
    has the allocations of the last answer to its client, and there are no other consumers; every
    generation of every provider was made by one change, which was reported to one client.

    :param reports: list of dicts, as :mod:`tests.integration.claimer` prints them
    """
    test.assertEqual([], [failure for report in reports for failure in report["failures"]])
    test.assertEqual(sum(report["sent"] for report in reports), sum(
        report["accepted"] + report["refused"] for report in reports))
    with database.reader() as tx:
        _check_inventories(test, tx)
        _check_holdings(test, tx, reports)
        _check_generations(test, tx, reports)


def _check_inventories(test, tx):
    inventories, allocations = models.inventories, models.allocations
    sums = {(row[0], row[1]): int(row[2]) for row in tx.execute(sa.select(
        allocations.c.resource_provider_id, allocations.c.resource_class_id,
        sa.func.sum(allocations.c.used)).group_by(
            allocations.c.resource_provider_id, allocations.c.resource_class_id))}
    for row in tx.execute(sa.select(inventories)):
        key = row.resource_provider_id, row.resource_class_id
        test.assertLessEqual(row.used, row.capacity)
        test.assertEqual(sums.get(key, 0), row.used)


def _check_holdings(test, tx, reports):
    expected = {consumer: held for report in reports
                for consumer, held in report["held"].items()}
    actual = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in tx.execute(sa.select(
            models.consumers.c.uuid.label("consumer"),
            models.resource_providers.c.uuid.label("provider"),
            models.resource_classes.c.name, models.allocations.c.used,
    ).select_from(models.allocations).join(models.consumers).join(
        models.resource_providers,
        models.resource_providers.c.id == models.allocations.c.resource_provider_id,
    ).join(models.resource_classes,
           models.resource_classes.c.id == models.allocations.c.resource_class_id)):
        actual[row.consumer][row.provider][row.name] = row.used
    test.assertEqual(expected, {uuid: dict(held) for uuid, held in actual.items()})
    count = tx.execute(sa.select(sa.func.count()).select_from(models.consumers)).scalar()
    test.assertEqual(len(expected), count, "there are consumers without allocations")


def _check_generations(test, tx, reports):
    made = collections.defaultdict(list)
    for report in reports:
        for provider, generations in report["changes"].items():
            made[provider] += generations
    for row in tx.execute(sa.select(models.resource_providers)):
        # Setting the inventories made generation 1.
        test.assertEqual(list(range(2, row.generation + 1)), sorted(made[row.uuid]),
                         f"changes of {row.name} were lost or doubled")


def check_events(test, database, events):
    """Check that the events alone determine the contents of a store.

    Positions have no gap; every generation of every provider is made by one event, or by several
    of one request; and the used amounts according to the events equal those in the store.

    :param events: list of :class:`placement_rpc.notifications.listener.Event`, from the first on
    """
    test.assertEqual(list(range(1, len(events) + 1)), [event.position for event in events])
    used, made, steps = collections.Counter(), collections.defaultdict(list), {}
    for event in events:
        for each in event.payload.get("providers", [event.payload]):
            step = (each.get("previous_generation"), each.get("generation"),
                    event.payload["request_id"])
            if step[0] != step[1] and steps.get(each["provider_uuid"]) != step:
                steps[each["provider_uuid"]] = step
                made[each["provider_uuid"]].append(each["generation"])
            for sign, side in ((1, "after"), (-1, "before")):
                for name, amount in each.get(side, {}).items():
                    used[each["provider_uuid"], name] += sign * amount
    for row in _inventories(database):
        test.assertEqual(row.used, used.pop((row.uuid, row.name), 0))
        test.assertEqual(list(range(row.generation + 1)), made[row.uuid])
    test.assertEqual({}, {key: amount for key, amount in used.items() if amount})


def check_late_listener(test, database, events):
    """Check that an account from the last snapshot on equals one from the first event on.

    Both must also equal the store.

    :param events: as of :func:`check_events`
    """
    begins = [event for event in events if event.event_type == "allocation.snapshot.begin"]
    ends = [event for event in events if event.event_type == "allocation.snapshot.end"]
    test.assertGreater(len(ends), 0)
    # The last snapshot may be incomplete.
    begin = begins[len(ends) - 1]
    # Events that are written at the same moment may not be in the order of their times.
    since = begin.time + datetime.timedelta(seconds=2)
    until = events[-1].time + datetime.timedelta(seconds=3)
    late, always = (UsageAccount(since, until) for _ in range(2))
    for event in events:
        always.apply(event)
        if event.position >= begin.position:
            late.apply(event)
    test.assertEqual((True, True), (always.complete, late.complete))
    test.assertEqual(always.lines(), late.lines())
    held = collections.Counter()
    for line in late.lines():
        held[line.provider_uuid, line.resource_class] += line.held
    test.assertEqual({(row.uuid, row.name): row.used for row in _inventories(database)
                      if row.used}, {key: amount for key, amount in held.items() if amount})


def _inventories(database):
    """Return rows of the provider's uuid and generation, the class's name, and used."""
    with database.reader() as tx:
        return tx.execute(sa.select(
            models.resource_providers.c.uuid, models.resource_providers.c.generation,
            models.resource_classes.c.name, models.inventories.c.used,
        ).select_from(models.inventories).join(models.resource_providers).join(
            models.resource_classes)).all()
