# SPDX-License-Identifier: Apache-2.0
"""Claims and inventory changes in one state and one transaction, on every database."""

import itertools
import json
import logging

import fixtures
import hypothesis
import sqlalchemy as sa
import testscenarios
from hypothesis import strategies

from placement_rpc.accounting import batch
from placement_rpc.accounting.claims import ClaimChange, MoveChange, ReleaseChange
from placement_rpc.accounting.idempotency import Request
from placement_rpc.accounting.inventory_batch import InventoryReplacement
from placement_rpc.accounting.reshape import ReshapeChange
from placement_rpc.db import models
from placement_rpc.objects.inventory import InventoryList
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers

_CLASSES = ("VCPU", "MEMORY_MB", "CUSTOM_GOLD")
_PROVIDERS = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(3)]
_CONSUMERS = [f"00000000-0000-4000-9000-00000000000{number}" for number in range(3)]

_totals = strategies.one_of(
    strategies.just({}), strategies.just(dict.fromkeys(_CLASSES, 9)),
    strategies.dictionaries(strategies.sampled_from(_CLASSES), strategies.integers(1, 9)))
_allocations = strategies.dictionaries(
    strategies.sampled_from(_PROVIDERS),
    strategies.dictionaries(strategies.sampled_from(_CLASSES), strategies.integers(1, 3),
                            min_size=1, max_size=2), min_size=1, max_size=2)
_consumer = strategies.sampled_from(_CONSUMERS)
_steps = strategies.lists(strategies.one_of(
    strategies.tuples(strategies.just("inventories"), strategies.sampled_from(_PROVIDERS),
                      _totals),
    strategies.tuples(strategies.just("claim"), _consumer, _allocations),
    strategies.tuples(strategies.just("release"), _consumer, strategies.none()),
    strategies.tuples(strategies.just("move"), _consumer, _consumer),
    strategies.tuples(
        strategies.just("reshape"), strategies.dictionaries(
            strategies.sampled_from(_PROVIDERS), _totals, min_size=1),
        strategies.dictionaries(_consumer, strategies.one_of(
            strategies.just({}), _allocations)))),
    min_size=4, max_size=16)


def _request(number, *arguments):
    return Request.of(f"step-{number}", "step", {"arguments": arguments})


def _inventories(number, provider, totals):
    return InventoryReplacement(_request(number, provider, totals), provider, [
        base.inventory(name, total) for name, total in totals.items()])


def _claim(number, consumer, allocations):
    return ClaimChange(_request(number, consumer, allocations),
                       base.claim(allocations, consumer))


def _release(number, consumer, _nothing=None):
    return ReleaseChange(_request(number, consumer), consumer)


def _move(number, source, target):
    return MoveChange(_request(number, source, target), source, target)


def _reshape(number, totals, allocations):
    return ReshapeChange(
        _request(number, totals, allocations),
        [InventoryList(provider_uuid=uuid, objects=[
            base.inventory(name, total) for name, total in of_provider.items()])
         for uuid, of_provider in totals.items()],
        [base.claim(wanted, consumer) for consumer, wanted in allocations.items()])


_MAKERS = {"inventories": _inventories, "claim": _claim, "release": _release, "move": _move,
           "reshape": _reshape}


class _Service(placement_fixtures.RunningService):
    """A service with three providers without inventories."""

    def _setUp(self):
        super()._setUp()
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        for number, uuid in enumerate(_PROVIDERS):
            self.api.create_provider(None, f"node {number}", uuid)

    def settle(self, *pending):
        """Settle in one transaction; returns the code of each error, None for accepted."""
        return [each.error and each.error.code for each in batch.settle(self.database, pending)]

    def stored(self):
        """Inventories, allocations, consumers and generations, without row ids."""
        providers, inventories = models.resource_providers, models.inventories
        allocations, consumers = models.allocations, models.consumers
        with self.database.reader() as tx:
            return [sorted(map(tuple, tx.execute(query))) for query in (
                sa.select(providers.c.uuid, providers.c.generation),
                sa.select(providers.c.uuid, inventories.c.resource_class_id,
                          inventories.c.total, inventories.c.capacity,
                          inventories.c.used).join_from(inventories, providers),
                sa.select(consumers.c.uuid, consumers.c.generation),
                sa.select(consumers.c.uuid, providers.c.uuid, allocations.c.resource_class_id,
                          allocations.c.used).select_from(allocations).join(
                              consumers, consumers.c.id == allocations.c.consumer_id).join(
                                  providers,
                                  providers.c.id == allocations.c.resource_provider_id))]

    def events(self):
        """Type and data of all events, in the order in which they were written."""
        with self.database.reader() as tx:
            return [(row.event_type, json.loads(row.payload)["placement_object.data"])
                    for row in tx.execute(sa.select(
                        models.events.c.event_type, models.events.c.payload).order_by(
                            models.events.c.id))]

    def candidates(self, name):
        """Uuids of the providers with room for one, as the index has it."""
        found = self.api.get_by_request(None, ResourceRequest(resources={name: 1}))
        return {each.uuid for each in found.objects}

    def room(self, class_id):
        """Uuids of the providers with room for one, as the store has it."""
        return {uuid for uuid, id_, _, capacity, used in self.stored()[1]
                if id_ == class_id and used < capacity}


def _changes_of(data):
    """Yield provider, previous generation and generation of each change in an event."""
    if "providers" in data:
        for each in data["providers"]:
            values = each["placement_object.data"]
            yield (values["provider_uuid"], values["previous_generation"],
                   values["generation"])
    elif "previous_generation" in data:
        yield data["provider_uuid"], data["previous_generation"], data["generation"]


def _of_steps(events):
    """Return the events of the steps, without what differs from run to run."""
    return [(event_type, {name: value for name, value in data.items()
                          if name not in ("event_id", "occurred_at")})
            for event_type, data in events if data["request_id"].startswith("step-")]


class LockedStateTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [("SQLite", {"kind": None}), ("PostgreSQL", {"kind": "postgresql"}),
                 ("MariaDB", {"kind": "mariadb"})]
    time_limit = 240

    def setUp(self):
        super().setUp()
        # A candidate index that cannot follow the events warns, and is made again.
        self.index_log = self.useFixture(
            fixtures.FakeLogger("placement_rpc.candidates", level=logging.WARNING))

    def make(self):
        return self.useFixture(_Service(
            transport="local", database_url=self.kind and servers.new_database(self.kind),
            claims__allow_capacity_below_use=False))

    def check_events(self, service):
        """Check that the events of each provider lead from generation 0 to the stored one.

        The candidate index has followed them, too.
        """
        at, step = {}, {}
        for _, data in service.events():
            for uuid, previous, generation in _changes_of(data):
                if previous is not None and (previous, generation) != step.get(uuid):
                    self.assertEqual(at[uuid], previous, uuid)
                    self.assertIn(generation - previous, (0, 1), uuid)
                    if generation != previous:
                        step[uuid] = previous, generation
                at[uuid] = generation
        self.assertEqual(dict(service.stored()[0]), at)
        self.assertEqual("", self.index_log.output)

    def test_an_inventory_shrinks_and_is_claimed_from(self):
        service, (one, *_), (a, b, c) = self.make(), _PROVIDERS, _CONSUMERS
        service.settle(_inventories(1, one, {"VCPU": 8}), _claim(2, a, {one: {"VCPU": 2}}))
        self.assertEqual(
            [None, None, "placement.claim.capacity_exceeded", None,
             "placement.inventory.capacity_conflict"],
            service.settle(
                _inventories(3, one, {"VCPU": 4, "MEMORY_MB": 2}),
                _claim(4, b, {one: {"VCPU": 2, "MEMORY_MB": 2}}),
                _claim(5, c, {one: {"VCPU": 1}}),
                _release(6, a), _inventories(7, one, {"VCPU": 1, "MEMORY_MB": 2})))
        self.assertEqual([(one, 0, 4, 4, 2), (one, 1, 2, 2, 2)], service.stored()[1])
        self.assertEqual([(b, 1)], service.stored()[2])
        self.assertEqual(5, dict(service.stored()[0])[one])
        self.assertEqual({one}, service.candidates("VCPU"))
        self.assertEqual(set(), service.candidates("MEMORY_MB"))
        self.check_events(service)

    def test_allocations_leave_an_inventory_that_goes(self):
        service, (old, new, _), (a, b, _) = self.make(), _PROVIDERS, _CONSUMERS
        service.settle(_inventories(1, old, {"VCPU": 4}), _inventories(2, new, {"VCPU": 4}),
                       _claim(3, a, {old: {"VCPU": 4}}))
        self.assertEqual(
            ["placement.inventory.inuse", None, None, None, None],
            service.settle(
                _inventories(4, old, {}), _claim(5, a, {new: {"VCPU": 3}}),
                _inventories(6, old, {}), _move(7, a, b),
                _inventories(8, new, {"VCPU": 3})))
        self.assertEqual([(new, 0, 3, 3, 3)], service.stored()[1])
        self.assertEqual([(b, new, 0, 3)], service.stored()[3])
        self.assertEqual(set(), service.candidates("VCPU"))
        self.check_events(service)

    def test_an_inventory_goes_and_comes_back_under_other_allocations(self):
        service, (one, *_), (a, b, _) = self.make(), _PROVIDERS, _CONSUMERS
        service.settle(_inventories(1, one, {"VCPU": 4}), _claim(2, a, {one: {"VCPU": 4}}))
        self.assertEqual([None] * 4, service.settle(
            _release(3, a), _inventories(4, one, {}),
            _inventories(5, one, {"VCPU": 2, "CUSTOM_GOLD": 1}),
            _claim(6, b, {one: {"VCPU": 1, "CUSTOM_GOLD": 1}})))
        self.assertEqual([2, 1], [total for _, _, total, *_ in service.stored()[1]])
        self.assertEqual([1, 1], [used for *_, used in service.stored()[1]])
        self.assertEqual({one}, service.candidates("VCPU"))
        self.check_events(service)

    def test_together_is_as_one_after_the_other(self):
        together, singly = self.make(), self.make()
        numbers, outcomes = itertools.count(1), set()

        @hypothesis.settings(max_examples=30 if self.kind else 60, deadline=None, database=None,
                             derandomize=True, suppress_health_check=list(
                                 hypothesis.HealthCheck))
        @hypothesis.given(_steps)
        def check(steps):
            asked = [(kind, next(numbers), *arguments) for kind, *arguments in steps]
            errors = [singly.settle(_MAKERS[kind](*each))[0] for kind, *each in asked]
            self.assertEqual(
                errors, together.settle(*(_MAKERS[kind](*each) for kind, *each in asked)))
            outcomes.update((kind, error is None) for (kind, *_), error in zip(
                asked, errors, strict=True))
            self.assertEqual(singly.stored(), together.stored())
            self.assertEqual(together.room(0), together.candidates("VCPU"))

        check()
        self.assertEqual(_of_steps(singly.events()), _of_steps(together.events()))
        self.check_events(together)
        # All kinds of steps were accepted at least once, and some reshapes were refused.
        self.assertEqual({("reshape", True), ("reshape", False)} | {
            (kind, True) for kind in _MAKERS}, {
                each for each in outcomes if each[1] or each[0] == "reshape"})
        self.assertLessEqual(
            {"inventory.create", "inventory.update", "inventory.delete", "allocation.create",
             "allocation.update", "allocation.delete"},
            {event_type for event_type, _ in together.events()})
