# SPDX-License-Identifier: Apache-2.0
"""What projects use is kept in memory, and always includes what was committed before."""

import contextlib
import threading

import testscenarios

from placement_rpc import api, exception, manager
from placement_rpc.accounting.project_usages import UsageReader
from placement_rpc.db import api as db
from placement_rpc.db.queries import bulk, events, relaying, usages
from placement_rpc.notifications import publishers, relay
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers


class ProjectUsagesTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(placement_fixtures.RunningService(
            "local", database_url=servers.new_database(self.kind)))
        self.api, self.database = self.service.api, self.service.database
        self.node = self.api.create_provider(None, "node").uuid
        self.api.set_inventory(None, self.node, [base.inventory("VCPU", {"total": 100_000})])
        self.reader = self.service.manager.project_usages
        self.other = self.another_service()

    def another_service(self):
        """Return the client of another process on the same store."""
        database = db.Database(self.service.conf)
        self.addCleanup(database.close)
        client = api.PlacementAPI("local", self.service.conf, manager=manager.Manager(
            self.service.conf, database))
        self.addCleanup(client.close)
        return client

    def start_relay(self):
        relayed = relay.Relay(self.service.conf, self.database, publishers.MemoryPublisher(), "it")
        relayed.start()
        self.addCleanup(relayed.stop)

    def claim(self, project, amount, consumer=None, client=None, **owner):
        consumer = consumer or base.new_uuid()
        (client or self.api).claim_allocations(None, base.claim(
            {self.node: {"VCPU": amount}}, consumer, project_id=project, **owner))
        return consumer

    def check(self, project, amount, **only):
        wanted = {"VCPU": amount} if amount else {}
        for client in (self.api, self.other):
            self.assertEqual(
                wanted, client.get_project_usages(None, project, **only).usages)

    def sums(self, *project):
        """Return how often the store was summed to answer for a project."""
        before = self.reader.summed
        self.api.get_project_usages(None, *project)
        return self.reader.summed - before

    def test_they_are_summed_once(self):
        self.claim("ada", 1)
        self.assertEqual([1, 0, 0], [self.sums("ada") for _ in range(3)])
        self.claim("bob", 1)
        self.api.create_provider(None, "another")
        self.assertEqual(0, self.sums("ada"))
        self.claim("ada", 2, client=self.other)
        self.assertEqual([1, 0], [self.sums("ada") for _ in range(2)])
        self.check("ada", 3)

    def test_events_that_get_a_position(self):
        self.start_relay()
        base.wait_published(self.database)
        self.claim("ada", 1)
        self.assertEqual([1, 0], [self.sums("ada") for _ in range(2)])
        base.wait_published(self.database)
        self.assertEqual(0, self.sums("ada"))
        self.claim("ada", 2)
        self.check("ada", 3)

    def test_consumers_that_change_hands_or_type(self):
        consumer = self.claim("ada", 3, user_id="anna")
        self.check("ada", 3)
        self.check("bob", 0)
        self.claim("bob", 3, consumer, user_id="ben", client=self.other)
        self.check("ada", 0)
        self.check("bob", 3)
        self.check("bob", 3, user_id="ben")
        self.check("bob", 0, consumer_type="INSTANCE")
        self.claim("bob", 3, consumer, user_id="ben", consumer_type="INSTANCE")
        self.check("bob", 3, consumer_type="INSTANCE")
        self.check("bob", 0, consumer_type="unknown")
        self.api.release_allocations(None, consumer)
        self.check("bob", 0)
        self.check("bob", 0, user_id="ben")

    def test_numbers_and_sums_are_of_the_same_moment(self):
        for amount in range(1, 4):
            self.claim("ada", amount, consumer_type="INSTANCE")
        self.claim("ada", 10)
        found = self.api.get_project_usages(None, "ada")
        self.assertEqual({"INSTANCE": {"consumers": 3, "usages": {"VCPU": 6}},
                          "unknown": {"consumers": 1, "usages": {"VCPU": 10}}}, found.by_type)
        # An answer is the caller's own.
        found.by_type.clear()
        found.usages["VCPU"] = 0
        self.check("ada", 16)

    def test_other_letters_are_another_project(self):
        for project in ("ada", "ADA", "ada ", "\u00e0da"):
            self.claim(project, 1)
            self.check(project, 1)
            self.claim(project, 1, user_id=project)
            self.check(project, 1, user_id=project)

    def test_a_class_with_another_name(self):
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        self.api.set_inventory(None, self.node, [base.inventory("CUSTOM_GOLD", {"total": 8})])
        self.api.claim_allocations(None, base.claim(
            {self.node: {"CUSTOM_GOLD": 2}}, project_id="ada"))
        for client in (self.api, self.other):
            self.assertEqual(
                {"CUSTOM_GOLD": 2}, client.get_project_usages(None, "ada").usages)
        self.api.resource_class_rename(None, "CUSTOM_GOLD", "CUSTOM_SILVER")
        for client in (self.api, self.other):
            self.assertEqual(
                {"CUSTOM_SILVER": 2}, client.get_project_usages(None, "ada").usages)

    def test_more_events_than_are_read(self):
        self.claim("ada", 1)
        self.check("ada", 1)
        for _ in range(2):
            self.api.set_allocations(None, [base.claim(
                {self.node: {"VCPU": 1}}, project_id="bob") for _ in range(usages.MOST)])
        # Too many wait for a position: it is summed each time.
        self.claim("ada", 1)
        self.assertEqual([1, 1], [self.sums("ada") for _ in range(2)])
        self.check("ada", 2)
        self.start_relay()
        base.wait_published(self.database)
        self.claim("ada", 1)
        self.assertEqual([1, 0], [self.sums("ada") for _ in range(2)])
        self.check("ada", 3)

    def test_events_that_are_gone_and_another_store(self):
        self.start_relay()
        self.claim("ada", 1)
        base.wait_published(self.database)
        self.assertEqual([1, 0], [self.sums("ada") for _ in range(2)])
        self.claim("ada", 1)
        base.wait_published(self.database)
        with self.database.writer() as tx:
            self.assertGreater(events.prune(tx, bulk.now()), 0)
        self.check("ada", 2)
        self.assertEqual(0, self.sums("ada"))
        with self.database.writer() as tx:
            relaying.begin_epoch(tx)
        self.assertEqual([1, 0], [self.sums("ada") for _ in range(2)])

    def test_a_change_while_they_are_summed(self):
        meanwhile = []

        @contextlib.contextmanager
        def reading():
            with self.database.reader() as tx:
                yield tx
            if meanwhile:
                meanwhile.pop()()

        reader = UsageReader(reading)

        def change():
            self.claim("ada", 1)
            self.assertEqual({"VCPU": 2}, reader.of_project("ada").usages)

        self.claim("ada", 1)
        # After the events are read, and after the sums are.
        meanwhile += [change, lambda: None]
        self.assertEqual({"VCPU": 1}, reader.of_project("ada").usages)
        self.assertEqual({"VCPU": 2}, reader.of_project("ada").usages)

    def test_more_threads_than_connections(self):
        connections = threading.Semaphore(1)

        @contextlib.contextmanager
        def reading():
            # As a pool whose only connection is in use.
            if not connections.acquire(timeout=20):
                raise exception.StoreUnavailable
            try:
                with self.database.reader() as tx:
                    yield tx
            finally:
                connections.release()

        reader = UsageReader(reading)
        failures = []

        def work(user):
            try:
                for turn in range(20):
                    if not failures:
                        reader.of_project(f"{turn}", user)
            except Exception as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=work, args=(f"{number}",)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], failures)

    def test_the_oldest_are_forgotten(self):
        reader = UsageReader(self.database.reader, most_rows=12)
        for number in range(5):
            self.claim(str(number), 1)
            # Three rows: the number of consumers, one class, and the entry itself.
            reader.of_project(str(number))
        self.assertEqual(5, reader.summed)
        for number in range(1, 5):
            self.assertEqual({"VCPU": 1}, reader.of_project(str(number)).usages)
        self.assertEqual(5, reader.summed)
        reader.of_project("0")
        self.assertEqual(6, reader.summed)

    def test_each_sees_its_own_changes(self):
        self.start_relay()
        failures = []

        def work(number, client):
            user, held = f"user {number}", 0
            try:
                for turn in range(20):
                    consumer = self.claim("ada", turn + 1, client=client, user_id=user)
                    held += turn + 1
                    if turn % 3 == 0:
                        client.release_allocations(None, consumer)
                        held -= turn + 1
                    for asked in (client, self.other):
                        found = asked.get_project_usages(None, "ada", user).usages
                        if found.get("VCPU", 0) != held:
                            failures.append((user, turn, found, held))
            except Exception as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=work, args=(number, client))
                   for number, client in enumerate((self.api, self.other) * 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], failures)
        each = sum(turn + 1 for turn in range(20) if turn % 3)
        self.check("ada", 6 * each)
