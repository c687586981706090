# SPDX-License-Identifier: Apache-2.0
"""What one release sent or committed, the other completes: casts, and events of the outbox."""

import pathlib

import fixtures
import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.testing import servers as private
from tests import base, environments
from tests.environments import THIS_TREE
from tests.integration import ledger
from tests.upgrade import side_by_side
from tests.upgrade.release_case import DIRECTIONS, VERSION, ReleasesTest, claim


class EnvironmentTest(base.TestCase):

    def test_each_runs_its_own_packages(self):
        """The old release does not find this tree, even where the environment names it."""
        root = pathlib.Path(__file__).parents[2]
        old = environments.release(VERSION)
        self.useFixture(fixtures.EnvironmentVariable("PYTHONPATH", str(root)))
        for installation, directory in ((old, old.directory), (THIS_TREE, root)):
            # It makes no call.
            client = self.useFixture(side_by_side.Client(installation, "rabbit://unused.invalid/"))
            package = pathlib.Path(client.package)
            self.assertTrue(package.is_relative_to(directory), package)
            if installation is old:
                self.assertEqual(VERSION, client.version)


class CastsInFlightTest(ReleasesTest):

    scenarios = DIRECTIONS if base.FULL else DIRECTIONS[:1]

    def setUp(self):
        super().setUp()
        # Casts of "first" are settled by "second".
        self.first, self.second = (
            (self.old, self.new) if self.is_forward else (self.new, self.old))
        self.running = self.conductor(self.first, queues={"commands_batch": 1})
        self.api = self.client(self.first)
        self.uuid = self.provider(self.api, 1000)
        self.end(self.running)

    def cast(self, client, consumer=None, amount=1, **named):
        return client.call("claim_allocations", cast=True, claim=claim(
            {self.uuid: {"VCPU": amount}}, consumer or base.new_uuid()), **named)

    def outcome(self, client, request_id):
        """Wait until a request is settled; returns a dict of ``accepted`` or ``refused``."""
        def settled():
            answer = client.ask("get_request_result", request_id=request_id)
            if "error" in answer and answer["error"]["code"] == "placement.request.not_found":
                return None
            return answer["result"]

        return base.wait_until(settled)

    def test_what_waits_is_settled_by_the_other_release(self):
        """In the order in which it was sent."""
        consumer = base.new_uuid()
        sent = [self.cast(self.api, consumer), self.cast(self.api, consumer, 3),
                self.cast(self.api, amount=5000),
                self.cast(self.api, request_id="twice"), self.cast(self.api, request_id="last")]
        sent.append(self.api.call("release_allocations", consumer_uuid=consumer, cast=True))
        self.start(self.running, self.second)
        for client in (self.api, self.client(self.second)):
            found = [self.outcome(client, request_id) for request_id in sent]
            self.assertEqual("placement.claim.capacity_exceeded", found.pop(2)["refused"]["code"])
            # Generation 1 is that of the inventories.
            self.assertEqual([{self.uuid: number} for number in range(2, 7)],
                             [each["accepted"]["generations"] for each in found])
            self.assertEqual([1, 2, 1, 1, 0],
                             [each["accepted"]["consumer_generation"] for each in found])
            self.assertEqual({"VCPU": 2, "MEMORY_MB": 0}, {
                each["resource_class"]: each["used"] for each in client.call(
                    "get_usages", provider_uuid=self.uuid)["objects"]})

    def test_what_a_killed_conductor_had_begun_the_other_release_completes(self):
        other = self.client(self.second)
        sent = [self.cast(client) for _ in range(100) for client in (self.api, other)]
        before = self.count(models.requests)
        # It settles them one by one.
        self.running.installation = self.first
        self.running.start()
        base.wait_until(lambda: self.count(models.requests) > before + 5)
        self.running.kill()
        self.assertLess(self.count(models.requests), before + len(sent))
        self.start(self.running, self.second)
        self.assertEqual(
            [{self.uuid: number} for number in range(2, len(sent) + 2)],
            [self.outcome(self.api, request_id)["accepted"]["generations"]
             for request_id in sent])
        self.assertEqual(before + len(sent), self.count(models.requests))
        ledger.check_events(self, self.store.database, self.events())


class OutboxTest(ReleasesTest):
    """What one release committed and could not publish is published by the other."""

    scenarios = DIRECTIONS if base.FULL else DIRECTIONS[1:]

    def make_broker(self):
        # It is stopped.
        return self.useFixture(private.RabbitMQ())

    def claim(self, facade, uuid):
        """Claim through a facade, which needs no broker."""
        answer = facade.send("PUT", f"/allocations/{base.new_uuid()}", json={"allocations": [
            {"resource_provider": {"uuid": uuid}, "resources": {"VCPU": 1}}]})
        self.assertEqual(204, answer.status_code, answer.text)

    def test_events_are_published_without_a_gap(self):
        first, second = (self.old, self.new) if self.is_forward else (self.new, self.old)
        conductor = self.conductor(first)
        facade = self.useFixture(side_by_side.Facade(first, {
            "api": {"transport": "local"},
            "database": {"connection": self.store.conf.database.connection}}))
        uuid = self.provider(self.client(first), 100)
        self.claim(facade, uuid)
        base.wait_until(self.all_published, message=conductor.said)
        self.broker.stop()
        for _ in range(5):
            self.claim(facade, uuid)
        # The relay cannot publish them, and gives them positions.
        base.wait_until(lambda: not self.relayed().waiting, message=conductor.said)
        conductor.kill()
        for _ in range(5):
            self.claim(facade, uuid)
        found = self.relayed()
        self.assertEqual((5, 5), (found.last - found.published, found.waiting))
        # As if the broker had confirmed one event more than the store has recorded.
        with self.store.database.writer() as tx:
            tx.execute(sa.update(models.relay_state).values(
                published_position=found.published - 1))
        self.broker.start()
        self.start(conductor, second)
        events = self.events()
        self.assertEqual(found.last + 5, len(events))
        ledger.check_events(self, self.store.database, events)
        self.assertEqual(11, sum(event.event_type == "allocation.create" for event in events))
