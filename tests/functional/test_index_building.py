# SPDX-License-Identifier: Apache-2.0
"""Calls wait while the candidate index is built, and get an error if it is not in time."""

import contextlib
import json
import threading
import time
import traceback
import urllib.error
import urllib.request

import fixtures

from placement_rpc import exception
from placement_rpc.candidates.live_index import LiveIndex
from placement_rpc.candidates.search import CandidateSearch
from placement_rpc.db.queries import candidate_feed
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing.facade import Facade
from tests import base
from tests.functional.test_candidate_index import SearchTest
from tests.held_store import HeldStore


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

    def test_a_database_that_cuts_long_texts(self):
        self.store.release.set()
        whole = candidate_feed.inventory_texts
        for text in ("1,8,0,1,8", ""):
            self.useFixture(fixtures.MonkeyPatch(
                "placement_rpc.db.queries.candidate_feed.inventory_texts",
                lambda *_arguments, text=text: [(0, 1, text)]))
            error = self.assertRaises(exception.ServiceUnavailable, self.found)
            self.assertIn("group_concat_max_len", error.text)
        self.useFixture(fixtures.MonkeyPatch(
            "placement_rpc.db.queries.candidate_feed.inventory_texts", whole))
        self.assertEqual({self.uuid}, self.found())

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
    def reader(self, snapshot=False, causal=True):
        with self._store.reader(snapshot, causal):
            raise self._failure
        yield


class _Broken:
    """A database whose reading transactions fail."""

    def __init__(self, failure):
        self._failure = failure

    def reader(self, snapshot=False, causal=True):
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
