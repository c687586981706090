# SPDX-License-Identifier: Apache-2.0
"""The import from each database to each other, and what a running service makes of it."""

import testscenarios

from placement_rpc import exception
from placement_rpc.db.queries import moving
from placement_rpc.moving import hold
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, placement_contents, servers
from tests.functional import import_case, test_held_store, test_import

_PAIRS = [("postgresql", "mariadb"), ("mariadb", "postgresql"), ("sqlite", "postgresql"),
          ("postgresql", "sqlite")]


def _url(kind):
    return None if kind == "sqlite" else servers.new_database(kind)


class ImportTest(testscenarios.WithScenarios, test_import.ImportTest):
    """What is brought over between other databases."""

    scenarios = [(f"{source} to {target}", {"source_kind": source, "target_kind": target})
                 for source, target in (_PAIRS if base.FULL else _PAIRS[:2])]

    def store_url(self):
        return _url(self.target_kind)


class HeldServiceTest(test_held_store.HeldServiceTest):
    """All of the tests in one process, over RabbitMQ."""

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES[1:]]

    def service_arguments(self):
        return {"transport_url": servers.rabbitmq().url, "database_url": _url(self.kind)}


class RunningServiceTest(testscenarios.WithScenarios, import_case.ImportCase):
    """A conductor that runs while the store is filled."""

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def setUp(self):
        super().setUp()
        placement_contents.fill(self.cloud)
        self.service = self.useFixture(placement_fixtures.RunningService(
            database_url=self.store.conf.database.connection))
        self.api = self.service.api

    def store_url(self):
        return _url(self.kind)

    def with_room(self, **resources):
        return {each.uuid for each in self.api.get_by_request(
            None, ResourceRequest(resources=resources)).objects}

    def usages(self, project="project"):
        return self.api.get_project_usages(None, project).usages

    def asked(self, project="project"):
        """Return the same of Placement."""
        return self.cloud.send("GET", f"/usages?project_id={project}", minor=9)["usages"]

    def test_searches_and_usages_are_those_of_the_last_run(self):
        """Right after it, though both were read before."""
        self.assertEqual((set(), {}), (self.with_room(VGPU=1), self.usages()))
        self.run_import()
        for number in range(2):
            gpus = self.with_room(VGPU=1)
            self.assertEqual(self.placements_choice("VGPU:1"), gpus)
            self.assertEqual((4, self.asked()), (len(gpus) - 1, self.usages()))
            placement_contents.change(self.cloud, number)
            self.run_import()
            self.assertEqual(self.placements_choice("VCPU:1"), self.with_room(VCPU=1))
            self.assertEqual(self.asked(), self.usages())
        verified = self.service.manager.candidates.index.verify(0, 1000)
        self.assertEqual({}, verified["differences"])

    def placements_choice(self, resources):
        """Return the providers with room, as Placement says."""
        return {each["uuid"] for each in self.cloud.send(
            "GET", f"/resource_providers?resources={resources}")["resource_providers"]}

    def test_clients_write_again_after_the_last_run(self):
        self.run_import()
        server = placement_contents.uuid_of("server01")
        self.assertRaises(exception.StoreHeld, self.api.release_allocations, None, server)
        self.run_import("--finish")
        before = self.usages("project1")
        held = self.api.get_allocations(None, server)
        generation = held.consumer.generation
        released = self.api.release_allocations(None, server, consumer_generation=generation)
        self.assertEqual(set(held.by_provider()), set(released.generations))
        self.assertEqual(before["VCPU"] - 2, self.usages("project1")["VCPU"])
        claimed = self.api.claim_by_request(
            None, ResourceRequest(resources={"VCPU": 2}), base.claim({}))
        self.assertEqual(1, claimed.consumer_generation)
        messages = []
        while not any(each["event_type"] == "allocation.create" for each in messages):
            messages += self.service.conductor.publisher.read(timeout=20)
        found = [each["event_type"] for each in messages]
        self.assertEqual([hold.EVENT, hold.EVENT, "allocation.snapshot.begin"], found[:3])
        self.assertEqual("allocation.snapshot.end", found[-3])
        self.assertEqual({"allocation.exists"}, set(found[3:-3]))


class LongReadTest(base.TestCase):

    def test_a_snapshot_may_be_idle_for_longer_than_other_transactions(self):
        """On MariaDB, whose limit is that of a session, and would end an import after seconds."""
        database = self.useFixture(placement_fixtures.Store(
            servers.new_database("mariadb"), transactions__idle_timeout=7.0)).database
        limits = "SELECT @@idle_transaction_timeout, @@net_write_timeout"
        with database.reader(snapshot=True) as tx:
            moving.Reader(tx)
            self.assertEqual((0, 3600), tx.exec_driver_sql(limits).one())
        # No other transaction uses its session.
        for _ in range(3):
            with database.reader() as tx:
                self.assertEqual((7, 60), tx.exec_driver_sql(limits).one())
