# SPDX-License-Identifier: Apache-2.0
"""Sets of claims: all are accepted together, or none is."""

from placement_rpc import exception
from placement_rpc.accounting import batch
from placement_rpc.accounting.claims import ClaimSetChange
from placement_rpc.accounting.idempotency import Request
from placement_rpc.db import api as db
from placement_rpc.db.queries import claims as queries
from placement_rpc.endpoints.base import ManagerBase
from tests import base


class ClaimSetTest(base.ContractTest):
    """Claims of many consumers in one transaction: all of them are accepted, or none."""

    def set(self, *claims, **how):
        return self.api.set_allocations(None, claims, **how)

    def test_all_are_accepted_and_a_provider_counts_one_change(self):
        node, pool = self.provider(VCPU=8), self.provider(DISK_GB=100)
        one, two = (base.claim({node: {"VCPU": 3}, pool: {"DISK_GB": 10}}),
                    base.claim({node: {"VCPU": 5}}))
        for claims in ((one, two), (two, one)):
            results = self.set(*claims)
            self.assertEqual([each.consumer_uuid for each in claims],
                             [each.consumer_uuid for each in results])
            self.assertEqual([(1, False)] * 2, [
                (each.consumer_generation, each.replayed) for each in results])
        self.assertEqual((2, 2), (self.generation(node), self.generation(pool)))
        self.assertEqual({node: 2}, results[0].generations)
        self.assertEqual(({"VCPU": 8}, {"DISK_GB": 10}), (self.used(node), self.used(pool)))

    def test_none_is_accepted_if_one_is_refused(self):
        node = self.provider(VCPU=8)
        held, _ = self.claim({node: {"VCPU": 4}})
        fits = base.claim({node: {"VCPU": 1}})
        for wrong, error in (
                (base.claim({node: {"VCPU": 4}}), exception.CapacityExceeded),
                (base.claim({node: {"DISK_GB": 4}}), exception.CapacityExceeded),
                (base.claim({base.new_uuid(): {"VCPU": 1}}), exception.ProviderNotFound),
                (base.claim({node: {"CUSTOM_NONE": 1}}), exception.ResourceClassNotFound),
                (base.claim({node: {"VCPU": 1}}, held, consumer_generation=0),
                 exception.ConsumerConflict),
                (base.claim({node: {"VCPU": 1}}, held, consumer_tags=["tag"]),
                 exception.PreconditionFailed)):
            self.assertRaises(error, self.set, fits, wrong)
            self.assertRaises(error, self.set, wrong, fits)
            self.assertEqual({}, self.held(fits.consumer_uuid))
            self.assertEqual({"VCPU": 4}, self.used(node))
            self.assertEqual(2, self.generation(node))

    def test_consumers_swap_full_providers(self):
        one, other = self.provider(VCPU=8), self.provider(VCPU=8)
        left, _ = self.claim({one: {"VCPU": 8}})
        right, _ = self.claim({other: {"VCPU": 8}})
        self.set(base.claim({other: {"VCPU": 8}}, left), base.claim({one: {"VCPU": 8}}, right))
        self.assertEqual(({other: {"VCPU": 8}}, {one: {"VCPU": 8}}),
                         (self.held(left), self.held(right)))

    def test_a_claim_without_amounts_releases(self):
        node = self.provider(VCPU=8)
        source, _ = self.claim({node: {"VCPU": 8}})
        target = base.claim({node: {"VCPU": 8}})
        results = self.set(base.claim({}, source, consumer_generation=1), target)
        self.assertEqual([0, 1], [each.consumer_generation for each in results])
        self.assertEqual(({}, {node: {"VCPU": 8}}),
                         (self.held(source), self.held(target.consumer_uuid)))
        self.assertEqual(3, self.generation(node))
        nobody = base.claim({})
        self.set(nobody)
        self.assertIsNone(
            self.api.get_allocations(None, nobody.consumer_uuid).value("consumer"))

    def test_what_does_not_grow_in_all_is_not_refused(self):
        """Upstream bugs 2104040 and 1943191."""
        node = self.provider(VCPU={"total": 8, "allocation_ratio": 2.0, "max_unit": 16})
        one, _ = self.claim({node: {"VCPU": 8}})
        two, _ = self.claim({node: {"VCPU": 4}})
        with self.service.database.writer() as tx:
            tx.exec_driver_sql("UPDATE inventories SET capacity = 4")
        self.assertRaises(
            exception.CapacityExceeded, self.set, base.claim({node: {"VCPU": 3}}, one),
            base.claim({node: {"VCPU": 10}}, two))
        self.set(base.claim({node: {"VCPU": 3}}, one), base.claim({node: {"VCPU": 9}}, two))
        self.set(base.claim({}, one), base.claim({node: {"VCPU": 8}}, two),
                 base.claim({node: {"VCPU": 4}}))
        self.assertEqual({"VCPU": 12}, self.used(node))

    def test_a_repeated_set_is_answered_as_before(self):
        node = self.provider(VCPU=8)
        claims = [base.claim({node: {"VCPU": 1}}) for _ in range(3)]
        first = self.set(*claims, request_id="set")
        self.api.release_allocations(None, claims[0].consumer_uuid)
        for order in (claims, claims[::-1]):
            again = self.set(*order, request_id="set")
            self.assertEqual({each.consumer_uuid: each.generations for each in first},
                             {each.consumer_uuid: each.generations for each in again})
            self.assertEqual({True}, {each.replayed for each in again})
        self.assertEqual({"VCPU": 2}, self.used(node))
        self.assertRaises(exception.RequestIdReused, self.set, *claims[:2], request_id="set")
        self.assertEqual(
            3, len(self.api.get_request_result(None, "set").result().objects))

    def test_two_deliveries_in_one_transaction(self):
        claim = base.claim({self.provider(VCPU=8): {"VCPU": 1}})
        outcomes = batch.settle(self.service.database, [
            ClaimSetChange(Request.of("one", "set_allocations", {}), [claim]) for _ in range(2)])
        answers = [ManagerBase.answer(each) for each in outcomes]
        self.assertEqual([False, True], [each.objects[0].replayed for each in answers])

    def test_a_release_of_what_a_consumer_got_meanwhile_is_made_again(self):
        """It read that the consumer has nothing, and waited for a provider of another claim."""
        provider, released = self.provider(VCPU=8), base.claim({})

        class Meanwhile(ClaimSetChange):
            def apply(self, state, outbox):
                queries.write(self.tx, dict.fromkeys(
                    ("allocations", "used", "generations", "events", "requests"), ()) | {
                        "consumers": [(released.consumer_uuid, "project", "user", 1, None)]})
                return super().apply(state, outbox)

        def settle(tx):
            for claims in ([released], [released, base.claim({provider: {"VCPU": 1}})]):
                pending = Meanwhile(Request.of("one", "set_allocations", {}), claims)
                pending.tx = tx
                with tx.begin_nested() as point:
                    self.assertRaises(db.Stale, batch.settle_once, tx, [pending])
                    point.rollback()

        self.service.database.write(settle)

    def test_a_refusal_is_final_whatever_the_generations_in_the_repetition(self):
        node = self.provider(VCPU=8)
        claim = base.claim({node: {"VCPU": 1}}, consumer_generation=7)
        self.assertRaises(exception.ConsumerConflict, self.set, claim, request_id="set")
        claim.consumer_generation = 0
        self.assertRaises(exception.ConsumerConflict, self.set, claim, request_id="set")
        self.set(claim, request_id="other")

    def test_a_set_that_is_not_one(self):
        node = self.provider(VCPU=8)
        claim = base.claim({node: {"VCPU": 1}})
        for wrong in ((), (claim, claim), ("claim",), (base.claim(None),)):
            self.assertRaises(exception.InvalidInput, self.set, *wrong)
        self.assertEqual({"VCPU": 0}, self.used(node))

    def test_a_consumer_changes_hands(self):
        node = self.provider(VCPU=8)
        consumer, _ = self.claim({node: {"VCPU": 1}}, consumer_type="INSTANCE")
        self.assertEqual("INSTANCE", self.consumer(consumer).consumer_type)
        self.set(base.claim({node: {"VCPU": 1}}, consumer, project_id="other"))
        found = self.consumer(consumer)
        self.assertEqual(("other", "user", "INSTANCE", 2), (
            found.project_id, found.user_id, found.consumer_type, found.generation))
        self.set(base.claim({node: {"VCPU": 1}}, consumer, keep_owner=True,
                            consumer_type="MIGRATION"))
        found = self.consumer(consumer)
        self.assertEqual(("other", "MIGRATION", 3), (
            found.project_id, found.consumer_type, found.generation))
        self.assertEqual(2, self.generation(node))

    def test_a_consumer_has_no_type_until_it_is_given_one(self):
        node = self.provider(VCPU=8)
        consumer, _ = self.claim({node: {"VCPU": 1}})
        self.assertIsNone(self.consumer(consumer).consumer_type)
        self.claim({node: {"VCPU": 1}}, consumer, consumer_type="INSTANCE")
        target = base.new_uuid()
        self.api.move_allocations(None, consumer, target)
        self.assertEqual("INSTANCE", self.consumer(target).consumer_type)
        self.api.release_allocations(None, target)
        self.claim({node: {"VCPU": 1}}, target)
        self.assertIsNone(self.consumer(target).consumer_type)

    def test_usages_by_type(self):
        node = self.provider(VCPU=80)
        for consumer_type, amount, user in (
                ("INSTANCE", 2, "anna"), ("INSTANCE", 3, "alan"), (None, 5, "anna")):
            self.claim({node: {"VCPU": amount}}, project_id="ada", user_id=user,
                       consumer_type=consumer_type)
        self.claim({node: {"VCPU": 7}}, project_id="bob")
        typed = {"consumers": 2, "usages": {"VCPU": 5}}
        untyped = {"consumers": 1, "usages": {"VCPU": 5}}
        for filters, expected in (
                ({}, {"INSTANCE": typed, "unknown": untyped}),
                ({"consumer_type": "INSTANCE"}, {"INSTANCE": typed}),
                ({"consumer_type": "unknown"}, {"unknown": untyped}),
                ({"consumer_type": "INSTANCE", "user_id": "alan"},
                 {"INSTANCE": {"consumers": 1, "usages": {"VCPU": 3}}}),
                ({"consumer_type": "instance"}, {}), ({"consumer_type": "é"}, {})):
            found = self.api.get_project_usages(None, "ada", **filters)
            self.assertEqual(expected, found.by_type)
            total = sum(each["usages"]["VCPU"] for each in expected.values())
            self.assertEqual({"VCPU": total} if total else {}, found.usages)

    def test_types_that_are_none(self):
        node = self.provider(VCPU=8)
        for wrong in ("unknown", "", "A" * 256, "A\n", "pony", 5):
            self.assertRaises(exception.InvalidInput, self.claim, {node: {"VCPU": 1}},
                              consumer_type=wrong)

    def consumer(self, uuid):
        return self.api.get_allocations(None, uuid).consumer


class SetLimitTest(base.ContractTest):

    options = {"claims__max_batch": 2, "claims__max_resources": 1}

    def test_a_set_that_is_too_large(self):
        node, pool = self.provider(VCPU=8), self.provider(DISK_GB=1)
        small = [base.claim({node: {"VCPU": 1}}) for _ in range(3)]
        self.assertRaises(
            exception.BatchTooLarge, self.api.set_allocations, None, small)
        error = self.assertRaises(exception.InvalidInput, self.api.set_allocations, None, [
            base.claim({node: {"VCPU": 1}, pool: {"DISK_GB": 1}})])
        self.assertIn("claims[0]", str(error))
        self.api.set_allocations(None, small[:2])
