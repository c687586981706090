# SPDX-License-Identifier: Apache-2.0
"""Changes of allocations with preconditions, repeated, and through an older service."""

import json

from placement_rpc import exception
from placement_rpc.context import RequestContext
from placement_rpc.db.queries import events
from placement_rpc.versions import releases
from tests import base, http


class AllocationsTest(http.HTTPTest):

    def setUp(self):
        super().setUp()
        self.node = self.make(VCPU={"total": 8})
        self.consumer = base.new_uuid()
        self.path = f"/allocations/{self.consumer}"

    def put(self, amount=1, **headers):
        return self.send("PUT", self.path, {"allocations": [
            {"resource_provider": {"uuid": self.node}, "resources": {"VCPU": amount}}]},
            **headers).status_code

    def delete(self, **headers):
        return self.send("DELETE", self.path, **headers).status_code

    def etag(self):
        return self.send("GET", self.path).headers["etag"]

    def held(self):
        return self.api.get_allocations(None, self.consumer).by_provider()


class RepeatedTest(AllocationsTest):

    def test_a_put_that_succeeded_succeeds_again(self):
        for amount, condition in enumerate((
                lambda: {"If_None_Match": "*"}, lambda: {"If_Match": "*"},
                lambda: {"If_Match": self.etag()}, dict), 1):
            headers = {"Idempotency_Key": f"put-{amount}", **condition()}
            self.assertEqual(204, self.put(amount, **headers))
            etag = self.etag()
            for _ in range(2):
                self.assertEqual(204, self.put(amount, **headers), headers)
            self.assertEqual(etag, self.etag())

    def test_a_delete_that_succeeded_succeeds_again(self):
        self.put()
        etag = self.etag()
        for _ in range(3):
            self.assertEqual(204, self.delete(Idempotency_Key="one", If_Match=etag))
        self.assertEqual(412, self.delete(Idempotency_Key="two", If_Match=etag))

    def test_the_answer_stays_the_first_though_the_consumer_has_changed_since(self):
        self.put()
        etag = self.etag()
        self.assertEqual(204, self.put(3, Idempotency_Key="one", If_Match=etag))
        self.assertEqual(204, self.put(2))
        self.assertEqual(204, self.put(3, Idempotency_Key="one", If_Match=etag))
        self.assertEqual({self.node: {"VCPU": 2}}, self.held())

    def test_another_precondition_is_not_another_request(self):
        self.put()
        first = self.etag()
        self.assertEqual(204, self.put(3, Idempotency_Key="one", If_Match=first))
        self.assertEqual(204, self.put(3, Idempotency_Key="one", If_Match=self.etag()))
        self.assertEqual(204, self.put(3, Idempotency_Key="one"))
        self.assertEqual(409, self.put(4, Idempotency_Key="one", If_Match=first))

    def test_a_refusal_stays_a_refusal(self):
        self.put()
        etag = self.etag()
        self.put(2)
        self.assertEqual(412, self.put(3, Idempotency_Key="one", If_Match=etag))
        self.assertEqual(412, self.put(3, Idempotency_Key="one", If_Match=self.etag()))
        self.assertEqual({self.node: {"VCPU": 2}}, self.held())


class TagTest(AllocationsTest):

    def test_a_tag_does_not_match_later_allocations(self):
        self.put()
        etag = self.etag()
        self.delete()
        self.assertEqual(412, self.put(2, If_Match=etag))
        self.put()
        self.assertEqual(1, self.api.get_allocations(None, self.consumer).consumer.generation)
        self.assertNotEqual(etag, self.etag())
        self.assertEqual(412, self.put(2, If_Match=etag))
        self.assertEqual(412, self.delete(If_Match=etag))
        self.assertEqual(412, self.send("GET", self.path, If_Match=etag).status_code)
        self.assertEqual(204, self.put(2, If_Match=f'{etag}, "x", {self.etag()}'))

    def test_nor_allocations_of_the_same_transaction(self):
        self.put()
        etag = self.etag()
        manager, context = self.running.manager, RequestContext()
        outcomes = manager.settle("claims", [
            manager.release_allocations(context, self.consumer, "release"),
            manager.claim_allocations(
                context, base.claim({self.node: {"VCPU": 1}}, self.consumer), "claim")])
        self.assertEqual([None, None], [each.error for each in outcomes])
        self.assertEqual(1, self.api.get_allocations(None, self.consumer).consumer.generation)
        self.assertEqual(412, self.put(2, If_Match=etag))

    def test_a_tag_is_of_one_consumer(self):
        self.put()
        other = base.new_uuid()
        self.api.claim_allocations(None, base.claim({self.node: {"VCPU": 1}}, other))
        etag = self.send("GET", f"/allocations/{other}").headers["etag"]
        for wrong in (etag, etag.replace(other, self.consumer), f'"{self.consumer}-1"',
                      f'"{self.consumer}-"', f'W/{self.etag()}', "pony",
                      f'"{self.consumer}-{"x" * 500}"'):
            self.assertEqual(412, self.put(2, If_Match=wrong), wrong)
        self.assertEqual({self.node: {"VCPU": 1}}, self.held())

    def test_the_same_over_the_bus(self):
        claim = base.claim({self.node: {"VCPU": 1}}, self.consumer)
        self.api.claim_allocations(None, claim)
        tag = self.api.get_allocations(None, self.consumer).consumer.tag
        claim.consumer_tags = [tag]
        self.api.claim_allocations(None, claim)
        claim.allocations = {self.node: {"VCPU": 2}}
        self.api.claim_allocations(None, claim)
        self.assertRaises(exception.PreconditionFailed, self.api.claim_allocations, None, claim)
        for tags in ([tag], [str(2)]):
            self.assertRaises(
                exception.PreconditionFailed, self.api.release_allocations, None, self.consumer,
                consumer_tags=tags)
        for tags in ([], "tag", [5], ["x" * 65], ["x"] * 101):
            self.assertRaises(
                exception.InvalidInput, self.api.release_allocations, None, self.consumer,
                consumer_tags=tags)
        result = self.api.release_allocations(None, self.consumer, consumer_tags=["*"])
        self.assertEqual(0, result.consumer_generation)


class OwnerTest(AllocationsTest):
    """The service keeps the owner, so that a PUT is one call."""

    def setUp(self):
        super().setUp()
        self.calls = []
        call = self.api.sender.call

        def counted(context, method, arguments, timeout):
            self.calls.append(method)
            return call(context, method, arguments, timeout)

        self.api.sender.call = counted

    def test_changes_are_one_call(self):
        for send, expected in (
                (lambda: self.put(), "claim_allocations"),
                (lambda: self.put(2, If_Match="*"), "claim_allocations"),
                (lambda: self.delete(If_Match="*"), "release_allocations"),
                (lambda: self.put(If_None_Match="*"), "claim_allocations")):
            self.calls.clear()
            self.assertEqual(204, send())
            self.assertEqual([expected], self.calls)

    def test_a_claim_between_the_two_does_not_give_the_consumer_away(self):
        """Another client makes the consumer in the moment before the PUT."""
        claim = self.api.sender.call

        def first(context, method, arguments, timeout):
            if method == "claim_allocations":
                self.api.sender.call = claim
                self.api.claim_allocations(None, base.claim(
                    {self.node: {"VCPU": 1}}, self.consumer, project_id="blue", user_id="ada"))
            return claim(context, method, arguments, timeout)

        self.api.sender.call = first
        self.assertEqual(204, self.put(2))
        consumer = self.api.get_allocations(None, self.consumer).consumer
        self.assertEqual(("blue", "ada"), (consumer.project_id, consumer.user_id))

    def test_the_event_of_a_refusal_names_the_owner(self):
        self.api.claim_allocations(None, base.claim(
            {self.node: {"VCPU": 1}}, self.consumer, project_id="blue", user_id="ada"))
        self.assertEqual(409, self.put(9))
        with self.database.reader() as tx:
            refused, = [json.loads(row.payload) for row in events.waiting(tx)
                        if row.event_type == "allocation.claim.refused"]
        self.assertEqual("blue", refused["placement_object.data"]["project_id"])


class OlderServiceTest(AllocationsTest):
    """The facade in front of a service of release 2026.2."""

    options = {"upgrade_levels__placement": "2026.2"}

    def test_changes_keep_the_owner_and_their_conditions(self):
        self.assertIs(releases.named("2026.2"), self.running.manager.release)
        self.api.claim_allocations(None, base.claim(
            {self.node: {"VCPU": 1}}, self.consumer, project_id="blue", user_id="ada"))
        etag = self.etag()
        self.assertEqual(412, self.put(2, If_None_Match="*"))
        self.assertEqual(412, self.put(2, If_Match=f'"{self.consumer}-7"'))
        self.assertEqual(204, self.put(2, If_Match=etag))
        self.assertEqual(412, self.put(3, If_Match=etag))
        self.assertEqual(412, self.delete(If_Match=etag))
        self.assertEqual(204, self.put(3))
        consumer = self.api.get_allocations(None, self.consumer).consumer
        self.assertEqual(("blue", "ada", 3), (
            consumer.project_id, consumer.user_id, consumer.generation))
        self.assertEqual(204, self.delete(If_Match=self.etag()))
        self.assertEqual(412, self.delete(If_Match="*"))
        self.assertEqual(412, self.put(If_Match="*"))
        self.assertEqual(204, self.put(If_None_Match="*"))

    def test_a_change_by_another_client_between_the_two_calls_is_refused(self):
        self.put()
        call = self.api.sender.call

        def slow(context, method, arguments, timeout):
            answer = call(context, method, arguments, timeout)
            if method == "get_allocations":
                self.api.sender.call = call
                self.api.claim_allocations(
                    None, base.claim({self.node: {"VCPU": 5}}, self.consumer))
            return answer

        etag = self.etag()
        self.api.sender.call = slow
        self.assertEqual(412, self.put(2, If_Match=etag))
        self.assertEqual({self.node: {"VCPU": 5}}, self.held())

    def test_an_owner_that_is_named(self):
        self.api.claim_allocations(None, base.claim({self.node: {"VCPU": 1}}, self.consumer))
        body = {"allocations": {self.node: {"resources": {"VCPU": 2}}},
                "project_id": "ada", "user_id": "anna"}
        self.assertEqual(204, self.send("PUT", self.path, body, version="1.12").status_code)
        consumer = self.api.get_allocations(None, self.consumer).consumer
        self.assertEqual(("ada", "anna", 2), (
            consumer.project_id, consumer.user_id, consumer.generation))
        body["consumer_generation"] = None
        self.refused(409, self.send("PUT", self.path, body, version="1.28"))
        body["consumer_generation"] = 2
        self.assertEqual(204, self.send("PUT", self.path, body, version="1.28").status_code)

    def test_what_it_does_not_know_is_answered_later(self):
        body = {"allocations": {self.node: {"resources": {"VCPU": 2}}}, "project_id": "ada",
                "user_id": "anna", "consumer_generation": None}
        self.refused(503, self.send("POST", "/allocations", {self.consumer: body}, version="1.28"))
        body["consumer_type"] = "INSTANCE"
        self.refused(503, self.send("PUT", self.path, body, version="1.38"))
        self.assertEqual({}, self.held())
