# SPDX-License-Identifier: Apache-2.0
"""A fleet that changes at random, whose candidates are found by the index and by a slow model."""

import contextlib
import dataclasses
import itertools
import json

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from placement_rpc import exception
from placement_rpc.candidates import explanation
from placement_rpc.candidates.search import CandidateSearch
from placement_rpc.db.queries import events, leases, relaying
from placement_rpc.objects.candidates import CandidateGroup, CandidatesRequest
from placement_rpc.objects.inventory import Inventory
from placement_rpc.objects.request import ORDERS, ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, reference_model

_CLASSES = ("VCPU", "MEMORY_MB", "CUSTOM_GOLD")
_AGGREGATES = tuple(base.new_uuid() for _ in range(3))
_amounts = st.dictionaries(st.sampled_from(_CLASSES), st.integers(1, 6), min_size=1)
_inventories = st.dictionaries(st.sampled_from(_CLASSES), st.fixed_dictionaries({
    "total": st.integers(1, 12), "max_unit": st.integers(3, 12), "min_unit": st.integers(1, 3),
    "step_size": st.integers(1, 2), "allocation_ratio": st.sampled_from((1.0, 1.5))}))
_aggregates = st.lists(st.sampled_from(_AGGREGATES), max_size=3, unique=True)
_requests = st.fixed_dictionaries({
    "resources": _amounts, "member_of": st.lists(_aggregates.filter(bool), max_size=2),
    "not_member_of": _aggregates, "order": st.sampled_from((None, *ORDERS))})
_which = st.integers(0, 7)


class Fleet(stateful.RuleBasedStateMachine):
    """A fleet that changes in every way; index and reference model answer the same queries."""

    def __init__(self):
        super().__init__()
        self.service = placement_fixtures.RunningService(
            "local", database_url=self.new_database())
        self.service.setUp()
        self.api = self.service.api
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        self.search = CandidateSearch(self.service.database)
        self.consumers = [base.new_uuid() for _ in range(4)]
        self.made, self.uuids = 0, []

    def new_database(self):
        """Return the URL of an empty database; None for a file of SQLite."""

    def teardown(self):
        self.service.cleanUp()

    def provider(self, which):
        rows = self.api.list_providers(None).objects
        return rows[which % len(rows)].uuid if rows else None

    def change(self, call, which, *arguments):
        """Change a provider; a refused change must not change the index."""
        uuid = self.provider(which)
        try:
            call(None, uuid, *arguments) if uuid else None
        except (exception.Conflict, exception.InvalidInput, exception.NotFound):
            return

    @stateful.initialize(fleet=st.lists(
        st.tuples(_inventories, _aggregates), min_size=3, max_size=5))
    def start_with_some(self, fleet):
        for inventories, aggregates in fleet:
            self.make(inventories)
            self.change(self.api.set_aggregates, -1, aggregates)

    @stateful.rule(inventories=_inventories)
    def make(self, inventories):
        self.made += 1
        self.uuids.append(self.api.create_provider(None, f"provider {self.made}").uuid)
        self.change(self.api.set_inventory, -1, _of(inventories))

    @stateful.rule(which=_which, inventories=_inventories)
    def set_inventory(self, which, inventories):
        self.change(self.api.set_inventory, which, _of(inventories))

    @stateful.rule(which=_which, aggregates=_aggregates)
    def set_aggregates(self, which, aggregates):
        self.change(self.api.set_aggregates, which, aggregates)

    @stateful.rule(which=_which)
    def delete(self, which):
        self.change(self.api.delete_provider, which)

    @stateful.rule(which=_which, inventories=_inventories)
    def create_again(self, which, inventories):
        """Create another provider of the same uuid."""
        self.change(self.api.delete_provider, which)
        uuid = self.uuids[which % len(self.uuids)] if self.uuids else base.new_uuid()
        self.made += 1
        with contextlib.suppress(exception.ProviderExists):
            self.api.create_provider(None, f"provider {self.made}", uuid)
            self.api.set_inventory(None, uuid, _of(inventories))

    @stateful.rule(which=_which)
    def rename(self, which):
        self.made += 1
        self.change(self.api.update_provider, which, f"provider {self.made}")

    @stateful.rule(which=st.lists(_which, min_size=1, max_size=2), consumer=st.integers(0, 3),
                   amounts=_amounts)
    def claim(self, which, consumer, amounts):
        uuids = {self.provider(each) for each in which} - {None}
        try:
            self.api.claim_batch(None, [base.claim(
                dict.fromkeys(uuids, amounts), self.consumers[consumer])] if uuids else [])
        except exception.InvalidInput:
            return

    @stateful.rule(consumer=st.integers(0, 3))
    def release(self, consumer):
        try:
            self.api.release_allocations(None, self.consumers[consumer])
        except exception.NotFound:
            return

    @stateful.rule()
    def drop_index(self):
        self.search.index.drop("a test")

    @stateful.rule(count=st.integers(1, 5))
    def assign_positions(self, count):
        assign_positions(self.service.database, count)

    @stateful.rule(wanted=_requests, limit=st.one_of(st.none(), st.integers(1, 4)))
    def ask(self, wanted, limit):
        request = ResourceRequest(**wanted)
        found = self.compare(request, reference_model.providers(self.service.database))
        request.limit = limit
        some = [_candidate(each, each.free) for each in self.search.find(request).candidates]
        assert len(some) == min(len(found), limit or len(found))
        assert set(some) <= set(found)

    @stateful.rule()
    def ask_for_each_amount(self):
        providers = reference_model.providers(self.service.database)
        for name in _CLASSES:
            for amount in range(1, 7):
                self.compare(ResourceRequest(resources={name: amount}), providers)

    @stateful.rule(resources=st.dictionaries(
        st.sampled_from(_CLASSES), st.integers(1, 6), min_size=1, max_size=1))
    def ask_for_each_membership(self, resources):
        providers = reference_model.providers(self.service.database)
        for one, other in itertools.product(_AGGREGATES, repeat=2):
            for values in ({"member_of": [[one], [other]]}, {"member_of": [[one, other]]},
                           {"not_member_of": [one, other]},
                           {"member_of": [[one]], "not_member_of": [other]}):
                self.compare(ResourceRequest(resources=resources, **values), providers)

    def compare(self, request, providers):
        """Compare the results of the index with those of the model; return them."""
        expected = [_candidate(each, {name: each.inventories[name].free
                                      for name in request.resources})
                    for each in providers if each.fits(request)]
        found = [_candidate(each, each.free) for each in self.search.find(request).candidates]
        assert sorted(found) == expected, (found, expected)
        assert self.in_one_group(request) == sorted(each[1] for each in expected)
        return found

    def in_one_group(self, request):
        """Return the uuids of what is found for the same request as a group, in their order."""
        wanted = CandidatesRequest(groups=[CandidateGroup(
            suffix="_A", resources=request.resources, member_of=request.value("member_of", []),
            not_member_of=request.value("not_member_of", []))])
        answer = json.loads("".join(self.search.candidates(wanted, 39).parts))
        return sorted(each["mappings"]["_A"][0] for each in answer["allocation_requests"])

    @stateful.rule(wanted=_requests)
    def explain(self, wanted):
        request = ResourceRequest(**wanted)
        providers = reference_model.providers(self.service.database)
        views = self.search.views(request)
        assert [(each.uuid, each.name, each.generation, each.aggregates, each.inventories)
                for each in views] == [
            (each.uuid, each.name, each.generation, each.aggregates, {
                name: dataclasses.asdict(each.inventories[name])
                if name in each.inventories else None for name in request.resources})
            for each in providers]
        assert [each.fits for each in explanation.explain(request, views).objects] == [
            each.fits(request) for each in providers]

    @stateful.invariant()
    def nothing_differs(self):
        self.search.index.wait_until_ready()
        answer = self.search.index.verify(0, 1000)
        assert answer["differences"] == {}, answer
        assert answer["next"] is None


def assign_positions(database, count):
    """Give positions to some events, as the relay does under its lease.

    :returns: the last position that was given; None if no event waits for one
    """
    with database.writer() as tx:
        # The first read of the state creates it.
        events.state(tx, lock=True)
        leases.acquire(tx, "test", "test", 60)
        return relaying.give_waiting_positions(tx, "test", "test", count)


def _of(inventories):
    return [Inventory(resource_class=name, **values) for name, values in inventories.items()]


def _candidate(provider, free):
    return (provider.id, provider.uuid, provider.name, provider.generation,
            tuple(sorted(free.items())))


def run(machine, examples):
    """Run a state machine."""
    stateful.run_state_machine_as_test(machine, settings=hypothesis.settings(
        deadline=None, max_examples=examples, stateful_step_count=25,
        # Failures are reported as found: shrinking them takes longer than a test may.
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck)))
