# SPDX-License-Identifier: Apache-2.0
"""Requests are settled once, however often they arrive, and not after their deadline."""

import hashlib
import json
import threading
import time

import fixtures
import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.context import RequestContext
from placement_rpc.db import models
from placement_rpc.db.queries import bulk, requests
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base


class OnceTest(base.ContractTest):

    def test_a_claim_again_is_answered_with_the_first_outcome(self):
        uuid = self.provider(VCPU=8)
        consumer, first = self.claim({uuid: {"VCPU": 2}}, request_id="one")
        self.api.release_allocations(None, consumer)
        _, second = self.claim({uuid: {"VCPU": 2}}, consumer, request_id="one")
        self.assertEqual((False, True), (first.replayed, second.replayed))
        self.assertEqual(first.generations, second.generations)
        self.assertEqual({"VCPU": 0}, self.used(uuid))

    def test_a_refusal_again_is_a_refusal_though_there_is_room_now(self):
        uuid = self.provider(VCPU=1)
        consumer = base.new_uuid()
        for total in (1, 8):
            self.api.update_inventory(None, uuid, base.inventory("VCPU", total))
            error = self.assertRaises(exception.CapacityExceeded, self.claim,
                                      {uuid: {"VCPU": 2}}, consumer, request_id="one")
            self.assertEqual(1, error.kwargs["free"])

    def test_an_id_that_was_used_for_something_else_is_refused(self):
        uuid = self.provider(VCPU=8)
        self.claim({uuid: {"VCPU": 2}}, request_id="one")
        for call in (
                lambda: self.claim({uuid: {"VCPU": 3}}, request_id="one"),
                lambda: self.api.create_provider(None, "name", request_id="one"),
                lambda: self.api.release_allocations(None, base.new_uuid(), request_id="one")):
            self.assertRaises(exception.RequestIdReused, call)
        self.assertEqual({"VCPU": 2}, self.used(uuid))
        self.assertEqual(1, len(self.api.list_providers(None).objects))

    def test_every_change_is_made_once(self):
        aggregate, uuid = base.new_uuid(), base.new_uuid()
        calls = (
            (self.api.create_provider, "name", uuid),
            (self.api.update_provider, uuid, "new name"),
            (self.api.set_inventory, uuid, [base.inventory("VCPU", 8)]),
            (self.api.add_inventory, uuid, base.inventory("DISK_GB", 8)),
            (self.api.update_inventory, uuid, base.inventory("VCPU", 4)),
            (self.api.delete_inventory, uuid, "DISK_GB"),
            (self.api.set_aggregates, uuid, [aggregate]),
            (self.api.resource_class_create, "CUSTOM_GOLD"),
            (self.api.resource_class_rename, "CUSTOM_GOLD", "CUSTOM_SILVER"),
            (self.api.resource_class_delete, "CUSTOM_SILVER"),
            (self.api.delete_provider, uuid),
        )
        for number, (call, *arguments) in enumerate(calls):
            first = call(None, *arguments, request_id=f"change-{number}")
            second = call(None, *arguments, request_id=f"change-{number}")
            self.assertEqual(str(first), str(second), call.__name__)

    def test_a_provider_without_a_uuid_is_created_once(self):
        first = self.api.create_provider(None, "name", request_id="one")
        self.assertEqual(first.uuid, self.api.create_provider(
            None, "name", request_id="one").uuid)

    def test_a_refused_change_again_is_refused_as_before(self):
        uuid = base.new_uuid()
        self.assertRaises(exception.ProviderNotFound, self.api.delete_provider, None, uuid,
                          request_id="one")
        self.api.create_provider(None, "name", uuid)
        self.assertRaises(exception.ProviderNotFound, self.api.delete_provider, None, uuid,
                          request_id="one")
        self.api.get_provider(None, uuid)

    def test_the_outcome_can_be_asked_for(self):
        uuid = self.provider(VCPU=2)
        consumer, done = self.claim({uuid: {"VCPU": 2}}, request_id="accepted")
        self.assertRaises(exception.CapacityExceeded, self.claim, {uuid: {"VCPU": 1}},
                          request_id="refused")
        accepted = self.api.get_request_result(None, "accepted")
        self.assertEqual("claim_allocations", accepted.method)
        self.assertEqual((consumer, done.generations), (
            accepted.result().consumer_uuid, accepted.result().generations))
        self.assertRaises(exception.CapacityExceeded,
                          self.api.get_request_result(None, "refused").result)
        self.assertRaises(exception.RequestNotFound, self.api.get_request_result, None, "none")

    def test_outcomes_are_kept_as_text_without_anything_secret(self):
        uuid = self.provider(VCPU=2)
        self.api.claim_allocations(
            RequestContext(user_id="ada", project_id="blue", auth_token="secret-token"),
            base.claim({uuid: {"VCPU": 2}}), request_id="one")
        with self.service.database.reader() as tx:
            rows = [dict(row._mapping) for row in tx.execute(sa.select(models.requests))]
        self.assertNotIn("secret-token", json.dumps(rows, default=str))

    def test_old_outcomes_are_pruned(self):
        uuid = self.provider(VCPU=2)
        self.claim({uuid: {"VCPU": 2}}, request_id="old")
        between = bulk.now()
        self.api.set_aggregates(None, uuid, [base.new_uuid()], request_id="young")
        database = self.service.database
        while database.write(lambda tx: requests.prune(tx, between)):
            continue
        self.assertRaises(exception.RequestNotFound, self.api.get_request_result, None, "old")
        self.api.get_request_result(None, "young")


class FaultTest(base.ContractTest):
    """Faults of a bus during a call, and the client's result."""

    def faulty(self, *faults):
        return placement_fixtures.FaultyCaller(self.api, faults)

    def test_lost_unanswered_and_doubled_calls_are_done_once(self):
        uuid = self.provider(VCPU=8)
        for number, faults in enumerate(
                (["lost"], ["unanswered"], ["twice"], ["lost", "unanswered", "twice"])):
            with self.faulty(*faults) as caller:
                consumer, _ = self.claim({uuid: {"VCPU": 1}})
            self.assertEqual({uuid: {"VCPU": 1}}, self.held(consumer))
            self.assertEqual({"VCPU": number + 1}, self.used(uuid))
            self.assertEqual(1, len(set(caller.attempts)),
                             "an attempt was repeated under another id")

    def test_a_call_that_is_never_answered_ends_at_its_deadline(self):
        uuid = self.provider(VCPU=8)
        with self.faulty(*["unanswered"] * 1000):
            began = time.monotonic()
            error = self.assertRaises(
                exception.DeadlineExceeded, self.api.claim_allocations, None,
                base.claim({uuid: {"VCPU": 1}}), request_id="one", timeout=1)
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual("one", error.kwargs["request_id"])
        self.assertEqual(
            {uuid: 2}, self.api.get_request_result(None, "one").result().generations)

    def test_a_change_that_waited_past_its_deadline_is_not_made(self):
        uuid, errors = self.provider("old"), []

        def rename():
            try:
                self.api.update_provider(None, uuid, "new", timeout=0.5)
            except exception.PlacementException as error:
                errors.append(error)

        waiting = threading.Thread(target=rename)
        with self.service.database.writer() as tx:
            tx.exec_driver_sql("UPDATE resource_providers SET updated_at = updated_at")
            waiting.start()
            # Until after its deadline.
            time.sleep(1)
        waiting.join()
        conductor = self.service.conductor
        for server in conductor.servers.values() if conductor else ():
            base.wait_until(lambda: not server.busy)  # noqa: B023
        self.assertEqual(1, len(errors))
        self.assertEqual("old", self.api.get_provider(None, uuid).name)

    def test_what_was_done_in_time_is_answered_however_late(self):
        uuid = self.provider(VCPU=8)
        wanted = base.claim({uuid: {"VCPU": 1}})
        self.api.claim_allocations(None, wanted, request_id="one")
        late = RequestContext(deadline=time.time() - 2)
        again = self.api.sender.call(
            late, "claim_allocations", {"claim": wanted, "request_id": "one"}, 5)
        self.assertTrue(again.replayed)

    def test_a_call_that_is_reached_too_late_does_nothing(self):
        uuid = self.provider(VCPU=8)
        context = RequestContext(deadline=time.time() - 2)
        for method, arguments in (
                ("claim_allocations", {"claim": base.claim({uuid: {"VCPU": 1}})}),
                ("delete_provider", {"provider_uuid": uuid}), ("ping", {})):
            if method != "ping":
                arguments["request_id"] = f"late-{method}"
            error = self.assertRaises(exception.RequestExpired, self.api.sender.call, context,
                                      method, arguments, 5)
            self.assertGreaterEqual(error.kwargs["late"], 2)
        self.assertEqual({"VCPU": 0}, self.used(uuid))
        self.assertRaises(exception.RequestNotFound, self.api.get_request_result, None,
                          "late-claim_allocations")


class LockedStoreTest(base.TestCase):
    """SQLite has one lock; how long others wait for it is ``timeout`` in the URL."""

    def test_a_store_that_stays_locked_is_busy(self):
        path = self.useFixture(fixtures.TempDir()).join("placement.sqlite")
        running = self.useFixture(placement_fixtures.RunningService(
            "local", database_url=f"sqlite:///{path}?timeout=0.1"))
        uuid = running.api.create_provider(None, "provider").uuid
        running.api.set_inventory(None, uuid, [base.inventory("VCPU", 8)])
        wanted = base.claim({uuid: {"VCPU": 1}})
        with running.database.writer():
            error = self.assertRaises(
                exception.StoreBusy, running.api.claim_allocations, None, wanted,
                timeout=1)
        self.assertIn("too busy", error.text)
        self.assertNotIn("Incident", self.log.output)
        running.api.claim_allocations(None, wanted)


class PreconditionTest(base.ContractTest):
    """Preconditions are judged after the look for a stored outcome, and are no part of it."""

    def test_no_change_is_refused_because_it_was_made(self):
        uuid, consumer = base.new_uuid(), base.new_uuid()
        self.api.create_provider(None, "name", uuid)
        allocations = {uuid: {"VCPU": 1}}
        target = base.new_uuid()
        changes = (
            lambda at, **how: self.api.update_provider(None, uuid, "new name", at, **how),
            lambda at, **how: self.api.set_inventory(
                None, uuid, [base.inventory("VCPU", 8)], at, **how),
            lambda at, **how: self.api.add_inventory(
                None, uuid, base.inventory("DISK_GB", 8), at, **how),
            lambda at, **how: self.api.update_inventory(
                None, uuid, base.inventory("DISK_GB", 4), at, **how),
            lambda at, **how: self.api.delete_inventory(None, uuid, "DISK_GB", at, **how),
            lambda at, **how: self.api.set_aggregates(None, uuid, [uuid], at, **how),
            lambda at, **how: self.api.claim_allocations(None, base.claim(
                allocations, consumer, consumer_generation=at), **how),
            lambda at, **how: self.api.claim_batch(None, [base.claim(
                {uuid: {"VCPU": 2}}, consumer, consumer_generation=at)], **how)[0],
            lambda at, **how: self.api.claim_by_request(
                None, ResourceRequest(resources={"VCPU": 3}), Claim(
                    consumer_uuid=consumer, project_id="p", user_id="u",
                    consumer_generation=at), **how),
            lambda at, **how: self.api.move_allocations(None, consumer, target, at, **how),
            lambda at, **how: self.api.release_allocations(None, target, at, **how),
            lambda at, **how: self.api.delete_provider(None, uuid, at, **how))
        of_consumer = {6: 0, 7: 1, 8: 2, 9: 3, 10: 1}
        for number, change in enumerate(changes):
            at = of_consumer.get(number)
            if at is None:
                at = self.generation(uuid)
            name = f"change-{number}"
            first = change(at, request_id=name)
            if isinstance(first, exception.PlacementException):
                raise first
            for other in (at, at + 5, None):
                again = change(other, request_id=name)
                self.assertFalse(isinstance(again, exception.PlacementException), number)

    def test_another_change_is_refused(self):
        uuid = self.provider(VCPU=8)
        self.api.update_provider(None, uuid, "one", self.generation(uuid), request_id="one")
        self.assertRaises(exception.RequestIdReused, self.api.update_provider, None, uuid, "two",
                          request_id="one")

    def fingerprint_of_2026_2(self, method, arguments):
        """The fingerprint as release 2026.2 makes it."""
        return hashlib.sha256(json.dumps(
            [method, arguments], sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def test_the_fingerprint_of_2026_2_is_stored_and_accepted(self):
        uuid, consumer = self.provider(VCPU=8), base.new_uuid()
        wanted = base.claim({uuid: {"VCPU": 1}}, consumer, consumer_generation=0)
        self.api.claim_allocations(None, wanted, request_id="claim")
        self.api.release_allocations(None, consumer, 1, request_id="release")
        of_2026_2 = {
            "claim": self.fingerprint_of_2026_2("claim_allocations", {"claim": {
                "consumer_uuid": consumer, "project_id": "project", "user_id": "user",
                "consumer_generation": 0, "allocations": {uuid: {"VCPU": 1}}}}),
            "release": self.fingerprint_of_2026_2(
                "release_allocations", {"uuid": consumer, "at": 1})}
        database = self.service.database
        with database.reader() as tx:
            rows = requests.find(tx, of_2026_2)
        self.assertEqual(of_2026_2, {name: row.fingerprint for name, row in rows.items()})
        # What that release stored has no further fingerprint.
        database.write(lambda tx: requests.insert(tx, [(
            f"old-{name}", row.method, row.fingerprint, json.dumps(
                {"result": json.loads(row.outcome)["result"]})) for name, row in rows.items()]))
        self.assertTrue(self.api.claim_allocations(None, wanted, request_id="old-claim").replayed)
        self.assertTrue(self.api.release_allocations(
            None, consumer, 1, request_id="old-release").replayed)
        self.assertRaises(exception.RequestIdReused, self.api.release_allocations, None, consumer,
                          2, request_id="old-release")

    def test_a_claim_that_keeps_the_owner_is_that_of_2026_2_which_named_it(self):
        uuid, consumer = self.provider(VCPU=8), base.new_uuid()
        self.claim({uuid: {"VCPU": 1}}, consumer, project_id="blue", user_id="ada")
        kept = base.claim({uuid: {"VCPU": 2}}, consumer, project_id="none", user_id="none",
                          keep_owner=True)
        named = base.claim({uuid: {"VCPU": 2}}, consumer, project_id="blue", user_id="ada")
        other = base.claim({uuid: {"VCPU": 2}}, consumer, project_id="red", user_id="ada")
        for first, second in ((kept, named), (named, kept)):
            request_id = base.new_uuid()
            self.assertFalse(self.api.claim_allocations(
                None, first, request_id=request_id).replayed)
            for again in (second, first):
                self.assertTrue(self.api.claim_allocations(
                    None, again, request_id=request_id).replayed)
            self.assertRaises(exception.RequestIdReused, self.api.claim_allocations, None, other,
                              request_id=request_id)
        found = self.api.get_allocations(None, consumer).consumer
        self.assertEqual(("blue", "ada"), (found.project_id, found.user_id))

    def test_the_stored_outcome_shows_the_result_only(self):
        uuid = self.provider(VCPU=8)
        self.claim({uuid: {"VCPU": 1}}, consumer_generation=0, request_id="one")
        self.assertEqual(["result"], list(self.api.get_request_result(None, "one").outcome))
