# SPDX-License-Identifier: Apache-2.0
"""One client that makes calls with 64 threads, as fast as it can, and fifteen others."""

import collections
import threading

from testtools.content import text_content

from placement_rpc import api, exception
from placement_rpc.context import RequestContext
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.versions import contract
from tests import base, servers
from tests.benchmarks import fair_clients, fleet
from tests.benchmarks.http_services import OurFacade
from tests.integration import processes
from tests.integration.conversation import ConversationTest

_THREADS, _GOOD = 64, 15
_MANY = "many"
# Providers that a search without a limit finds.
_FLEET = 500


class ClaimsTest(base.TestCase):
    """Claims that are settled together."""

    time_limit = 180

    def setUp(self):
        super().setUp()
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=servers.rabbitmq().url))
        # Each claim says by its provider whose it is.
        self.providers = {}
        for name in (_MANY, "good"):
            uuid = self.providers[name] = self.running.api.create_provider(None, name).uuid
            self.running.api.set_inventory(None, uuid, [base.inventory("VCPU", 10 ** 6)])
        self.batches, self.settled = [], collections.Counter()
        settle = self.running.manager.settle

        def record(queue, pending):
            if queue == contract.CLAIMS:
                found = collections.Counter(
                    _MANY if self.providers[_MANY] in each.allocations else "good"
                    for each in pending)
                self.batches.append(found)
                self.settled += found
            return settle(queue, pending)

        self.patch(self.running.manager, "settle", record)
        self.over, self.failed, self.threads = threading.Event(), [], []
        self.addCleanup(self.join)

    def join(self):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def claim(self, client, name):
        client.claim_allocations(
            None, base.claim({self.providers[name]: {"VCPU": 1}}), timeout=60)

    def start(self, function, count):
        def run():
            try:
                function()
            except exception.PlacementException as error:
                self.failed.append(error)

        started = [threading.Thread(target=run) for _ in range(count)]
        for thread in started:
            thread.start()
        self.threads += started
        return started

    def client(self):
        client = api.PlacementAPI(conf=self.running.conf, topic=self.running.topic)
        self.addCleanup(client.close)
        return client

    def run_away(self):
        client = self.client()

        def claim_for_ever():
            while not self.over.is_set():
                self.claim(client, _MANY)

        self.start(claim_for_ever, _THREADS)
        base.wait_until(lambda: self.settled[_MANY] > 2 * _THREADS)

    def test_the_one_has_a_share_of_each_transaction_while_the_others_claim(self):
        self.run_away()
        began = threading.Barrier(_GOOD)

        def claim_often():
            client = self.client()
            self.claim(client, "good")
            began.wait(60)
            for _ in range(10):
                self.claim(client, "good")

        for thread in self.start(claim_often, _GOOD):
            thread.join()
        self.assertEqual([], self.failed)
        shared = [batch for batch in self.batches if batch["good"]]
        # All of its 64 would be settled with each of the others' otherwise.
        self.assertLessEqual(max(batch[_MANY] for batch in shared), 16, shared)
        # It has its share, too.
        self.assertGreater(sum(batch[_MANY] for batch in shared), 0)

    def test_the_one_has_all_places_if_it_is_alone(self):
        self.run_away()
        base.wait_until(lambda: max(batch[_MANY] for batch in self.batches) > 16)
        self.assertEqual([], self.failed)


class SharesTest(base.TestCase):
    """Processes of clients and of the service, in turns without and with the one that runs away.

    The times depend on the machine, and are reported; what is counted does not.
    """

    time_limit = 300

    def check(self, road, address, database, api):
        clients = self.useFixture(fair_clients.FairClients(
            road, address, database, fair_clients.make_providers(api)))
        for work in ("claim", "find"):
            rounds = [clients.measure(work, 2) for _ in range(2)]
            self.addDetail(f"{road} {work}", text_content(fair_clients.summary(rounds)))
            self.assertEqual(0, sum(each.failed for each in rounds))
            self.assertGreater(sum(each.done for each in rounds), 0)
            self.assertGreater(sum(len(each.beside) for each in rounds), 0)
            if work == "claim":
                passed = sorted(count for each in rounds for count in each.passed)
                # All of its 64 would be done with each claim of the others otherwise.
                self.assertLessEqual(passed[len(passed) // 2], 16, passed)
        return rounds

    def test_over_the_bus(self):
        store = self.useFixture(placement_fixtures.Store(
            servers.new_database("postgresql"), transport_url=servers.rabbitmq().url))
        fleet.grow(store.database, _FLEET)
        self.useFixture(processes.Conductor({
            "DEFAULT": {"transport_url": store.conf.transport_url},
            "database": {"connection": store.conf.database.connection}}))
        with api.PlacementAPI(conf=store.conf) as client:
            self.check("bus", store.conf.transport_url, store.database, client)

    def test_over_http(self):
        facade = self.useFixture(OurFacade(
            servers.new_empty_database("postgresql"), fleet_size=_FLEET, threads=24))
        local = self.useFixture(placement_fixtures.RunningService(
            "local", database_url=facade.database_url))
        rounds = self.check("http", facade.url, local.database, local.api)
        self.assertGreater(sum(each.refused for each in rounds), 0)


class CallsTest(ConversationTest):
    """Calls that are worked on by eight threads, of which those of the one client do not end."""

    def configured(self, **options):
        return super().configured(**{"conductor__calls_per_client": 8, **options})

    def call(self, caller, text, after=0):
        return caller.call(RequestContext(), "say", {"text": text, "after": after}, 60)

    def test_the_others_are_answered_and_the_one_is_refused(self):
        held, _ = self.in_threads(lambda _: self.call(self.caller, "held", 60), None)
        base.wait_until(lambda: self.server.busy == 1)
        many = self.make_caller()
        threads, answers = self.in_threads(
            lambda _: self.call(many, _MANY, 60), *range(_THREADS))
        # All but those that it may have wait no longer.
        base.wait_until(lambda: many.connection.waiting == 8)
        self.assertEqual(9, self.server.busy)
        for _ in range(_GOOD):
            caller = self.make_caller()
            for _ in range(5):
                self.assertEqual("good", self.call(caller, "good"))
        self.speaker.go_on.set()
        for thread in threads + held:
            thread.join()
        refused = [each for each in answers if each != _MANY]
        self.assertEqual((_THREADS, _THREADS - 8), (len(answers), len(refused)))
        for error in refused:
            self.assertIsInstance(error, exception.ServiceOverloaded)
            self.assertGreater(error.kwargs["retry_after"], 0)
        self.assertIn(f'refused_overloaded_total{{queue="calls"}} {_THREADS - 8}.0',
                      self.speaker.metrics.show().decode())

    def test_a_server_that_is_stopped_answers_the_calls_that_wait(self):
        """Nobody else is there to answer them."""
        threads, answers = self.in_threads(
            lambda _: self.call(self.caller, "held", 60), *range(20))
        base.wait_until(lambda: self.server.busy == 20)
        self.server.stop()
        self.speaker.go_on.set()
        for thread in threads:
            thread.join()
        self.assertEqual(["held"] * 20, answers)

    def test_a_call_that_is_refused_is_made_again_when_the_error_says(self):
        """The client does so by itself."""
        client = api.PlacementAPI(conf=self.conf, topic=self.topic)
        self.addCleanup(client.close)
        held, _ = self.in_threads(lambda _: self.call(self.caller, "held", 60), None)
        base.wait_until(lambda: self.server.busy == 1)
        threads, answers = self.in_threads(
            lambda _: self.call(client.sender, _MANY, 60), *range(8))
        base.wait_until(lambda: self.server.busy == 9)
        pings, found = self.in_threads(lambda _: client.ping(None, timeout=60)["pid"], None)
        base.wait_until(lambda: 'refused_overloaded_total{queue="calls"}' in (
            self.speaker.metrics.show().decode()))
        self.assertEqual([None], found)
        self.speaker.go_on.set()
        for thread in threads + held + pings:
            thread.join()
        self.assertEqual([_MANY] * 8, answers)
        self.assertIsInstance(found[0], int)
