# SPDX-License-Identifier: Apache-2.0
"""Events name who made the request, and the numbering that their positions belong to."""

import concurrent.futures
import json

import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.accounting import snapshot
from placement_rpc.cmd import manage
from placement_rpc.context import RequestContext
from placement_rpc.db import models
from placement_rpc.db.queries import events, leases, relaying
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.inventory import InventoryList
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, http


def caller(user="ada", project="blue", **values):
    return RequestContext(user_id=user, project_id=project, auth_token="secret", **values)


def named(user="ada", project="blue"):
    return {"user_id": user, "project_id": project}


def stored(database, event_type=None):
    """Return the data of all events of a type, in their order."""
    with database.reader() as tx:
        rows = tx.execute(sa.select(models.events).order_by(models.events.c.id)).all()
    return [json.loads(row.payload)["placement_object.data"] for row in rows
            if event_type in (None, row.event_type)]


class InitiatorTest(base.ContractTest):

    def initiators(self, event_type=None):
        return [each["initiator"] for each in stored(self.service.database, event_type)]

    def test_of_every_change(self):
        context, other = caller(), base.new_uuid()
        node = self.api.create_provider(context, "node").uuid
        self.api.update_provider(context, node, "renamed")
        self.api.set_inventory(context, node, [base.inventory("VCPU", 8)])
        self.api.update_inventory(context, node, base.inventory("VCPU", 9))
        self.api.set_aggregates(context, node, [base.new_uuid()])
        self.api.create_trait(context, "CUSTOM_A")
        self.api.set_provider_traits(context, node, ["CUSTOM_A"])
        self.api.resource_class_create(context, "CUSTOM_B")
        claim = base.claim({node: {"VCPU": 1}})
        self.api.claim_allocations(context, claim)
        self.api.claim_batch(context, [base.claim({node: {"VCPU": 1}}) for _ in range(2)])
        self.api.claim_by_request(context, ResourceRequest(resources={"VCPU": 1}), Claim(
            consumer_uuid=base.new_uuid(), project_id="project", user_id="user"))
        self.api.set_allocations(context, [base.claim({node: {"VCPU": 1}})])
        at = self.api.get_provider(None, node).generation
        self.api.reshape(context, [InventoryList(
            provider_uuid=node, generation=at, objects=[base.inventory("VCPU", 10)])], [])
        self.api.move_allocations(context, claim.consumer_uuid, other)
        self.api.release_allocations(context, other)
        self.assertRaises(exception.CapacityExceeded, self.api.claim_allocations, context,
                          base.claim({node: {"VCPU": 99}}))
        found = self.initiators()
        self.assertLess(12, len(found))
        self.assertEqual([named()] * len(found), found)
        self.assertNotIn("secret", json.dumps(stored(self.service.database)))

    def test_of_callers_that_are_settled_together(self):
        node = self.provider(VCPU=100)
        claims = {f"user {number}": base.claim({node: {"VCPU": 1}}) for number in range(20)}
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda user: self.api.claim_allocations(caller(user), claims[user]),
                          claims))
        self.assertEqual(
            {claim.consumer_uuid: named(user) for user, claim in claims.items()},
            {each["consumer_uuid"]: each["initiator"] for each in stored(
                self.service.database, "allocation.create")})

    def test_a_caller_without_a_name(self):
        self.provider("a")
        self.api.create_provider(RequestContext(project_id="blue"), "b")
        self.api.create_provider(RequestContext(user_id="x" * 300), "c")
        self.assertEqual([None, named(None), named("x" * 255, None)], self.initiators())

    def test_the_reason_of_the_caller(self):
        node = self.provider(VCPU=100)
        claims = {f"reason {number}": base.claim({node: {"VCPU": 1}}) for number in range(20)}
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda reason: self.api.claim_allocations(
                caller(reason=reason), claims[reason]), claims))
        self.assertEqual(
            {claim.consumer_uuid: reason for reason, claim in claims.items()},
            {each["consumer_uuid"]: each["reason"] for each in stored(
                self.service.database, "allocation.create")})
        self.api.update_provider(caller(reason="a\nb" + "x" * 300), node, "renamed")
        found, = stored(self.service.database, "resource_provider.update")
        self.assertEqual("a b" + "x" * 252, found["reason"])

    def test_a_reason_travels(self):
        sent = caller(reason="because").to_dict()
        self.assertEqual("because", RequestContext.from_dict(sent).reason)
        self.assertNotIn("reason", caller().to_dict())
        self.assertRaises(
            exception.InvalidInput, RequestContext.from_dict, {**sent, "reason": 5})

    def test_no_reason(self):
        self.api.create_provider(caller(), "a")
        self.api.create_provider(caller(reason=" \n"), "b")
        self.assertEqual([False, False], [
            "reason" in each for each in stored(self.service.database)])

    def test_a_snapshot_is_nobodys_request(self):
        node = self.provider(VCPU=8)
        self.api.claim_allocations(caller(), base.claim({node: {"VCPU": 1}}))
        snapshot.begin(self.service.database)
        while snapshot.go_on(self.service.database) is not None:
            continue
        self.assertEqual([named()], self.initiators("allocation.create"))
        self.assertEqual([None], self.initiators("allocation.exists"))
        self.assertEqual([None], self.initiators("allocation.snapshot.end"))


class HTTPInitiatorTest(http.HTTPTest):

    def test_the_user_of_the_token(self):
        self.assertEqual(201, self.send("POST", "/resource_providers", {"name": "node"},
                                        token="admin:office").status_code)
        event, = stored(self.database)
        self.assertEqual(named("admin", "office"), event["initiator"])


class EpochTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.running = self.useFixture(placement_fixtures.RunningService())
        self.api, self.database = self.running.api, self.running.database

    def published(self, *names):
        """Create providers, and return the data of their events as they are sent."""
        for name in names:
            self.api.create_provider(None, name)
        found = []
        while len(found) < len(names):
            received = self.running.conductor.publisher.read(timeout=30)
            self.assertNotEqual([], received)
            found += [each["payload"]["placement_object.data"] for each in received]
        return found

    def epoch(self):
        with self.database.reader() as tx:
            return events.status(tx)["epoch"]

    def test_it_is_that_of_the_store(self):
        found = self.published("a", "b", "c")
        self.assertEqual([1, 2, 3], [each["position"] for each in found])
        self.assertEqual({self.epoch()}, {each["epoch"] for each in found})
        page = self.api.list_events(None)
        self.assertEqual([self.epoch()] * 3, [each["payload"]["epoch"] for each in page.events])
        other = self.useFixture(placement_fixtures.RunningService())
        other.api.create_provider(None, "a")
        base.wait_published(other.database)
        with other.database.reader() as tx:
            self.assertNotEqual(self.epoch(), events.status(tx)["epoch"])

    def test_a_store_that_is_restored_while_the_relay_works(self):
        first = self.published("a", "b", "c")

        def restore(tx):
            tx.execute(sa.delete(models.events).where(models.events.c.position > 1))
            tx.execute(sa.update(models.relay_state).values(
                last_position=1, published_position=1))

        base.wait_published(self.database)
        self.database.write(restore)
        second = self.published("d", "e")
        self.assertEqual([2, 3], [each["position"] for each in second])
        self.assertEqual({self.epoch()}, {each["epoch"] for each in second})
        self.assertNotEqual(first[0]["epoch"], self.epoch())

    def test_what_was_confirmed_of_the_store_before_it_was_restored_does_not_count(self):
        database = self.useFixture(placement_fixtures.Store()).database

        def batch(tx):
            leases.acquire(tx, "relay", "this", 60)
            return relaying.next_batch(tx, "relay", "this", (0, 9), 10, given=9)

        self.assertEqual((0, [], 0), database.write(batch)[:3])

    def test_a_store_of_an_older_release_gets_one(self):
        self.published("a")
        self.database.write(lambda tx: tx.execute(sa.update(models.relay_state).values(
            epoch=None)))
        found, = self.published("b")
        self.assertEqual(self.epoch(), found["epoch"])
        self.assertIsNotNone(self.epoch())

    def test_the_operators_command(self):
        first, = self.published("a")
        self.assertEqual(0, manage.main([
            "--database", str(self.running.conf.database.connection), "outbox", "begin-epoch"]))
        second, = self.published("b")
        self.assertNotEqual(first["epoch"], second["epoch"])
        self.assertEqual(2, second["position"])


class PinnedTest(base.TestCase):

    def test_listeners_of_an_older_release_get_what_they_know(self):
        running = self.useFixture(placement_fixtures.RunningService(
            notifications__payload_pin="2026.2"))
        running.api.create_provider(caller(reason="because"), "a")
        found, = running.conductor.publisher.read(timeout=30)
        self.assertEqual("1.0", found["payload"]["placement_object.version"])
        data = found["payload"]["placement_object.data"]
        self.assertEqual(("a", 1), (data["name"], data["position"]))
        self.assertEqual(set(), {"epoch", "initiator", "reason"} & set(data))
