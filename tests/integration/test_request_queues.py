# SPDX-License-Identifier: Apache-2.0
"""Request queues: claims in batches that are acknowledged after their commit, and that bulk calls
about the fleet do not delay."""

import bz2
import functools
import json
import socket
import threading
import types

import amqp
import kombu
from kombu import compression

from placement_rpc import api, exception, manager
from placement_rpc.amqp.broker import Broker
from placement_rpc.rpc import routing
from placement_rpc.rpc.batch_server import BatchServer
from placement_rpc.service.attempts import Attempts
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers as private
from placement_rpc.versions import contract
from tests import base, library, servers
from tests.functional import test_metrics
from tests.integration import proxy


class ClaimTest(base.TestCase):
    """A service on RabbitMQ and a provider with much room."""

    def setUp(self):
        super().setUp()
        self.broker = self.make_broker()
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url))
        self.api = self.running.api
        self.topic = routing.name(self.running.topic, contract.CLAIMS)
        self.uuid = self.api.create_provider(None, "provider").uuid
        self.api.set_inventory(None, self.uuid, [base.inventory("VCPU", 100_000)])

    def make_broker(self):
        return servers.rabbitmq()

    def used(self):
        return self.api.get_usages(None, self.uuid).objects[0].used

    def claim(self, **values):
        return self.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}), **values)

    def settled_batches(self):
        """Return a list that grows by the queue and the size of each batch that is settled."""
        seen, service = [], self.running.manager
        settle = service.settle

        def record(queue, pending):
            seen.append((queue, len(pending)))
            return settle(queue, pending)

        self.patch(service, "settle", record)
        return seen

    def replace_settle(self, settle):
        """Replace what settles a batch in one transaction.

        :param settle: function of what settled it before, the database, requests and method
        """
        commit = self.running.manager.group_commit
        self.patch(commit, "settle_batch", functools.partial(settle, commit.settle_batch))

    def plain_client(self):
        """An ordinary oslo.messaging client of the claims."""
        return self.useFixture(library.Client(self.running.conf, self.topic))


class ClaimServerTest(ClaimTest):

    def publish(self, *bodies, **properties):
        url = self.broker.url.replace("rabbit:", "amqp:")
        with kombu.Connection(url) as connection:
            channel = connection.channel()
            for body in bodies:
                channel.basic_publish(amqp.Message(
                    body, content_type="application/json", content_encoding="utf-8",
                    **properties), exchange=routing.EXCHANGE, routing_key=self.topic)

    def test_claims_have_a_queue_of_their_own(self):
        seen = self.settled_batches()
        self.claim()
        self.assertEqual([(contract.CLAIMS, 1)], seen)

    def test_claims_that_wait_are_settled_in_one_transaction(self):
        batches, began, go_on = [], threading.Event(), threading.Event()

        def slowly(settle, database, pending, method):
            # Clients send their calls again if the answers take long.
            batches.append({each.request.request_id for each in pending})
            began.set()
            go_on.wait(30)
            return settle(database, pending, method)

        self.replace_settle(slowly)
        threads = [threading.Thread(target=self.claim)]
        threads[0].start()
        began.wait(30)
        threads += [threading.Thread(target=self.claim) for _ in range(8)]
        for thread in threads[1:]:
            thread.start()
        base.wait_until(lambda: self.api.sender.connection.waiting == 9)
        go_on.set()
        for thread in threads:
            thread.join()
        self.assertEqual((9, 9), (len(set().union(*batches)), self.used()))
        # Some may still be on their way through the broker when the first transaction ends.
        self.assertGreater(max(map(len, batches)), 1)

    def test_a_message_that_is_not_a_call_is_dead_lettered_and_the_next_is_answered(self):
        self.publish("", "5", "[]", "{", '{"oslo.version": "2.0", "oslo.message": "{"}',
                     '{"oslo.version": "2.0", "oslo.message": 5}', "[" * 100_000, b"\xff\xfe",
                     '{"method": ["x"], "_reply_q": 5, "_msg_id": {}}', '{"_context_a": 5}',
                     json.dumps({"method": "claim_allocations", "_msg_id": "1",
                                 "_reply_q": "x" * 300}),
                     json.dumps({"method": "claim_allocations", "_msg_id": "1",
                                 "_reply_q": "nobody reads here"}),
                     json.dumps({"method": "claim_allocations", "_context_roles": [{}],
                                 "_context_rule": "placement:allocations:manage"}),
                     json.dumps({"method": "claim_allocations",
                                 "_context_deadline": -10 ** 400}))
        self.publish(b"no gzip", application_headers={"compression": "application/x-gzip"})
        self.claim()
        self.assertEqual(1, self.used())
        self.assertIn("not a call: ", self.log.output)

    def test_what_is_too_large_is_refused_to_its_sender(self):
        client = self.plain_client()
        for text in ("x" * 5_000_000, [[]] * 200_000):
            self.assertRaises(exception.MessageTooLarge, client.call, {}, "claim_allocations",
                              claim=text, request_id="large")
        self.publish(bz2.compress(bytes(10 ** 8)),
                     application_headers={"compression": "application/x-bz2"})
        self.claim()
        self.assertEqual(1, self.used())

    def test_releases_and_compressed_calls_are_batched_with_claims(self):
        seen = self.settled_batches()
        consumer = base.new_uuid()
        claim = base.claim({self.uuid: {"VCPU": 1}}, consumer)
        self.api.claim_allocations(None, claim)
        self.api.release_allocations(None, consumer)
        self.assertEqual([(contract.CLAIMS, 1)] * 2, seen)
        body = {"method": "claim_allocations", "version": "1.2", "args": {
            "claim": claim.obj_to_primitive(), "request_id": "compressed"}}
        packed, kind = compression.compress(json.dumps(body), "gzip")[:2]
        self.publish(packed, application_headers={"compression": kind})
        base.wait_until(lambda: self.used() == 1)

    def test_a_defect_tells_the_client_an_incident_number_only(self):
        failed = []

        def fail(settle, database, pending, method):
            if any(each.request.request_id == "defect" for each in pending):
                failed.append(1)
                raise RuntimeError("the secret")
            return settle(database, pending, method)

        self.replace_settle(fail)
        error = self.assertRaises(exception.RemoteFailure, self.plain_client().call, {},
                                  "claim_allocations", request_id="defect", claim=base.claim(
                                      {self.uuid: {"VCPU": 2}}).obj_to_primitive())
        self.assertTrue(failed)
        self.assertNotIn("the secret", str(error))
        self.claim()

    def test_a_claim_is_retried_while_the_store_is_away(self):
        away = []

        def fail(settle, database, pending, method):
            away.append(len(pending))
            if len(away) < 3:
                raise exception.StoreUnavailable(reason="away")
            return settle(database, pending, method)

        self.replace_settle(fail)
        self.claim(timeout=40)
        self.assertEqual((3, 1), (len(away), self.used()))


class LostConnectionTest(ClaimTest):
    """The service loses its connections; its client does not."""

    def make_broker(self):
        self.virtual_host = servers.rabbitmq()
        self.proxy = self.useFixture(proxy.Proxy(self.virtual_host.port))
        return types.SimpleNamespace(url=self.virtual_host.url.replace(
            f":{self.virtual_host.port}", f":{self.proxy.port}"))

    def setUp(self):
        super().setUp()
        self.api = api.PlacementAPI(conf=self.running.conf, topic=self.running.topic,
                                    transport_url=self.virtual_host.url)
        self.addCleanup(self.api.close)

    def test_a_claim_that_was_committed_and_not_acknowledged_is_answered_as_before(self):
        settled = []

        def lose(settle, database, pending, method):
            outcomes = settle(database, pending, method)
            settled.extend(each.request.request_id for each in pending)
            if len(settled) == 1:
                self.proxy.reset()
            return outcomes

        self.replace_settle(lose)
        done = self.claim(request_id="once", timeout=40)
        self.assertTrue(done.replayed)
        # The client may have sent a copy meanwhile.
        self.assertGreaterEqual(len(settled), 2)
        self.assertEqual(({"once"}, 1), (set(settled), self.used()))

    def test_inventories_whose_connection_is_lost_while_they_are_set(self):
        """Calls that arrive over the next connection are answered and acknowledged there."""
        server = self.running.conductor.servers[contract.FLEET]
        service = self.running.manager
        settle, began, go_on = service.settle, threading.Event(), threading.Event()

        def slowly(queue, pending):
            if queue == contract.FLEET:
                began.set()
                go_on.wait(30)
            return settle(queue, pending)

        self.patch(service, "settle", slowly)
        self.addCleanup(go_on.set)
        uuids = [self.api.create_provider(None, name).uuid for name in ("first", "second")]
        threads = [threading.Thread(target=self.api.set_inventory, args=(
            None, uuid, [base.inventory("VCPU", 4)]), kwargs={"timeout": 60}) for uuid in uuids]
        threads[0].start()
        began.wait(30)
        self.proxy.reset()
        # The call that is being worked on is delivered again.
        base.wait_until(lambda: server.busy >= 2)
        threads[1].start()
        base.wait_until(lambda: server.busy >= 3)
        go_on.set()
        for thread in threads:
            thread.join()
        for uuid in uuids:
            self.assertEqual(1, self.api.get_inventory(None, uuid).generation)
        base.wait_until(lambda: (server.busy, self.messages(contract.FLEET)) == (0, 0))

    def messages(self, queue):
        """Return how many messages are in a request queue, delivered ones included."""
        name = routing.name(self.running.topic, queue)
        counts = dict(line.split("\t") for line in self.virtual_host.rabbitmqctl(
            "list_queues", "name", "messages").splitlines())
        return int(counts[name])


class RestartTest(ClaimTest):

    time_limit = 180

    def make_broker(self):
        return self.useFixture(private.RabbitMQ())

    def test_the_broker_is_restarted(self):
        self.claim()
        self.broker.restart()
        self.claim(timeout=60)
        self.assertEqual(2, self.used())


class OlderConductorTest(base.TestCase):

    def test_a_server_of_one_queue_takes_all_calls_from_it(self):
        store = self.useFixture(placement_fixtures.Store(
            transport_url=servers.rabbitmq().url))
        topic = f"placement-{base.new_uuid()}"
        server = BatchServer(store.conf, Broker.of(store.conf), manager.Manager(
            store.conf, store.database), [topic], 4, Attempts(store.database))
        server.begin()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        client = api.PlacementAPI(conf=store.conf, topic=topic)
        self.addCleanup(client.close)
        uuid = client.create_provider(None, "provider", timeout=40).uuid
        client.set_inventory(None, uuid, [base.inventory("VCPU", 8)], timeout=40)
        client.claim_allocations(None, base.claim({uuid: {"VCPU": 8}}), timeout=40)
        self.assertEqual(8, client.get_usages(None, uuid).objects[0].used)


class FleetReportTest(base.ContractTest):
    """Schedulers are answered, however many resource trackers report at the same time."""

    options = {"conductor__threads": 4, "conductor__fleet_threads": 2}

    def service_arguments(self):
        return {"transport_url": servers.rabbitmq().url}

    def test_claims_do_not_wait_for_reports_of_the_fleet(self):
        uuid = self.provider(VCPU=100)
        go_on, settle = threading.Event(), self.service.manager.settle

        def slowly(queue, pending):
            if queue == contract.FLEET:
                go_on.wait(60)
            return settle(queue, pending)

        self.patch(self.service.manager, "settle", slowly)
        self.addCleanup(go_on.set)
        others = [self.api.create_provider(None, f"node {number}").uuid for number in range(8)]
        reports = [threading.Thread(target=self.api.set_inventory, args=(
            None, other, [base.inventory("VCPU", 4)])) for other in others]
        for report in reports:
            report.start()
        for _ in range(5):
            self.claim({uuid: {"VCPU": 1}}, timeout=30)
            self.assertEqual([uuid], self.find({"VCPU": 1}))
        self.assertTrue(all(report.is_alive() for report in reports))
        go_on.set()
        for report in reports:
            report.join()
        self.assertEqual(set(others), set(self.find({"VCPU": 4})) - {uuid})


class MetricsTest(base.TestCase):

    def test_a_conductor_shows_its_request_queues(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.useFixture(placement_fixtures.RunningService(
            transport_url=servers.rabbitmq().url, metrics__port=port))
        found = test_metrics.scrape(f"http://127.0.0.1:{port}")
        for name in ("slots", "calls"):
            self.assertEqual({"calls", "claims", "fleet"}, {
                each[1] for each in found if each[0] == f"placement_rpc_queue_{name}"})


class ManyClientsTest(base.TestCase):
    """Many clients that begin at the same time."""

    time_limit = 180

    def test_all_calls_are_answered_with_few_database_connections(self):
        running = self.useFixture(placement_fixtures.RunningService(
            transport_url=servers.rabbitmq().url,
            database_url=servers.new_database("postgresql")))
        uuid = running.api.create_provider(None, "provider").uuid
        running.api.set_inventory(None, uuid, [base.inventory("VCPU", 1000)])
        failed, start = [], threading.Barrier(60)

        def call(client):
            start.wait()
            try:
                client.claim_allocations(None, base.claim({uuid: {"VCPU": 1}}), timeout=100)
            except exception.PlacementException as error:
                failed.append(error)

        clients = [api.PlacementAPI(conf=running.conf, topic=running.topic) for _ in range(12)]
        for client in clients:
            self.addCleanup(client.close)
        threads = [threading.Thread(target=call, args=(clients[number % 12],))
                   for number in range(60)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], failed)
        self.assertEqual(60, running.api.get_usages(None, uuid).objects[0].used)
        with running.database.reader() as tx:
            held = tx.exec_driver_sql(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            ).scalar()
        self.assertLessEqual(held, 2 * running.conf.database.max_pool_size)
