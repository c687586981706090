# SPDX-License-Identifier: Apache-2.0
"""Exactly once, although conductors are killed and servers fail during calls."""

import threading
import time

from placement_rpc import api, exception, manager
from placement_rpc.api import CandidateGroup, CandidatesRequest
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers as private
from tests import base, servers

_IN_GROUPS = CandidatesRequest(groups=[CandidateGroup(suffix="_A", resources={"VCPU": 1})])


class StoreAwayTest(base.TestCase):
    """The database stops and starts again under a running service."""

    time_limit = 120

    def test_calls_wait_for_it_and_are_done_once(self):
        for kind in (private.PostgreSQL, private.MariaDB):
            server = self.useFixture(kind(durable=True))
            running = self.useFixture(placement_fixtures.RunningService(
                transport_url=servers.rabbitmq().url, database_url=server.create_database(),
                placement_client__attempt_timeout=2))
            uuid = running.api.create_provider(None, "provider").uuid
            running.api.set_inventory(None, uuid, [base.inventory("VCPU", 8)])
            for number in range(1, 4):
                server.stop()
                results = []
                caller = threading.Thread(target=lambda: results.append(  # noqa: B023
                    running.api.claim_allocations(  # noqa: B023
                        None, base.claim({uuid: {"VCPU": 1}}), timeout=30)))  # noqa: B023
                caller.start()
                base.wait_until(lambda: running.api.sender.connection.waiting)  # noqa: B023
                server.start()
                caller.join()
                self.assertEqual({uuid: number + 1}, results[0].generations)
            self.assertEqual(3, running.api.get_usages(None, uuid).objects[0].used)


class BrokerAwayTest(base.TestCase):
    """The broker stops and starts again under a running service and its client."""

    time_limit = 120

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(private.RabbitMQ())
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url, placement_client__attempt_timeout=2))
        self.uuid = self.running.api.create_provider(None, "provider").uuid
        self.running.api.set_inventory(None, self.uuid, [base.inventory("VCPU", 8)])

    def test_service_and_client_continue_when_the_broker_is_back(self):
        for number in range(1, 3):
            self.broker.restart()
            done = self.running.api.claim_allocations(
                None, base.claim({self.uuid: {"VCPU": 1}}), timeout=40)
            self.assertEqual({self.uuid: number + 1}, done.generations)

    def test_a_call_while_it_is_away_ends_at_its_deadline(self):
        self.broker.stop()
        with api.PlacementAPI(conf=self.running.conf, topic=self.running.topic) as fresh:
            for client in (self.running.api, fresh):
                began = time.monotonic()
                self.assertRaises(
                    exception.DeadlineExceeded, client.claim_allocations, None,
                    base.claim({self.uuid: {"VCPU": 1}}), timeout=3, request_id="late")
                self.assertLess(time.monotonic() - began, 8)
        self.broker.start()
        # What still arrives of the late calls arrives before this one.
        self.running.api.claim_allocations(
            None, base.claim({self.uuid: {"VCPU": 2}}), timeout=40)
        self.assertRaises(
            exception.RequestNotFound, self.running.api.get_request_result, None, "late")
        self.assertEqual(2, self.running.api.get_usages(None, self.uuid).objects[0].used)


class ManagerTest(base.TestCase):

    def test_the_same_request_at_the_same_time_in_two_processes(self):
        """Two deliveries of one message race for the store."""
        for kind in servers.DATABASES:
            store = self.useFixture(placement_fixtures.Store(servers.new_database(kind)))
            clients = [api.PlacementAPI(
                "local", store.conf, manager=manager.Manager(store.conf, store.database))
                for _ in range(4)]
            uuid = clients[0].create_provider(None, "provider").uuid
            clients[0].set_inventory(None, uuid, [base.inventory("VCPU", 800)])
            for number in range(20):
                wanted, results = base.claim({uuid: {"VCPU": 1}}), []
                threads = [threading.Thread(target=lambda client: results.append(  # noqa: B023
                    client.claim_allocations(None, wanted, request_id=f"r{number}")),  # noqa: B023
                    args=(client,)) for client in clients]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual([number + 2] * 4, [
                    each.generations[uuid] for each in results])
                self.assertEqual(1, sum(not each.replayed for each in results))

    def test_every_kind_of_change_at_the_same_time(self):
        """The second delivery conflicts with the effect of the first, and returns its outcome."""
        for kind in servers.DATABASES:
            store = self.useFixture(placement_fixtures.Store(servers.new_database(kind)))
            clients = [api.PlacementAPI(
                "local", store.conf, manager=manager.Manager(store.conf, store.database))
                for _ in range(4)]
            for number in range(8):
                uuid = base.new_uuid()
                placed, other = base.claim(None), base.claim({uuid: {"VCPU": 1}})
                del placed.allocations
                for step, (method, *arguments) in enumerate((
                        ("create_provider", f"provider {number}", uuid),
                        ("set_inventory", uuid, [base.inventory("VCPU", 1)], 0),
                        ("claim_by_request", ResourceRequest(resources={"VCPU": 1}), placed),
                        ("set_allocations", [base.claim({}, placed.consumer_uuid), other]),
                        ("release_allocations", other.consumer_uuid),
                        ("claim_by_request", _IN_GROUPS, placed),
                        ("release_allocations", placed.consumer_uuid),
                        ("resource_class_create", f"CUSTOM_{number}"),
                        ("delete_provider", uuid))):
                    answers = self.at_once(
                        clients, method, arguments, f"r{number}-{step}")
                    self.assertEqual(1, len(answers), f"{kind} {method}: {answers}")

    def at_once(self, clients, method, arguments, request_id):
        """The different answers of several clients that ask the same at the same time."""
        answers = []

        def ask(client):
            try:
                answer = getattr(client, method)(None, *arguments, request_id=request_id)
                answers.append(str(answer).replace("replayed=True", "replayed=False"))
            except Exception as error:
                answers.append(repr(error))

        threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return set(answers)
