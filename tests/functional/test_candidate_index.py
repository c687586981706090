# SPDX-License-Identifier: Apache-2.0
"""The candidate index: it is built again when it is stale, and calls wait while it is built."""

import contextlib
import json
import threading
import time
import traceback
import urllib.error
import urllib.request

import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.candidates import changes, verification
from placement_rpc.candidates.interned_sets import EMPTY
from placement_rpc.candidates.live_index import LiveIndex
from placement_rpc.candidates.search import CandidateSearch
from placement_rpc.db import models
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing.facade import Facade
from tests import base
from tests.benchmarks import fleet
from tests.functional import candidate_fleet


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
        self.assertLess(0, candidate_fleet.assign_positions(self.service.database, 100))
        with self.service.database.writer() as tx:
            tx.execute(sa.delete(models.events))
        self.assert_built_again({self.uuid, other})

    def test_a_change_of_what_the_index_does_not_have(self):
        with self.search.index.current() as index:
            index.generation[index.slot_of(1)] -= 1
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
            two, three, four = index.slots_of([2, 3, 5]).tolist()
            index.aggregate_set[two] = EMPTY
            index.slots["name_length"][three] -= 1
            index.generation[four] -= 1
            changes.put(index, [changes.Provider(9, base.new_uuid(), "ninth", 0)], removed=[4])
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
            self.assertEqual(1, len(current))
        self.assertEqual([], answers)
        store.release.set()
        thread.join()
        self.assertEqual({}, answers[0]["differences"])

    def test_it_goes_slice_by_slice(self):
        fleet.grow(self.service.database, 2 * verification.SLICE)
        index = LiveIndex(self.service.database.reader)
        index.wait_until_ready()
        self.assertIsNone(index.verify(0, 1000)["next"])
        ids = self.ids(index)
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
        ids = self.ids(index)
        self.assertEqual(ids[9], index.verify(0, 10)["next"])

    def test_an_index_that_cannot_follow_is_reported(self):
        self.found()
        with self.search.index.current() as index:
            index.generation[index.slot_of(1)] -= 1
        self.service.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}))
        self.assertIn(
            "changed from generation", self.search.index.verify(0, 100)["differences"]["0"])

    @staticmethod
    def ids(index):
        with index.current() as current:
            return current.id[current.page(0)].tolist()


class HeldStore:
    """A database whose reading transactions wait until ``release`` is set.

    :param database: :class:`placement_rpc.db.api.Database`
    :param thread: str, name of the thread whose transactions wait; None for all
    :param after: int, how many of its transactions do not wait
    """

    def __init__(self, database, thread=None, after=0):
        self.database = database
        self._thread = thread
        self._after = after
        self.asked, self.release = threading.Event(), threading.Event()

    @contextlib.contextmanager
    def reader(self, snapshot=False):
        if self._thread in (None, threading.current_thread().name):
            self._after -= 1
            if self._after < 0:
                self.asked.set()
                self.release.wait()
        with self.database.reader(snapshot) as tx:
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
            reader, self.store.database = self.store.database, _Broken(failure)
            self.assertRaises(expected, self.found)
            self.store.database = reader
        self.assertEqual({self.uuid}, self.found())

    def test_each_call_that_waits_for_a_build_gets_an_error_of_its_own(self):
        failure = exception.StoreUnavailable(reason="a test")
        index = LiveIndex(_Failing(self.store, failure).reader)
        errors = []

        def wait():
            errors.append(self.assertRaises(
                exception.StoreUnavailable, index.wait_until_ready))

        threads = [threading.Thread(target=wait) for _ in range(4)]
        for thread in threads:
            thread.start()
        self.store.release.set()
        for thread in threads:
            thread.join()
        self.assertEqual(4, len({id(error) for error in errors}))
        self.assertNotIn(failure, errors)
        # No thread that waited has raised it.
        self.assertNotIn("wait_until_ready", [
            each.name for each in traceback.extract_tb(failure.__traceback__)])

    def test_a_process_starts_without_an_index(self):
        self.store.release.set()
        self.store.database = _Broken(exception.StoreUnavailable(reason="a test"))
        self.search.index.prepare()
        self.assertIn("starts without a candidate index", self.log.output)


class _Failing:
    """A database of which reading transactions wait, and then fail."""

    def __init__(self, store, failure):
        self._store = store
        self._failure = failure

    @contextlib.contextmanager
    def reader(self, snapshot=False):
        with self._store.reader(snapshot):
            raise self._failure
        yield


class _Broken:
    """A database whose reading transactions fail."""

    def __init__(self, failure):
        self._failure = failure

    def reader(self, snapshot=False):
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
        self.assertEqual(self.uuids, {*first.allocations, *second.allocations})
        # Not every reservation becomes a claim: better to try in vain than to refuse for nothing.
        self.assertLess(set(next(three).allocations), self.uuids)
        self.assertEqual(24, sum(amounts[0] for amounts in self.search.reserved.values()))
        for each in (one, two, three):
            each.close()
        self.assertEqual({}, self.search.reserved)

    def test_a_search_ignores_reservations(self):
        offers = self.search.offers(self.wanted)
        next(offers)
        self.assertEqual(self.uuids, self.found())
        offers.close()
