# SPDX-License-Identifier: Apache-2.0
"""Claims, releases and moves: one that fits is accepted, any other changes nothing."""

import time
from unittest import mock

from placement_rpc import api, db, exception, manager
from placement_rpc.accounting import batch, locked_state
from placement_rpc.objects.request import ResourceRequest
from tests import base


class ClaimTest(base.ContractTest):

    def test_a_claim_allocates_from_all_its_providers(self):
        node, pool = self.provider(VCPU=8, MEMORY_MB=4096), self.provider(DISK_GB=100)
        consumer, done = self.claim({
            node: {"VCPU": 2, "MEMORY_MB": 1024}, pool: {"DISK_GB": 10}})
        self.assertEqual((1, {node: 2, pool: 2}, False),
                         (done.consumer_generation, done.generations, done.replayed))
        self.assertEqual({"VCPU": 2, "MEMORY_MB": 1024}, self.used(node))
        self.assertEqual({"DISK_GB": 10}, self.used(pool))
        self.assertEqual({node: {"VCPU": 2, "MEMORY_MB": 1024}, pool: {"DISK_GB": 10}},
                         self.held(consumer))

    def test_a_claim_that_does_not_fit_changes_nothing(self):
        node, pool = self.provider(VCPU=8), self.provider(DISK_GB=100)
        error = self.assertRaises(
            exception.CapacityExceeded, self.claim, {node: {"VCPU": 2}, pool: {"DISK_GB": 101}})
        self.assertEqual({"provider": pool, "resource_class": "DISK_GB", "requested": 101,
                          "free": 100, "capacity": 100}, error.kwargs)
        self.assertEqual(({"VCPU": 0}, {"DISK_GB": 0}), (self.used(node), self.used(pool)))
        self.assertEqual((1, 1), (self.generation(node), self.generation(pool)))

    def test_a_provider_can_be_filled_and_no_more(self):
        uuid = self.provider(VCPU={"total": 4, "reserved": 1, "allocation_ratio": 1.5})
        self.claim({uuid: {"VCPU": 4}})
        error = self.assertRaises(
            exception.CapacityExceeded, self.claim, {uuid: {"VCPU": 1}})
        self.assertEqual((0, 4), (error.kwargs["free"], error.kwargs["capacity"]))

    def test_a_claim_replaces_the_whole_set(self):
        """Upstream bug 1707669: also on providers that are no longer named."""
        old, new = self.provider(VCPU=8, MEMORY_MB=4096), self.provider(VCPU=8)
        consumer, _ = self.claim({old: {"VCPU": 4, "MEMORY_MB": 512}})
        _, done = self.claim({new: {"VCPU": 2}}, consumer)
        self.assertEqual(({"VCPU": 0, "MEMORY_MB": 0}, {"VCPU": 2}),
                         (self.used(old), self.used(new)))
        self.assertEqual({old: 3, new: 2}, done.generations)
        self.assertEqual(2, done.consumer_generation)

    def test_a_claim_may_use_what_it_frees(self):
        """CVE-2017-17051: a rebuild must not count double."""
        uuid = self.provider(VCPU=8)
        consumer, _ = self.claim({uuid: {"VCPU": 6}})
        self.claim({uuid: {"VCPU": 8}}, consumer)
        self.assertEqual({"VCPU": 8}, self.used(uuid))

    def test_the_same_claim_again_changes_nothing(self):
        uuid = self.provider(VCPU=8)
        consumer, first = self.claim({uuid: {"VCPU": 2}})
        _, second = self.claim({uuid: {"VCPU": 2}}, consumer)
        self.assertEqual(first.generations, second.generations)
        self.assertEqual(1, second.consumer_generation)

    def test_a_consumer_of_an_inventory_over_capacity_can_free(self):
        """Upstream bugs 2104040 and 1943191."""
        uuid = self.provider(VCPU={"total": 8, "allocation_ratio": 2.0, "max_unit": 16})
        consumer, _ = self.claim({uuid: {"VCPU": 12}})
        with self.service.database.writer() as tx:
            tx.exec_driver_sql("UPDATE inventories SET capacity = 4, max_unit = 4")
        self.claim({uuid: {"VCPU": 10}}, consumer)
        self.assertRaises(
            exception.PlacementException, self.claim, {uuid: {"VCPU": 11}}, consumer)
        self.assertEqual({"VCPU": 10}, self.used(uuid))
        self.api.release_allocations(None, consumer)

    def test_a_provider_without_the_class_has_nothing_free(self):
        uuid = self.provider(VCPU=8)
        error = self.assertRaises(
            exception.CapacityExceeded, self.claim, {uuid: {"DISK_GB": 1}})
        self.assertEqual((0, 0), (error.kwargs["free"], error.kwargs["capacity"]))

    def test_units(self):
        uuid = self.provider(DISK_GB={
            "total": 100, "min_unit": 10, "max_unit": 50, "step_size": 5})
        for amount, reason in ((5, "min_unit is 10"), (55, "max_unit is 50"),
                               (12, "step_size is 5")):
            error = self.assertRaises(
                exception.ConstraintsViolated, self.claim, {uuid: {"DISK_GB": amount}})
            self.assertEqual(reason, error.kwargs["reason"])
        self.claim({uuid: {"DISK_GB": 15}})

    def test_the_generation_of_a_consumer_is_checked(self):
        uuid = self.provider(VCPU=8)
        consumer, _ = self.claim({uuid: {"VCPU": 1}}, consumer_generation=0)
        error = self.assertRaises(
            exception.ConsumerConflict, self.claim, {uuid: {"VCPU": 2}}, consumer,
            consumer_generation=0)
        self.assertEqual((1, 0), (error.kwargs["current"], error.kwargs["given"]))
        self.claim({uuid: {"VCPU": 2}}, consumer, consumer_generation=1)
        self.assertRaises(exception.ConsumerConflict, self.api.release_allocations, None,
                          consumer, consumer_generation=1)
        self.api.release_allocations(None, consumer, consumer_generation=2)

    def test_allocations_carry_project_and_user(self):
        uuid = self.provider(VCPU=8)
        consumer, _ = self.claim({uuid: {"VCPU": 1}}, project_id="blue", user_id="ada")
        owner = self.api.get_allocations(None, consumer).consumer
        self.assertEqual(("blue", "ada", 1), (owner.project_id, owner.user_id,
                                              owner.generation))
        _, done = self.claim({uuid: {"VCPU": 1}}, consumer, project_id="red", user_id="ada")
        self.assertEqual(2, done.consumer_generation)
        self.assertEqual("red", self.api.get_allocations(None, consumer).consumer.project_id)

    def test_the_allocations_of_a_provider(self):
        uuid = self.provider(VCPU=8, MEMORY_MB=4096)
        one, _ = self.claim({uuid: {"VCPU": 1, "MEMORY_MB": 512}})
        two, _ = self.claim({uuid: {"VCPU": 2}})
        listed = self.api.get_provider_allocations(None, uuid)
        self.assertEqual(3, listed.generation)
        self.assertEqual(
            {(one, "VCPU", 1), (one, "MEMORY_MB", 512), (two, "VCPU", 2)},
            {(each.consumer_uuid, each.resource_class, each.used) for each in listed.objects})

    def test_an_unknown_consumer_holds_nothing(self):
        listed = self.api.get_allocations(None, base.new_uuid())
        self.assertEqual(([], None), (listed.objects, listed.consumer))


class ReleaseTest(base.ContractTest):

    def test_everything_is_freed_and_the_consumer_deleted(self):
        uuid = self.provider(VCPU=8)
        consumer, _ = self.claim({uuid: {"VCPU": 3}})
        done = self.api.release_allocations(None, consumer)
        self.assertEqual((0, {uuid: 3}), (done.consumer_generation, done.generations))
        self.assertEqual({"VCPU": 0}, self.used(uuid))
        self.assertEqual({}, self.held(consumer))
        _, again = self.claim({uuid: {"VCPU": 3}}, consumer, consumer_generation=0)
        self.assertEqual(1, again.consumer_generation)

    def test_a_consumer_that_holds_nothing(self):
        self.assertRaises(
            exception.ConsumerNotFound, self.api.release_allocations, None, base.new_uuid())


class MoveTest(base.ContractTest):

    def test_everything_moves_to_the_other_consumer(self):
        node, pool = self.provider(VCPU=8), self.provider(DISK_GB=100)
        source, _ = self.claim({node: {"VCPU": 8}, pool: {"DISK_GB": 100}}, project_id="blue")
        target = base.new_uuid()
        done = self.api.move_allocations(None, source, target)
        self.assertEqual((target, 1, {node: 4, pool: 4}), (
            done.consumer_uuid, done.consumer_generation, done.generations))
        self.assertEqual({}, self.held(source))
        self.assertEqual({node: {"VCPU": 8}, pool: {"DISK_GB": 100}}, self.held(target))
        self.assertEqual("blue", self.api.get_allocations(None, target).consumer.project_id)
        self.assertEqual({"VCPU": 8}, self.used(node))

    def test_a_move_that_would_lose_allocations_is_refused(self):
        uuid = self.provider(VCPU=8)
        source, _ = self.claim({uuid: {"VCPU": 1}})
        target, _ = self.claim({uuid: {"VCPU": 2}})
        for error, one, other in (
                (exception.ConsumerConflict, source, target),
                (exception.ConsumerConflict, source, source),
                (exception.ConsumerNotFound, base.new_uuid(), base.new_uuid())):
            self.assertRaises(error, self.api.move_allocations, None, one, other)
        self.assertRaises(exception.ConsumerConflict, self.api.move_allocations, None, source,
                          base.new_uuid(), consumer_generation=7)
        self.assertEqual({"VCPU": 3}, self.used(uuid))

    def test_amounts_above_a_lowered_max_unit_can_be_moved(self):
        uuid = self.provider(VCPU=8)
        source, _ = self.claim({uuid: {"VCPU": 5}})
        self.api.update_inventory(None, uuid, base.inventory(
            "VCPU", {"total": 8, "max_unit": 2}))
        self.api.move_allocations(None, source, base.new_uuid())


class LostAttemptTest(base.ContractTest):
    """The transaction of a claim is lost, and made again."""

    def test_the_owner_that_it_had_found_is_not_kept(self):
        uuid = self.provider(VCPU=8)
        consumer, _ = self.claim({uuid: {"VCPU": 1}}, project_id="old", user_id="old")
        other = manager.Manager(self.service.conf, self.service.database)
        write, released = locked_state.write, []

        def lose_the_first(*arguments, **how):
            if not released:
                raise db.api.Stale("refused at COMMIT")
            return write(*arguments, **how)

        def release(_seconds):
            if not released:
                released.append(True)
                api.PlacementAPI("local", self.service.conf, manager=other).release_allocations(
                    None, consumer)

        # Not time.sleep, with which other threads wait too.
        with mock.patch.object(locked_state, "write", lose_the_first), \
                mock.patch.object(db.api, "time", mock.Mock(wraps=time, sleep=release)):
            self.claim({uuid: {"VCPU": 2}}, consumer, project_id="new", user_id="new",
                       keep_owner=True)
        found = self.api.get_allocations(None, consumer).consumer
        self.assertEqual(("new", "new"), (found.project_id, found.user_id))


class BatchTest(base.ContractTest):
    options = {"claims__max_batch": 20, "claims__max_settled_together": 8}

    def test_each_is_accepted_or_refused_on_its_own(self):
        uuid = self.provider(VCPU=4)
        results = self.api.claim_batch(None, [
            base.claim({uuid: {"VCPU": amount}}) for amount in (2, 3, 2, 1)])
        self.assertEqual(
            [None, exception.CapacityExceeded, None, exception.CapacityExceeded],
            [type(each) if isinstance(each, Exception) else None for each in results])
        self.assertEqual([2, 3], [results[0].generations[uuid], results[2].generations[uuid]])
        self.assertEqual({"VCPU": 4}, self.used(uuid))

    def test_a_batch_larger_than_a_transaction(self):
        uuid = self.provider(VCPU=100)
        results = self.api.claim_batch(None, [
            base.claim({uuid: {"VCPU": 1}}) for _ in range(20)])
        self.assertEqual(list(range(2, 22)), [each.generations[uuid] for each in results])
        self.assertEqual({"VCPU": 20}, self.used(uuid))

    def test_what_is_known_of_a_batch_of_which_a_part_is_not_settled(self):
        uuid = self.provider(VCPU=100)
        commit = self.service.manager.group_commit
        settle, claims = commit.settle_batch, [
            base.claim({uuid: {"VCPU": 1}}) for _ in range(20)]
        last = claims[-1].consumer_uuid

        def collide(database, pending, method):
            if any(last in each.consumers for each in pending):
                raise exception.StoreBusy(method=method, attempts=1)
            return settle(database, pending, method)

        def block(database, pending, method):
            outcomes = settle(database, pending, method)
            return [*outcomes[:-1], batch.blocked(method)] if any(
                last in each.consumers for each in pending) else outcomes

        self.addCleanup(setattr, commit, "settle_batch", settle)
        for number, fault in enumerate((collide, block)):
            commit.settle_batch = fault
            # Not StoreBusy, after which nothing would have been changed.
            self.assertRaises(exception.DeadlineExceeded, self.api.claim_batch, None, claims,
                              request_id=f"batch-{number}", timeout=1)
            self.assertLess(0, self.used(uuid)["VCPU"])
        commit.settle_batch = lambda _database, pending, method: [
            batch.blocked(method) for _ in pending]
        self.assertRaises(exception.StoreBusy, self.api.claim_batch, None, claims, timeout=1)
        commit.settle_batch = settle
        results = self.api.claim_batch(None, claims, request_id="batch-0")
        self.assertEqual(20, len(results))
        self.assertEqual({"VCPU": 20}, self.used(uuid))

    def test_one_consumer_several_times_in_one_batch(self):
        one, two = self.provider(VCPU=4), self.provider(VCPU=4)
        consumer = base.new_uuid()
        results = self.api.claim_batch(None, [
            base.claim({one: {"VCPU": 4}}, consumer), base.claim({one: {"VCPU": 4}}),
            base.claim({two: {"VCPU": 3}}, consumer), base.claim({one: {"VCPU": 4}})])
        self.assertIsInstance(results[1], exception.CapacityExceeded)
        self.assertEqual({"VCPU": 4}, self.used(one))
        self.assertEqual({"VCPU": 3}, self.used(two))
        self.assertEqual({two: {"VCPU": 3}}, self.held(consumer))
        self.assertEqual(2, self.api.get_allocations(None, consumer).consumer.generation)

    def test_a_batch_owns_its_request_id(self):
        uuid = self.provider(VCPU=100)
        claims = [base.claim({uuid: {"VCPU": 1}}) for _ in range(3)]
        self.api.claim_batch(None, claims[:1], request_id="batch")
        self.assertEqual([], list(self.api.claim_batch(None, [], request_id="batch")))
        self.api.create_trait(None, "CUSTOM_FAST", request_id="trait")
        for request_id in ("batch", "trait"):
            # All of them, also those at places that the other request did not have.
            self.assertEqual({exception.RequestIdReused}, set(map(
                type, self.api.claim_batch(None, claims, request_id=request_id))))
        self.assertEqual({"VCPU": 1}, self.used(uuid))
        self.assertRaises(exception.RequestIdReused, self.claim, {uuid: {"VCPU": 1}},
                          request_id="batch")
        self.assertRaises(exception.InvalidInput, self.claim, {uuid: {"VCPU": 1}},
                          request_id="batch#1")

    def test_the_outcome_of_each_entry_is_stored(self):
        uuid = self.provider(VCPU=2)
        self.api.claim_batch(None, [base.claim({uuid: {"VCPU": 2}}) for _ in range(2)],
                             request_id="batch")
        self.assertEqual({uuid: 2}, self.api.get_request_result(
            None, "batch").result().generations)
        self.assertRaises(exception.CapacityExceeded, self.api.get_request_result(
            None, "batch#1").result)

    def test_the_error_names_an_invalid_entry_and_nothing_is_done(self):
        uuid = self.provider(VCPU=2)
        bad = base.claim({uuid: {"VCPU": 1}})
        del bad.project_id
        error = self.assertRaises(exception.InvalidInput, self.api.claim_batch, None, [
            base.claim({uuid: {"VCPU": 1}}), bad])
        self.assertIn("claims[1]", error.text)
        self.assertEqual({"VCPU": 0}, self.used(uuid))

    def test_a_repeated_batch_is_answered_as_before(self):
        uuid = self.provider(VCPU=2)
        claims = [base.claim({uuid: {"VCPU": 2}}), base.claim({uuid: {"VCPU": 1}})]
        first = self.api.claim_batch(None, claims, request_id="batch")
        self.api.release_allocations(None, claims[0].consumer_uuid)
        second = self.api.claim_batch(None, claims, request_id="batch")
        self.assertEqual([False, True], [first[0].replayed, second[0].replayed])
        self.assertEqual(first[0].generations, second[0].generations)
        self.assertEqual(first[1].kwargs, second[1].kwargs)
        self.assertEqual({"VCPU": 0}, self.used(uuid))

    def test_a_batch_that_is_too_large(self):
        uuid = self.provider(VCPU=100)
        error = self.assertRaises(exception.BatchTooLarge, self.api.claim_batch, None, [
            base.claim({uuid: {"VCPU": 1}}) for _ in range(21)])
        self.assertEqual((20, 21), (error.kwargs["limit"], error.kwargs["size"]))
        self.assertEqual({"VCPU": 0}, self.used(uuid))


class FindTest(base.ContractTest):

    def test_all_amounts_must_fit(self):
        small = self.provider(VCPU=2, MEMORY_MB=4096)
        large = self.provider(VCPU=8, MEMORY_MB=1024)
        self.provider(VCPU=8)
        self.assertEqual({small, large}, set(self.find({"VCPU": 2, "MEMORY_MB": 1024})))
        self.assertEqual([large], self.find({"VCPU": 3, "MEMORY_MB": 1024}))
        self.assertEqual([], self.find({"VCPU": 3, "MEMORY_MB": 2048}))

    def test_ratio_reserve_use_and_units_count(self):
        uuid = self.provider(VCPU={"total": 4, "reserved": 1, "allocation_ratio": 2.0,
                                   "min_unit": 2, "max_unit": 4, "step_size": 2})
        self.assertEqual([uuid], self.find({"VCPU": 4}))
        for amount in (1, 3, 6):
            self.assertEqual([], self.find({"VCPU": amount}))
        self.claim({uuid: {"VCPU": 4}})
        self.assertEqual([uuid], self.find({"VCPU": 2}))
        self.assertEqual([], self.find({"VCPU": 4}))

    def test_aggregates_and_limit(self):
        aggregate, other = base.new_uuid(), base.new_uuid()
        members = [self.provider(VCPU=8) for _ in range(3)]
        self.provider(VCPU=8)
        for uuid in members:
            self.api.set_aggregates(None, uuid, [aggregate])
        self.api.set_aggregates(None, members[1], [aggregate, other])
        self.assertEqual(set(members), set(self.find({"VCPU": 1}, member_of=[[aggregate]])))
        some = self.find({"VCPU": 1}, member_of=[[aggregate]], limit=2)
        self.assertEqual((2, set()), (len(set(some)), set(some) - set(members)))
        self.assertEqual([members[1]],
                         self.find({"VCPU": 1}, member_of=[[aggregate], [other]]))

    def test_a_class_that_does_not_exist(self):
        error = self.assertRaises(
            exception.ResourceClassNotFound, self.find, {"CUSTOM_NOT_THERE": 1})
        self.assertIn("CUSTOM_NOT_THERE", error.text)


class PlacingTest(base.ContractTest):

    def place(self, amount, **values):
        wanted = base.claim(None)
        del wanted.allocations
        return self.api.claim_by_request(
            None, ResourceRequest(resources={"VCPU": amount}), wanted, **values)

    def test_a_provider_with_room_is_found_and_claimed(self):
        self.provider(VCPU=1)
        uuid = self.provider(VCPU=8)
        done = self.place(2)
        self.assertEqual({uuid: 2}, done.generations)
        self.assertEqual({uuid: {"VCPU": 2}}, self.held(done.consumer_uuid))

    def test_the_fleet_can_be_filled(self):
        uuids = [self.provider(VCPU=2) for _ in range(4)]
        for _ in range(8):
            self.place(1)
        self.assertEqual([{"VCPU": 2}] * 4, [self.used(uuid) for uuid in uuids])
        error = self.assertRaises(exception.NoCandidates, self.place, 1)
        self.assertIn("VCPU:1", error.text)

    def test_a_repeated_call_is_answered_as_before_although_the_fleet_is_full(self):
        uuid = self.provider(VCPU=2)
        wanted = base.claim(None)
        del wanted.allocations
        request = ResourceRequest(resources={"VCPU": 2})
        first = self.api.claim_by_request(None, request, wanted, request_id="placed")
        second = self.api.claim_by_request(None, request, wanted, request_id="placed")
        self.assertEqual((False, True), (first.replayed, second.replayed))
        self.assertEqual({uuid: 2}, second.generations)

    def test_a_limit_does_not_hide_the_rest_of_the_fleet(self):
        for _ in range(3):
            self.provider(VCPU=1)
        wanted = base.claim(None)
        for _ in range(3):
            wanted = base.claim(None)
            del wanted.allocations
            self.api.claim_by_request(
                None, ResourceRequest(resources={"VCPU": 1}, limit=1), wanted)

    def test_the_consumer_may_use_what_it_frees(self):
        uuid = self.provider(VCPU=10)
        consumer, _ = self.claim({uuid: {"VCPU": 10}})
        wanted = base.claim(None, consumer)
        del wanted.allocations
        aggregate = base.new_uuid()
        self.assertRaises(
            exception.NoCandidates, self.api.claim_by_request, None,
            ResourceRequest(resources={"VCPU": 5}, member_of=[[aggregate]]), wanted)
        self.api.claim_by_request(None, ResourceRequest(resources={"VCPU": 5}), wanted)
        self.assertEqual({"VCPU": 5}, self.used(uuid))

    def test_every_refusal_is_final(self):
        uuid = self.provider(VCPU=10)
        wanted = base.claim(None, consumer_generation=1)
        del wanted.allocations
        request = ResourceRequest(resources={"VCPU": 1})
        self.assertRaises(exception.ConsumerConflict, self.api.claim_by_request, None, request,
                          wanted, request_id="one")
        self.claim({uuid: {"VCPU": 1}}, wanted.consumer_uuid)
        self.assertRaises(exception.ConsumerConflict, self.api.claim_by_request, None, request,
                          wanted, request_id="one")

    def test_a_repeated_call_is_refused_although_there_is_room(self):
        self.assertRaises(exception.NoCandidates, self.place_named, "refused")
        self.provider(VCPU=8)
        self.assertRaises(exception.NoCandidates, self.place_named, "refused")

    def place_named(self, request_id):
        wanted = base.claim(None, "11111111-2222-3333-4444-555555555555")
        del wanted.allocations
        return self.api.claim_by_request(
            None, ResourceRequest(resources={"VCPU": 2}), wanted, request_id=request_id)
