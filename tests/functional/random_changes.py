# SPDX-License-Identifier: Apache-2.0
"""Random changes of a store, each of which a simple model predicts."""

import unittest

import hypothesis
import sqlalchemy as sa
from hypothesis import stateful
from hypothesis import strategies as st

from placement_rpc.api import InventoryList
from placement_rpc.candidates.index import SHARES
from placement_rpc.db import models
from placement_rpc.objects.inventory import Inventory
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, index_contents, store_model, trees

_CLASSES = ("VCPU", "VGPU", "CUSTOM_GOLD")
_TRAITS = ("HW_CPU_X86_AVX2", SHARES, "CUSTOM_FAST", "CUSTOM_UNKNOWN")
_AGGREGATES = tuple(base.new_uuid() for _ in range(2))
_PROVIDERS = tuple(base.new_uuid() for _ in range(6))
_CONSUMERS = tuple(base.new_uuid() for _ in range(4))
# The number of a provider or of an inventory that exists; one of ten stands for any other.
_one = st.integers(0, 9)
_consumer = st.sampled_from(_CONSUMERS)
_name = st.sampled_from([None] * 9 + [f"provider {number}" for number in range(9)])
_amount = st.integers(1, 4)
# What is added to the present generation that the caller gives; None to give none.
_off = st.sampled_from((None, None, None, 0, 0, 0, 1))
_inventories = st.dictionaries(st.sampled_from(_CLASSES), st.builds(
    store_model.Inventory, total=st.integers(2, 12), reserved=st.integers(0, 2),
    min_unit=st.sampled_from((1, 1, 1, 2)), max_unit=st.integers(3, 8),
    step_size=st.sampled_from((1, 1, 1, 2)),
    allocation_ratio=st.sampled_from((1.0, 1.5))))
_wanted = st.dictionaries(_one, _amount, max_size=3)
_claims = st.dictionaries(_consumer, st.tuples(_wanted, _off), min_size=1, max_size=2)


_providers, _classes = models.resource_providers, models.resource_classes
_ROWS = {
    "providers": _providers.select(), "consumers": models.consumers.select(),
    "inventories": sa.select(_providers.c.uuid, _classes.c.name, models.inventories).select_from(
        models.inventories.join(_providers).join(_classes)),
    "traits": sa.select(_providers.c.uuid, models.traits.c.name).select_from(
        models.resource_provider_traits.join(_providers).join(models.traits)),
    "aggregates": sa.select(_providers.c.uuid, models.aggregates.c.uuid).select_from(
        models.resource_provider_aggregates.join(_providers).join(models.aggregates)),
    "allocations": sa.select(
        models.consumers.c.uuid.label("consumer"), _providers.c.uuid.label("provider"),
        _classes.c.name, models.allocations.c.used).select_from(
        models.allocations.join(models.consumers).join(
            _providers, _providers.c.id == models.allocations.c.resource_provider_id).join(
            _classes, _classes.c.id == models.allocations.c.resource_class_id)),
}


class RandomChanges(stateful.RuleBasedStateMachine):
    """Each change is accepted or refused as the model says; the stores are equal after it."""

    def __init__(self):
        super().__init__()
        self.service = placement_fixtures.RunningService(
            "local", database_url=self.new_database())
        self.service.setUp()
        self.api = self.service.api
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        self.api.create_trait(None, "CUSTOM_FAST")
        self.model = store_model.StoreModel(frozenset(_TRAITS) - {"CUSTOM_UNKNOWN"})

    def new_database(self):
        """Return the URL of an empty database; None for a file of SQLite."""

    def teardown(self):
        try:
            self.check_answers()
            trees.check(unittest.TestCase(), self.service.database)
        finally:
            self.service.cleanUp()

    def both(self, name, arguments, call, *given, **named):
        """Make a change in the model and in the store."""
        try:
            self.model.attempt(name, *arguments)
        except store_model.Refused as expected:
            try:
                call(None, *given, **named)
            except expected.args:
                return
            raise AssertionError(f"{name} {arguments} was not refused") from expected
        call(None, *given, **named)

    # -- providers ------------------------------------------------------------------------

    @stateful.initialize(kinds=st.lists(_inventories.filter(bool), min_size=3, max_size=3))
    def begin(self, kinds):
        for number, parent in enumerate((None, None, 0, 2, 2)):
            self.create(_PROVIDERS[number], f"provider {number}",
                        None if parent is None else _PROVIDERS[parent])
        for uuid, inventories in zip(_PROVIDERS, kinds, strict=False):
            self.set_inventory(uuid, inventories, 0)
        for consumer in _CONSUMERS[:2]:
            self.claim(consumer, {0: 1, 1: 2}, 0)

    def provider(self, number):
        """Return the uuid of a provider: one that exists if there are any, or nearly always."""
        known = list(self.model.providers)
        return known[number % len(known)] if known and number < 9 else _PROVIDERS[-1]

    def inventory(self, number):
        """Return provider and class of an inventory."""
        known = [(uuid, name) for uuid, each in self.model.providers.items()
                 for name in sorted(each.inventories)]
        return known[number * 7 % len(known)] if known and number < 9 else (
            self.provider(number), _CLASSES[0])

    def wanted(self, numbers):
        return {self.inventory(number): amount for number, amount in numbers.items()}

    @stateful.rule(uuid=st.sampled_from(_PROVIDERS), number=st.integers(0, 8),
                   parent=st.none() | _one)
    def create_one(self, uuid, number, parent):
        parent = None if parent is None else self.provider(parent)
        hypothesis.assume(uuid != parent)
        self.create(uuid, f"provider {number}", parent)

    def create(self, uuid, name, parent):
        self.both("create", (uuid, name, parent), self.api.create_provider, name, uuid,
                  parent_provider_uuid=parent)

    @stateful.rule(which=_one, name=_name, parent=st.none() | _one)
    def update(self, which, name, parent):
        uuid, parent = self.provider(which), None if parent is None else self.provider(parent)
        if uuid in self.model.providers:
            name = name or self.model.providers[uuid].name
        self.both("update", (uuid, name or "other", parent), self.api.update_provider, uuid,
                  name or "other", parent_provider_uuid=parent, may_move=True)

    @stateful.rule(which=_one, parent=st.none() | _one)
    def move_provider(self, which, parent):
        self.update(which, None, parent)

    @stateful.rule(which=_one)
    def delete(self, which):
        uuid = self.provider(which)
        self.both("delete", (uuid,), self.api.delete_provider, uuid)

    @stateful.rule(which=_one, names=st.frozensets(st.sampled_from(_TRAITS)), off=_off)
    def set_traits(self, which, names, off):
        uuid = self.provider(which)
        generation = self.provider_generation(uuid, off)
        self.both("set_traits", (uuid, names, generation), self.api.set_provider_traits, uuid,
                  sorted(names), generation)

    @stateful.rule(which=_one, uuids=st.frozensets(st.sampled_from(_AGGREGATES)), off=_off)
    def set_aggregates(self, which, uuids, off):
        uuid = self.provider(which)
        generation = self.provider_generation(uuid, off)
        self.both("set_aggregates", (uuid, uuids, generation), self.api.set_aggregates, uuid,
                  uuids, generation)

    def provider_generation(self, uuid, off):
        if off is None or uuid not in self.model.providers:
            return None
        return self.model.providers[uuid].generation + off

    def consumer_generation(self, uuid, off):
        return None if off is None else self.model.generation(uuid) + off

    # -- inventories and allocations ------------------------------------------------------

    @stateful.rule(which=_one, inventories=_inventories, off=_off)
    def set_inventories(self, which, inventories, off):
        self.set_inventory(self.provider(which), inventories, off)

    def set_inventory(self, uuid, inventories, off):
        generation = self.provider_generation(uuid, off)
        self.both("set_inventory", (uuid, inventories, generation), self.api.set_inventory, uuid,
                  _of(inventories), generation)

    @stateful.rule(consumer=_consumer, which=_one, amount=_amount)
    def claim_one(self, consumer, which, amount):
        self.claim(consumer, {which: amount}, None)

    @stateful.rule(consumer=_consumer, wanted=_wanted.filter(bool), off=_off)
    def claim(self, consumer, wanted, off):
        wanted = self.wanted(wanted)
        generation = self.consumer_generation(consumer, off)
        self.both("claim", ({consumer: (wanted, generation)},), self.api.claim_allocations,
                  _claim(consumer, wanted, generation))

    @stateful.rule(claims=_claims)
    def set_allocations(self, claims):
        claims = self.with_generations(claims)
        self.both("claim", (claims,), self.api.set_allocations, _list(claims))

    def with_generations(self, claims):
        return {consumer: (self.wanted(wanted), self.consumer_generation(consumer, off))
                for consumer, (wanted, off) in claims.items()}

    @stateful.rule(consumer=_consumer)
    def release(self, consumer):
        self.both("release", (consumer,), self.api.release_allocations, consumer)

    @stateful.rule(source=_consumer, to=_consumer)
    def move(self, source, to):
        self.both("move", (source, to), self.api.move_allocations, source, to)

    @stateful.rule(changes=st.dictionaries(
        _one, st.tuples(_inventories, _off), min_size=1, max_size=2),
        claims=st.just({}) | _claims)
    def reshape(self, changes, claims):
        wanted = {}
        for which, (inventories, off) in changes.items():
            uuid = self.provider(which)
            wanted[uuid] = inventories, self.provider_generation(uuid, off)
        self.reshape_to(wanted, self.with_generations(claims))

    @stateful.rule(source=_one, to=_one)
    def move_inventory(self, source, to):
        """Move an inventory with all that is allocated from it, as to a new child."""
        source, to = self.provider(source), self.provider(to)
        hypothesis.assume(source != to and {source, to} <= self.model.providers.keys())
        one, other = self.model.providers[source], self.model.providers[to]
        names = sorted(one.inventories.keys() - other.inventories,
                       key=lambda name: (-self.model.used(source, name), name))
        hypothesis.assume(names)
        name = names[0]
        claims = {}
        for consumer, each in self.model.consumers.items():
            if (source, name) in each["held"]:
                claims[consumer] = ({(to if key == (source, name) else key[0], key[1]): amount
                                     for key, amount in each["held"].items()},
                                    each["generation"])
        self.reshape_to({
            source: ({each: inventory for each, inventory in one.inventories.items()
                      if each != name}, one.generation),
            to: (other.inventories | {name: one.inventories[name]}, other.generation)}, claims)

    def reshape_to(self, changes, claims):
        self.both("reshape", (changes, claims), self.api.reshape, [
            InventoryList(provider_uuid=uuid, objects=_of(inventories),
                          **({} if generation is None else {"generation": generation}))
            for uuid, (inventories, generation) in changes.items()], _list(claims))

    # -- after each step ------------------------------------------------------------------

    @stateful.invariant()
    def rows_are_equal(self):
        model = self.model
        with self.service.database.reader() as tx:
            rows = {name: tx.execute(query).all() for name, query in _ROWS.items()}
        uuids = {row.id: row.uuid for row in rows["providers"]}
        assert {row.uuid: (row.name, uuids.get(row.parent_provider_id),
                           uuids[row.root_provider_id or row.id], row.generation)
                for row in rows["providers"]} == {
            uuid: (each.name, each.parent, model.root(uuid), each.generation)
            for uuid, each in model.providers.items()}
        assert {(row.uuid, row.name): (store_model.Inventory(
            row.total, row.reserved, row.min_unit, row.max_unit, row.step_size,
            row.allocation_ratio), row.used) for row in rows["inventories"]} == {
            (uuid, name): (inventory, model.used(uuid, name))
            for uuid, each in model.providers.items()
            for name, inventory in each.inventories.items()}
        for field in ("traits", "aggregates"):
            assert {tuple(row) for row in rows[field]} == {
                (uuid, value) for uuid, each in model.providers.items()
                for value in getattr(each, field)}
        assert {(row.uuid, row.generation) for row in rows["consumers"]} == {
            (uuid, each["generation"]) for uuid, each in model.consumers.items()}
        assert {(row.consumer, row.provider, row.name): row.used
                for row in rows["allocations"]} == {
            (uuid, *key): amount for uuid, each in model.consumers.items()
            for key, amount in each["held"].items()}

    @stateful.invariant()
    def candidates_are_equal(self):
        assert self.api.verify_index(None)["differences"] == {}
        for wanted in ({"VCPU": 1}, {"VGPU": 4}):
            assert {each.uuid for each in self.api.get_by_request(
                None, ResourceRequest(resources=wanted)).objects} == {
                uuid for uuid in self.model.providers if self.model.fits(uuid, wanted)}

    @stateful.invariant()
    def trees_are_equal(self):
        with self.service.manager.candidates.index.current() as index:
            found = index_contents.of(index)
        assert found == index_contents.expected(self.model.providers)

    def check_answers(self):
        """Check that the calls that read tell what the rows say."""
        for uuid, each in self.model.providers.items():
            found = self.api.get_provider(None, uuid)
            assert (found.name, found.parent_provider_uuid, found.generation) == (
                each.name, each.parent, each.generation)
            assert {row.resource_class: row.used
                    for row in self.api.get_inventory(None, uuid).objects} == {
                name: self.model.used(uuid, name) for name in each.inventories}
            assert set(self.api.get_provider_traits(None, uuid).traits) == each.traits
            assert set(self.api.get_aggregates(None, uuid).aggregates) == each.aggregates
            assert {row.uuid for row in self.api.list_providers(None, in_tree=uuid).objects} == {
                other for other in self.model.providers
                if self.model.root(other) == self.model.root(uuid)}
        for uuid in _CONSUMERS:
            found = self.api.get_allocations(None, uuid)
            assert {(provider, name): amount
                    for provider, resources in found.by_provider().items()
                    for name, amount in resources.items()} == self.model.held(uuid)
            consumer = found.value("consumer")
            assert (consumer.generation if consumer else 0) == self.model.generation(uuid)


def _of(inventories):
    return [Inventory(resource_class=name, **vars(values))
            for name, values in inventories.items()]


def _claim(consumer, wanted, generation):
    allocations = {}
    for (provider, name), amount in wanted.items():
        allocations.setdefault(provider, {})[name] = amount
    return base.claim(allocations, consumer, consumer_generation=generation)


def _list(claims):
    return [_claim(consumer, *each) for consumer, each in claims.items()]


def run(machine, examples):
    """Run a state machine."""
    stateful.run_state_machine_as_test(machine, settings=hypothesis.settings(
        deadline=None, max_examples=examples, stateful_step_count=30,
        # Failures are reported as found: shrinking them takes longer than a test may.
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck)))


