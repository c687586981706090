# SPDX-License-Identifier: Apache-2.0
"""Exactly once, though conductors are killed and the broker goes away in the middle."""

import random
import threading
import time

import sqlalchemy as sa

from placement_rpc import api, exception, manager
from placement_rpc.db import models
from placement_rpc.db.queries import events
from placement_rpc.notifications import listener
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers as private
from tests import base, servers
from tests.integration import ledger, processes


class ExactlyOnceTest(base.TestCase):

    time_limit = 300

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(private.RabbitMQ())
        self.store = self.useFixture(placement_fixtures.Store(
            servers.new_database("postgresql"), transport_url=self.broker.url))
        self.conductors = [self.useFixture(processes.Conductor({
            "DEFAULT": {"transport_url": self.broker.url},
            "database": {"connection": self.store.conf.database.connection},
            "conductor": {"host": f"host{number}", "workers": 1, "threads": 8,
                          "report_interval": 1}})) for number in range(2)]
        self.client = api.PlacementAPI(conf=self.store.conf)
        self.addCleanup(self.client.close)
        self.client.ping(None, timeout=60)
        self.providers = []
        for number in range(6):
            uuid = self.client.create_provider(None, f"provider {number}").uuid
            self.client.set_inventory(None, uuid, [
                base.inventory("VCPU", 400), base.inventory("MEMORY_MB", 300_000)])
            self.providers.append(uuid)

    def claimers(self, seconds):
        return processes.Claimers([
            {"transport_url": self.broker.url, "providers": self.providers, "threads": 4,
             "requests": 1_000_000, "seconds": seconds, "deadline": 120, "attempt_timeout": 4,
             "seed": f"{number}"} for number in range(3)])

    def test_conductors_killed_and_broker_restarted_in_mid_load(self):
        chance = random.Random(7)
        claimers = self.claimers(seconds=24)
        kills = 0
        for round_ in range(5):
            time.sleep(chance.uniform(1.5, 3))
            victim = self.conductors[round_ % 2]
            victim.kill()
            kills += 1
            if round_ in (1, 3):
                self.broker.restart()
            victim.start()
        reports = claimers.results()
        ledger.check(self, self.store.database, reports)
        self.assertEqual(5, kills)
        with self.store.database.reader() as tx:
            settled = tx.execute(sa.select(sa.func.count()).select_from(models.requests).where(
                models.requests.c.method.in_(
                    ["claim_allocations", "release_allocations"]))).scalar()
        self.assertEqual(sum(report["sent"] for report in reports), settled)
        self.assertGreater(settled, 300)
        ledger.check_events(self, self.store.database, self.stream())

    def stream(self):
        """All events, once they are published."""
        deadline = time.monotonic() + 60
        while True:
            with self.store.database.reader() as tx:
                status = events.status(tx)
            if status["published_position"] == status["events"]:
                break
            self.assertLess(time.monotonic(), deadline, status)
            time.sleep(0.2)
        found = []
        for event in listener.StreamReader(
                self.broker.url, self.store.conf.notifications.stream, 1).events(10):
            found.append(event)
            if event.position == status["last_position"]:
                break
        return found


class StoreAwayTest(base.TestCase):
    """The database goes away and comes back under a running service."""

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
                time.sleep(1)
                server.start()
                caller.join()
                self.assertEqual({uuid: number + 1}, results[0].generations)
            self.assertEqual(3, running.api.get_usages(None, uuid).objects[0].used)


class BrokerAwayTest(base.TestCase):
    """The broker goes away and comes back under a running service and its client."""

    time_limit = 120

    def setUp(self):
        super().setUp()
        self.broker = self.useFixture(private.RabbitMQ())
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=self.broker.url, placement_client__attempt_timeout=2))
        self.uuid = self.running.api.create_provider(None, "provider").uuid
        self.running.api.set_inventory(None, self.uuid, [base.inventory("VCPU", 8)])

    def test_both_go_on_when_it_comes_back(self):
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
        self.running.api.ping(None, timeout=40)
        # Whatever of it still arrives is past its deadline.
        time.sleep(2)
        self.assertEqual(0, self.running.api.get_usages(None, self.uuid).objects[0].used)


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
        """The one that comes second finds the first one's effect in its way, and its outcome."""
        for kind in servers.DATABASES:
            store = self.useFixture(placement_fixtures.Store(servers.new_database(kind)))
            clients = [api.PlacementAPI(
                "local", store.conf, manager=manager.Manager(store.conf, store.database))
                for _ in range(4)]
            for number in range(8):
                uuid = base.new_uuid()
                placed = base.claim(None)
                del placed.allocations
                for step, (method, *arguments) in enumerate((
                        ("create_provider", f"provider {number}", uuid),
                        ("set_inventory", uuid, [base.inventory("VCPU", 1)], 0),
                        ("claim_by_request", ResourceRequest(resources={"VCPU": 1}), placed),
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
