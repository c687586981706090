# SPDX-License-Identifier: Apache-2.0
"""The candidate index finds what the store has, including the last committed change."""

import contextlib
import dataclasses
import itertools
import json
import threading
import time
import urllib.error
import urllib.request

import hypothesis
import sqlalchemy as sa
from hypothesis import stateful
from hypothesis import strategies as st

from placement_rpc import exception
from placement_rpc.candidates import explanation, verification
from placement_rpc.candidates.live_index import LiveIndex
from placement_rpc.candidates.search import CandidateSearch
from placement_rpc.db import models
from placement_rpc.db.queries import events
from placement_rpc.objects.inventory import Inventory
from placement_rpc.objects.request import ORDERS, ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing.facade import Facade
from tests import base, reference_model
from tests.benchmarks import fleet

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
        some = [_candidate(each, each.free) for each in self.search.find(request)]
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
        found = [_candidate(each, each.free) for each in self.search.find(request)]
        assert sorted(found) == expected, (found, expected)
        return found

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
    """Give positions to some events, as the relay does under its lease; return to how many."""
    with database.writer() as tx:
        # The first read of the state creates it.
        events.state(tx, lock=True)
        events.acquire(tx, "test", "test", 60)
        return events.give_waiting_positions(tx, "test", "test", count)


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


class FleetTest(base.TestCase):

    def test_index_and_model_agree_on_random_fleets(self):
        run(Fleet, 10)


class OrderTest(base.ContractTest):

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


class SearchTest(base.TestCase):
    """A test of a search of its own on the store of a service."""

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(placement_fixtures.RunningService("local"))
        self.search = CandidateSearch(self.service.database)
        self.wanted = ResourceRequest(resources={"VCPU": 1})
        self.uuid = self.provider("first")

    def provider(self, name, total=8):
        api = self.service.api
        uuid = api.create_provider(None, name).uuid
        api.set_inventory(None, uuid, [base.inventory("VCPU", total)])
        return uuid

    def found(self, deadline=None):
        return {each.uuid for each in self.search.find(self.wanted, deadline)}


class StaleIndexTest(SearchTest):
    """An index with any inconsistency is built again; calls wait for it."""

    def setUp(self):
        super().setUp()
        self.search.index.wait_until_ready()

    def assert_built_again(self, answer):
        self.assertEqual(1, self.search.index.statistics()["made"])
        self.assertEqual(answer, self.found())
        self.assertEqual(2, self.search.index.statistics()["made"])
        self.assertEqual({}, self.search.index.verify(0, 100)["differences"])

    def test_an_event_that_does_not_say_what_it_touched(self):
        other = self.provider("other")
        with self.service.database.writer() as tx:
            tx.execute(sa.update(models.events).values(touched=None))
        self.assert_built_again({self.uuid, other})

    def test_events_that_were_pruned_before_they_were_read(self):
        other = self.provider("other")
        self.assertLess(0, assign_positions(self.service.database, 100))
        with self.service.database.writer() as tx:
            tx.execute(sa.delete(models.events))
        self.assert_built_again({self.uuid, other})

    def test_a_change_of_what_the_index_does_not_have(self):
        with self.search.index.current() as index:
            index.providers["generation"][0] -= 1
        self.service.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}))
        self.assert_built_again({self.uuid})

    def test_a_row_that_changed_without_an_event_is_found_by_verifying(self):
        self.found()
        with self.service.database.writer() as tx:
            tx.execute(sa.update(models.inventories).values(used=8, updated_at=sa.func.now()))
        answer = self.search.index.verify(0, 100)
        self.assertIn("instead of", answer["differences"]["1"])
        self.assertEqual(set(), self.found())

    def test_each_difference_is_reported(self):
        others = [self.provider(f"other {number}") for number in range(5)]
        self.service.api.set_aggregates(None, others[0], [base.new_uuid()])
        with self.search.index.current() as index:
            index.put_aggregates((), [2])
            index.providers["name"][2] = "another"
            index.remove([4])
            index.providers["generation"][3] -= 1
            index.put_providers([(9, base.new_uuid(), "ninth", 0)])
        texts = self.search.index.verify(0, 100)["differences"]
        self.assertEqual(["2", "3", "4", "5", "9"], sorted(texts))
        for id_, words in (("2", "aggregates"), ("3", "name"), ("4", "not in the index"),
                           ("5", "generation"), ("9", "not in the store")):
            self.assertIn(words, texts[id_])


class VerificationTest(SearchTest):
    """Verification of an index, while calls find candidates in it."""

    def test_finds_do_not_wait_for_it(self):
        # Its first transaction reads the changes that the index lacks, as that of a find does.
        store = HeldStore(self.service.database, "verification", after=1)
        self.addCleanup(store.release.set)
        index = LiveIndex(store.reader)
        index.wait_until_ready()
        answers = []
        thread = threading.Thread(
            name="verification", target=lambda: answers.append(index.verify(0, 100)))
        thread.start()
        self.assertTrue(store.asked.wait(30))
        claimed = base.claim({self.uuid: {"VCPU": 8}})
        self.service.api.claim_allocations(None, claimed)
        with index.current() as current:
            self.assertEqual(1, len(current.page(0)))
        self.assertEqual([], answers)
        store.release.set()
        thread.join()
        self.assertEqual({}, answers[0]["differences"])

    def test_it_goes_slice_by_slice(self):
        fleet.grow(self.service.database, 2 * verification.SLICE)
        index = LiveIndex(self.service.database.reader)
        index.wait_until_ready()
        self.assertIsNone(index.verify(0, 1000)["next"])
        ids = [row[0] for row in self.pages(index)]
        # Out of time after the first slice, which the next call continues.
        answer = index.verify(0, 1000, seconds=0)
        self.assertEqual(ids[verification.SLICE - 1], answer["next"])
        self.assertIsNone(index.verify(answer["next"], 1000)["next"])
        last = ids[-1]
        with self.service.database.writer() as tx:
            tx.execute(sa.update(models.inventories).where(
                models.inventories.c.resource_provider_id == last).values(used=1))
        self.assertIn(str(last), index.verify(0, 1000)["differences"])

    def test_a_limit_within_a_slice(self):
        fleet.grow(self.service.database, 20)
        index = LiveIndex(self.service.database.reader)
        index.wait_until_ready()
        ids = [row[0] for row in self.pages(index)]
        self.assertEqual(ids[9], index.verify(0, 10)["next"])

    def test_an_index_that_cannot_follow_is_reported(self):
        self.found()
        with self.search.index.current() as index:
            index.providers["generation"][0] -= 1
        self.service.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}))
        self.assertIn(
            "changed from generation", self.search.index.verify(0, 100)["differences"]["0"])

    @staticmethod
    def pages(index):
        with index.current() as current:
            return current.page(0)


class HeldStore:
    """A database whose reading transactions wait until ``release`` is set.

    :param database: :class:`placement_rpc.db.api.Database`
    :param thread: str, name of the thread whose transactions wait; None for all
    :param after: int, how many of its transactions do not wait
    """

    def __init__(self, database, thread=None, after=0):
        self._database = database
        self._thread = thread
        self._after = after
        self.asked, self.release = threading.Event(), threading.Event()

    @contextlib.contextmanager
    def reader(self):
        if self._thread in (None, threading.current_thread().name):
            self._after -= 1
            if self._after < 0:
                self.asked.set()
                self.release.wait()
        with self._database.reader() as tx:
            yield tx


class BuildTest(SearchTest):
    """Calls wait for an index that is being built."""

    def setUp(self):
        super().setUp()
        self.store = HeldStore(self.service.database)
        self.addCleanup(self.store.release.set)
        self.search = CandidateSearch(self.store)

    def test_waiting_calls_are_answered_when_it_is_built(self):
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.found()))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        self.assertTrue(self.store.asked.wait(30))
        self.assertEqual([], answers)
        self.store.release.set()
        for thread in threads:
            thread.join()
        self.assertEqual([{self.uuid}] * 4, answers)
        self.assertEqual(1, self.search.index.statistics()["made"])

    def test_a_call_waits_no_longer_than_its_deadline(self):
        for call in (lambda: self.found(time.time() + 0.2),
                     lambda: self.search.views(self.wanted, deadline=time.time() + 0.2),
                     lambda: next(self.search.offers(self.wanted, time.time() + 0.2))):
            error = self.assertRaises(exception.ServiceUnavailable, call)
            self.assertIn("is being built", error.text)
            self.assertEqual((503, True), (error.http_status, error.retryable))
        self.store.release.set()
        self.assertEqual({self.uuid}, self.found())
        self.assertEqual(1, self.search.index.statistics()["made"])

    def test_a_call_without_a_deadline_is_refused_too(self):
        self.assertRaises(exception.ServiceUnavailable, self.found)

    def test_the_error_of_a_build_is_that_of_the_calls_and_the_next_call_builds(self):
        self.store.release.set()
        for failure, expected in (
                (exception.StoreUnavailable(reason="a test"), exception.StoreUnavailable),
                (RuntimeError("a test"), exception.ServiceUnavailable)):
            reader, self.store._database = self.store._database, _Broken(failure)
            self.assertRaises(expected, self.found)
            self.store._database = reader
        self.assertEqual({self.uuid}, self.found())

    def test_a_process_starts_without_an_index(self):
        self.store.release.set()
        self.store._database = _Broken(exception.StoreUnavailable(reason="a test"))
        self.search.index.prepare()
        self.assertIn("starts without a candidate index", self.log.output)


class _Broken:
    """A database whose reading transactions fail."""

    def __init__(self, failure):
        self._failure = failure

    def reader(self):
        raise self._failure


class NotReadyTest(base.TestCase):

    def test_over_http_it_is_503_with_retry_after(self):
        facade = self.useFixture(Facade(placement_client__deadline=1.0))
        manager = facade.running.conductor.manager
        store = HeldStore(facade.database)
        self.addCleanup(store.release.set)
        manager.candidates = CandidateSearch(store)
        request = urllib.request.Request(
            facade.url + "/resource_providers?resources=VCPU:1",
            headers={"x-auth-token": "admin", "openstack-api-version": "placement 1.4"})
        error = self.assertRaises(urllib.error.HTTPError, urllib.request.urlopen, request)
        with error:
            self.assertEqual((503, "1"), (error.code, error.headers["retry-after"]))
            self.assertEqual("placement.service.unavailable",
                             json.load(error)["errors"][0]["code"])
        store.release.set()
        with urllib.request.urlopen(request) as answer:
            self.assertEqual({"resource_providers": []}, json.load(answer))

    def test_the_option_that_turned_the_index_off_is_ignored(self):
        service = self.useFixture(placement_fixtures.RunningService(
            "local", candidates__index=False))
        self.assertIn("[candidates] index = false is deprecated and ignored", self.log.output)
        service.api.get_by_request(None, ResourceRequest(resources={"VCPU": 1}))


class ReservationTest(SearchTest):
    """Concurrent claims do not all try the last free provider."""

    def setUp(self):
        super().setUp()
        self.uuids = {self.uuid, self.provider("second")}
        self.wanted = ResourceRequest(resources={"VCPU": 8})

    def test_what_is_offered_is_reserved(self):
        one, two, three = (self.search.offers(self.wanted) for _ in range(3))
        first, second = next(one), next(two)
        self.assertEqual(self.uuids, {first, second})
        # Not every reservation becomes a claim: better to try in vain than to refuse for nothing.
        self.assertIn(next(three), self.uuids)
        self.assertEqual(24, sum(amounts[0] for amounts in self.search.reserved.values()))
        for each in (one, two, three):
            each.close()
        self.assertEqual({}, self.search.reserved)

    def test_a_search_ignores_reservations(self):
        offers = self.search.offers(self.wanted)
        next(offers)
        self.assertEqual(self.uuids, self.found())
        offers.close()
