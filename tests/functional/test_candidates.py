# SPDX-License-Identifier: Apache-2.0
"""Candidates from memory are those of the store, whatever happened a moment ago."""

import contextlib

import hypothesis
import sqlalchemy as sa
from hypothesis import stateful
from hypothesis import strategies as st

from placement_rpc import exception
from placement_rpc.candidates.search import IndexedCandidates
from placement_rpc.candidates.stored import StoredCandidates
from placement_rpc.db import models
from placement_rpc.db.queries import events
from placement_rpc.objects.inventory import Inventory
from placement_rpc.objects.request import ORDERS, ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base

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
    """A fleet that changes in every way, asked of both who know it."""

    def __init__(self):
        super().__init__()
        self.service = placement_fixtures.RunningService(
            "local", database_url=self.new_database())
        self.service.setUp()
        self.api = self.service.api
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        self.stored = StoredCandidates(self.service.database)
        self.index = IndexedCandidates(self.stored)
        self.index.prepare()
        self.consumers = [base.new_uuid() for _ in range(4)]
        self.made, self.uuids = 0, []

    def new_database(self):
        """The URL of an empty database; None for a file of SQLite."""

    def teardown(self):
        self.service.cleanUp()

    def provider(self, which):
        rows = self.api.list_providers(None).objects
        return rows[which % len(rows)].uuid if rows else None

    def change(self, call, which, *arguments):
        """Something is changed, or refused: the index must know which."""
        uuid = self.provider(which)
        try:
            call(None, uuid, *arguments) if uuid else None
        except (exception.Conflict, exception.InvalidInput, exception.NotFound):
            return

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
    def make_anew(self, which, inventories):
        """Another provider of the same uuid."""
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
    def forget(self):
        """As after any doubt: the index is made of what is there."""
        self.index._followed = None
        self.index.prepare()

    @stateful.rule(count=st.integers(1, 5))
    def place(self, count):
        """As the relay does: some events get positions."""
        with self.service.database.writer() as tx:
            state = events.state(tx, lock=True)
            given = events.give_positions(tx, state.last_position, count)
            if given:
                events._set_state(tx, last_position=given[-1].position)

    @stateful.rule(wanted=_requests, limit=st.one_of(st.none(), st.integers(1, 4)))
    def ask(self, wanted, limit):
        request = ResourceRequest(**wanted)
        found, stored = (_plain(each.find(request)) for each in (self.index, self.stored))
        assert sorted(found) == sorted(stored), (found, stored)
        assert self.index.look(request) == self.stored.look(request)
        request.limit = limit
        some = _plain(self.index.find(request))
        assert len(some) == min(len(found), limit or len(found))
        assert set(some) <= set(found)

    @stateful.invariant()
    def nothing_differs(self):
        answer = self.index.verify(0, 1000)
        assert answer["differences"] == {}, answer
        assert answer["next"] is None


def _of(inventories):
    return [Inventory(resource_class=name, **values) for name, values in inventories.items()]


def _plain(found):
    return [(each.id, each.uuid, each.name, each.generation, tuple(sorted(each.free.items())))
            for each in found]


def run(machine, examples):
    """Try a machine out."""
    stateful.run_state_machine_as_test(machine, settings=hypothesis.settings(
        deadline=None, max_examples=examples, stateful_step_count=25,
        # Told as it was found: to make it shorter takes longer than a test may.
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck)))


class FleetTest(base.TestCase):

    def test_index_and_store_say_the_same_of_random_fleets(self):
        run(Fleet, 15)


class OrderTest(base.BothWaysTest):

    def setUp(self):
        super().setUp()
        self.uuids = [self.provider(VCPU=10, MEMORY_MB=100) for _ in range(4)]
        for uuid, used in zip(self.uuids, (6, 0, 8, 3), strict=True):
            if used:
                self.claim({uuid: {"VCPU": used}})

    def test_the_emptiest_or_the_fullest_first(self):
        one, two, three, four = self.uuids
        self.assertEqual([two, four, one, three], self.find({"VCPU": 1}, order="spread"))
        self.assertEqual([three, one, four, two], self.find({"VCPU": 1}, order="pack"))
        self.assertEqual([one, four], self.find({"VCPU": 3}, order="pack", limit=2))

    def test_a_claim_is_placed_in_that_order(self):
        for order, expected in (("pack", 2), ("pack", 2), ("pack", 0), ("spread", 1)):
            claim = base.claim(None)
            del claim.allocations
            done = self.api.claim_by_request(
                None, ResourceRequest(resources={"VCPU": 1}, order=order), claim)
            self.assertEqual([self.uuids[expected]], list(done.generations))

    def test_no_order_is_another_one_each_time(self):
        found = {tuple(self.find({"VCPU": 1})) for _ in range(40)}
        self.assertLess(5, len(found))

    def test_what_is_free_is_answered(self):
        found = self.api.get_by_request(None, ResourceRequest(
            resources={"VCPU": 1, "MEMORY_MB": 1}, order="pack", limit=1)).objects
        self.assertEqual([{"VCPU": 2, "MEMORY_MB": 100}], [each.free for each in found])
        self.assertFalse(self.api.get_provider(None, self.uuids[0]).obj_attr_is_set("free"))

    def test_another_order_is_refused(self):
        self.assertRaises(exception.InvalidInput, self.find, {"VCPU": 1}, order="emptiest")

    def test_not_member_of(self):
        red, blue = base.new_uuid(), base.new_uuid()
        self.api.set_aggregates(None, self.uuids[0], [red, blue])
        self.api.set_aggregates(None, self.uuids[1], [red])
        self.assertEqual({self.uuids[1]}, set(self.find(
            {"VCPU": 1}, member_of=[[red]], not_member_of=[blue])))
        self.assertEqual(set(self.uuids[2:]), set(self.find(
            {"VCPU": 1}, not_member_of=[blue, red, base.new_uuid()])))


class DoubtTest(base.TestCase):
    """Whatever does not add up, and the index is made anew; meanwhile the database answers."""

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(placement_fixtures.RunningService("local"))
        self.stored = StoredCandidates(self.service.database)
        self.index = IndexedCandidates(self.stored)
        self.index.prepare()
        self.wanted = ResourceRequest(resources={"VCPU": 1})
        self.uuid = self.provider("first")

    def provider(self, name):
        api = self.service.api
        uuid = api.create_provider(None, name).uuid
        api.set_inventory(None, uuid, [base.inventory("VCPU", 8)])
        return uuid

    def found(self):
        return {each.uuid for each in self.index.find(self.wanted)}

    def assert_made_anew(self, answer):
        before = self.index._followed
        self.assertEqual(answer, self.found())
        self.assertIsNot(before, self.index._followed)
        self.index._making.join()
        self.assertIsNotNone(self.index._followed)
        self.assertEqual(answer, self.found())
        self.assertEqual({}, self.index.verify(0, 100)["differences"])

    def test_an_event_that_does_not_say_what_it_touched(self):
        other = self.provider("other")
        with self.service.database.writer() as tx:
            tx.execute(sa.update(models.events).values(touched=None))
        self.assert_made_anew({self.uuid, other})

    def test_events_that_were_pruned_before_they_were_read(self):
        other = self.provider("other")
        with self.service.database.writer() as tx:
            events.state(tx, lock=True)
            rows = events.give_positions(tx, 0, 100)
            events._set_state(tx, last_position=len(rows), published_position=len(rows))
            tx.execute(sa.delete(models.events))
        self.assert_made_anew({self.uuid, other})

    def test_a_change_of_what_the_index_does_not_have(self):
        self.found()
        self.index._followed.index.providers["generation"][0] -= 1
        self.service.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}))
        self.assert_made_anew({self.uuid})

    def test_what_was_changed_behind_its_back_is_found_by_verifying(self):
        self.found()
        with self.service.database.writer() as tx:
            tx.execute(sa.update(models.inventories).values(used=8, updated_at=sa.func.now()))
        answer = self.index.verify(0, 100)
        self.assertIn("instead of", answer["differences"]["1"])
        self.index._making.join()
        self.assertEqual(set(), self.found())

    def test_each_difference_is_told(self):
        others = [self.provider(f"other {number}") for number in range(5)]
        self.service.api.set_aggregates(None, others[0], [base.new_uuid()])
        self.found()
        index = self.index._followed.index
        index.put_members((), [2])
        index.providers["name"][2] = "another"
        index.remove([4])
        index.providers["generation"][3] -= 1
        index.put_providers([(9, base.new_uuid(), "ninth", 0)])
        texts = self.index.verify(0, 100)["differences"]
        self.assertEqual(["2", "3", "4", "5", "9"], sorted(texts))
        for id_, words in (("2", "aggregates"), ("3", "name"), ("4", "not in the index"),
                           ("5", "generation"), ("9", "not in the store")):
            self.assertIn(words, texts[id_])

    def test_the_store_answers_while_it_is_made(self):
        self.index._followed = None
        with self.index._building:
            self.assertEqual({self.uuid}, self.found())
            self.assertEqual([self.uuid], [
                each.uuid for each in self.index.look(self.wanted)])
            claim = next(self.index.offers(self.wanted))
            self.assertEqual(self.uuid, claim)
        self.index._making.join()
        self.assertIsNotNone(self.index._followed)


class PledgeTest(base.TestCase):
    """Claims that are made at once do not all try the last free provider."""

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(placement_fixtures.RunningService("local"))
        self.index = IndexedCandidates(StoredCandidates(self.service.database))
        self.index.prepare()
        self.uuids = set()
        for name in ("one", "two"):
            uuid = self.service.api.create_provider(None, name).uuid
            self.service.api.set_inventory(None, uuid, [base.inventory("VCPU", 2)])
            self.uuids.add(uuid)

    def test_what_is_offered_counts_as_taken(self):
        wanted = ResourceRequest(resources={"VCPU": 2})
        one, two, three = (self.index.offers(wanted) for _ in range(3))
        first, second = next(one), next(two)
        self.assertEqual(self.uuids, {first, second})
        # Not every pledge becomes a claim: rather tried in vain than refused for nothing.
        self.assertIn(next(three), self.uuids)
        for each in (one, two, three):
            each.close()
        self.assertEqual({}, self.index._pledged)

    def test_who_finds_is_not_told_of_pledges(self):
        wanted = ResourceRequest(resources={"VCPU": 2})
        offers = self.index.offers(wanted)
        next(offers)
        self.assertEqual(2, len(self.index.find(wanted)))
        offers.close()
