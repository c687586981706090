# SPDX-License-Identifier: Apache-2.0
"""Claims and searches over two cells."""

import threading

from placement_rpc import api, exception
from tests import base
from tests.functional.cells_case import CellsCase


class ClaimTest(CellsCase):

    def test_a_claim_is_made_where_its_provider_is(self):
        for cell in self.services:
            claim = self.claim(cell)
            self.api.claim_allocations(None, claim)
            consumer = claim.consumer_uuid
            self.assertEqual({self.nodes[cell]: {"VCPU": 1}}, self.held(cell, consumer))
            for client in (self.api, self.make_api()):
                self.assertEqual({self.nodes[cell]: {"VCPU": 1}},
                                 client.get_allocations(None, consumer).by_provider())
            self.make_api().release_allocations(None, consumer)
            self.assertEqual({}, self.held(cell, consumer))
            self.assertRaises(exception.ConsumerNotFound, self.api.release_allocations, None,
                              consumer)

    def test_a_claim_over_two_cells_is_refused_before_anything_is_sent(self):
        claim = self.claim("north", "south")
        for make in (lambda: self.api.claim_allocations(None, claim),
                     lambda: self.api.set_allocations(
                         None, [self.claim("north"), self.claim("south")]),
                     lambda: self.api.reshape(None, [], [self.claim("north"), claim])):
            error = self.assertRaises(exception.SeveralCells, make)
            self.assertEqual(("placement.cell.several", "north, south"),
                             (error.code, error.kwargs["cells"]))
        for cell in self.services:
            self.assertEqual({}, self.held(cell, claim.consumer_uuid))

    def test_a_consumer_is_in_one_cell(self):
        first = self.claim("north")
        self.api.claim_allocations(None, first)
        other = self.claim("south", consumer=first.consumer_uuid)
        for client in (self.api, self.make_api()):
            error = self.assertRaises(
                exception.ConsumerConflict, client.claim_allocations, None, other)
            self.assertIn("cell north", error.text)
            refused, = client.claim_batch(None, [other])
            self.assertIsInstance(refused, exception.ConsumerConflict)
        # With its generation, the cell itself refuses it.
        self.assertRaises(
            exception.ConsumerConflict, self.api.claim_allocations, None,
            self.claim("south", consumer=first.consumer_uuid, consumer_generation=1))
        self.api.release_allocations(None, first.consumer_uuid)
        self.api.claim_allocations(None, other)
        self.assertEqual({self.nodes["south"]: {"VCPU": 1}},
                         self.api.get_allocations(None, first.consumer_uuid).by_provider())

    def test_a_consumer_of_a_batch_is_in_one_cell(self):
        first = self.claim("north")
        again, other = (self.claim(cell, consumer=first.consumer_uuid, vcpus=2)
                        for cell in ("north", "south"))
        _, refused, _ = self.api.claim_batch(None, [first, other, again])
        self.assertIsInstance(refused, exception.ConsumerConflict)
        self.assertIn("cell north", refused.text)
        self.assertEqual({self.nodes["north"]: {"VCPU": 2}},
                         self.held("north", first.consumer_uuid))
        self.assertEqual({}, self.held("south", first.consumer_uuid))

    def test_the_claims_of_a_batch_go_to_their_cells(self):
        claims = [self.claim("north"), self.claim("south", vcpus=9), self.claim("south"),
                  self.claim("north", "south"), self.claim("north")]
        request_id = api.new_request_id()
        for replayed in (False, True):
            outcomes = self.api.claim_batch(None, claims, request_id=request_id)
            self.assertEqual(
                [None, exception.CapacityExceeded, None, exception.SeveralCells, None],
                [type(each) if isinstance(each, Exception) else None for each in outcomes])
            self.assertEqual(
                {replayed}, {each.replayed for each in outcomes
                             if not isinstance(each, Exception)})
            for number in (0, 2, 4):
                self.assertEqual(claims[number].consumer_uuid, outcomes[number].consumer_uuid)

    def test_a_release_is_repeated_by_a_client_that_remembers_nothing(self):
        claim, request_id = self.claim("south"), api.new_request_id()
        self.api.claim_allocations(None, claim)
        for client in (self.api, self.make_api()):
            done = client.release_allocations(None, claim.consumer_uuid, request_id=request_id)
        self.assertTrue(done.replayed)

    def test_what_is_repeated_has_its_first_outcome_wherever_the_consumer_is_now(self):
        for method, arguments in (
                (self.api.release_allocations, lambda uuid: (uuid,)),
                (self.api.move_allocations, lambda uuid: (uuid, base.new_uuid())),
                (self.api.set_allocations, lambda uuid: ([base.claim({}, uuid)],))):
            claim, request_id = self.claim("north"), api.new_request_id()
            self.api.claim_allocations(None, claim)
            given = arguments(claim.consumer_uuid)
            method(None, *given, request_id=request_id)
            self.api.claim_allocations(
                None, self.claim("south", consumer=claim.consumer_uuid, vcpus=2))
            done = method(None, *given, request_id=request_id)
            self.assertTrue((done[0] if isinstance(done, list) else done).replayed)
            self.assertEqual({self.nodes["south"]: {"VCPU": 2}},
                             self.held("south", claim.consumer_uuid))
            self.api.release_allocations(None, claim.consumer_uuid)

    def test_sets_that_also_claim_are_repeated_too(self):
        stays, leaves = self.claim("north"), base.new_uuid()
        self.api.claim_allocations(None, self.claim("north", consumer=leaves))
        sets = [stays, base.claim({}, leaves)]
        request_id, single, batch = (api.new_request_id() for _ in range(3))
        self.api.set_allocations(None, sets, request_id=request_id)
        moved = [self.claim("north"), self.claim("north")]
        self.api.claim_allocations(None, moved[0], request_id=single)
        self.api.claim_batch(None, [self.claim("north"), moved[1]], request_id=batch)
        for uuid in (leaves, *(each.consumer_uuid for each in moved)):
            if uuid is not leaves:
                self.api.release_allocations(None, uuid)
            self.api.claim_allocations(None, self.claim("south", consumer=uuid))
        self.assertEqual([True, True], [each.replayed for each in self.api.set_allocations(
            None, sets, request_id=request_id)])
        self.assertTrue(self.api.claim_allocations(
            None, moved[0], request_id=single).replayed)
        again = self.api.claim_batch(None, [self.claim("north"), moved[1]], request_id=batch)
        self.assertTrue(again[1].replayed)
        for each in moved:
            self.assertEqual({}, self.held("north", each.consumer_uuid))

    def test_a_batch_is_repeated_after_other_claims_of_it_can_be_made(self):
        refused, released, _ = claims = [self.claim("north") for _ in range(3)]
        request_id = api.new_request_id()
        self.api.claim_allocations(None, self.claim("south", consumer=refused.consumer_uuid))
        first = self.api.claim_batch(None, claims, request_id=request_id)
        self.assertIsInstance(first[0], exception.ConsumerConflict)
        for each in refused, released:
            self.api.release_allocations(None, each.consumer_uuid)
        again = self.api.claim_batch(None, claims, request_id=request_id)
        self.assertEqual([False, True, True], [each.replayed for each in again])
        self.assertEqual([1, 0, 1], [len(self.held("north", each.consumer_uuid))
                                     for each in claims])
        for wrong in ("", "x" * 51, "a#1"):
            self.assertRaises(exception.InvalidInput, self.api.claim_batch, None, claims,
                              request_id=wrong)

    def test_a_batch_finds_a_provider_that_has_moved(self):
        uuid = self.nodes["north"]
        for request_id in None, api.new_request_id():
            self.services["north"].api.delete_provider(None, uuid)
            south = self.services["south"].api
            south.create_provider(None, f"moved {base.new_uuid()}", uuid)
            south.set_inventory(None, uuid, [base.inventory("VCPU", 8)])
            claim = self.claim("north")
            claimed, = self.api.claim_batch(None, [claim], request_id=request_id)
            self.assertEqual([uuid], list(claimed.generations))
            self.api.release_allocations(None, claim.consumer_uuid)
            south.delete_provider(None, uuid)
            self.services["north"].api.create_provider(None, f"back {base.new_uuid()}", uuid)
            self.services["north"].api.set_inventory(None, uuid, [base.inventory("VCPU", 8)])
            self.assertEqual([uuid], list(
                self.api.claim_batch(None, [claim])[0].generations))
            self.api.release_allocations(None, claim.consumer_uuid)

    def test_a_consumer_of_a_batch_is_in_one_cell_though_a_provider_has_moved(self):
        uuid, stays = self.nodes["north"], self.provider("north")
        consumer = base.new_uuid()
        claims = [base.claim({each: {"VCPU": 1}}, consumer, consumer_generation=0)
                  for each in (uuid, stays)]
        # From now on the client remembers the cell of both.
        for each in (uuid, stays):
            self.api.get_provider(None, each)
        self.services["north"].api.delete_provider(None, uuid)
        south = self.services["south"].api
        south.create_provider(None, "moved", uuid)
        south.set_inventory(None, uuid, [base.inventory("VCPU", 8)])
        refused, claimed = self.api.claim_batch(None, claims)
        self.assertIsInstance(refused, exception.ConsumerConflict)
        self.assertEqual([stays], list(claimed.generations))
        self.assertEqual({}, self.held("south", consumer))

    def test_claims_of_a_batch_that_did_not_begin_before_the_client_was_closed(self):
        go_on, submitted = threading.Event(), []
        claims = [self.claim("south") for _ in range(
            2 * self.conf.placement_client.max_concurrent_calls)]
        south = self.api.cells[1]
        submit = south.submit

        def closed_after_the_last(question):
            submitted.append(submit(question))
            if len(submitted) == len(claims):
                self.api.close()
                go_on.set()
            return submitted[-1]

        self.addCleanup(go_on.set)
        self.intercept("south", "claim_batch", lambda make: go_on.wait(30) and make())
        self.patch(south, "submit", closed_after_the_last)
        outcomes = self.api.claim_batch(None, claims, request_id=api.new_request_id())
        closed = [each for each in outcomes if isinstance(each, exception.ClientClosed)]
        self.assertEqual(len(claims), len(outcomes))
        self.assertGreater(len(closed), 0)

    def test_a_cast_that_releases_goes_where_the_consumer_is(self):
        consumer = base.new_uuid()
        self.api.claim_allocations(None, self.claim("north", consumer=consumer))
        other = self.make_api()
        other.release_allocations(None, consumer)
        other.claim_allocations(None, self.claim("south", consumer=consumer))
        self.api.release_allocations(None, consumer, cast=True)
        self.assertEqual({}, self.held("south", consumer))

    def test_a_claim_that_is_refused_says_nothing_about_the_cell(self):
        consumer = base.new_uuid()
        self.api.claim_allocations(None, self.claim("south", consumer=consumer))
        self.assertRaises(
            exception.ConsumerConflict, self.api.claim_allocations, None,
            self.claim("north", consumer=consumer, consumer_generation=1))
        self.api.release_allocations(None, consumer, cast=True)
        self.assertEqual({}, self.held("south", consumer))

    def test_casts_are_settled_in_their_cells(self):
        claim = self.claim("south")
        request_id = self.api.claim_allocations(None, claim, cast=True)
        self.api.release_allocations(None, claim.consumer_uuid, cast=True)
        result = self.make_api().get_request_result(None, request_id).result()
        self.assertEqual(claim.consumer_uuid, result.consumer_uuid)
        self.assertEqual({}, self.held("south", claim.consumer_uuid))
        self.assertRaises(exception.RequestNotFound, self.api.get_request_result, None, "req-no")

    def test_sets_and_moves(self):
        one, other = self.claim("south"), self.claim("south")
        self.api.set_allocations(None, [one, other])
        target = base.new_uuid()
        self.api.move_allocations(None, one.consumer_uuid, target)
        self.api.set_allocations(None, [
            self.claim("south", consumer=target, vcpus=2),
            base.claim({}, other.consumer_uuid)])
        self.assertEqual({self.nodes["south"]: {"VCPU": 2}}, self.held("south", target))
        self.assertEqual({}, self.held("south", other.consumer_uuid))
        away = self.claim("north")
        self.api.claim_allocations(None, away)
        self.assertRaises(exception.ConsumerConflict, self.api.move_allocations, None, target,
                          away.consumer_uuid)
        self.assertRaises(exception.SeveralCells, self.api.set_allocations, None, [
            base.claim({}, target), self.claim("north")])
        self.assertEqual(({"VCPU": 3}, 2), (
            self.api.get_project_usages(None, "project").usages,
            self.api.get_project_usages(None, "project").by_type["unknown"]["consumers"]))
        self.assertEqual(sorted([target, away.consumer_uuid]),
                         [each.uuid for each in self.api.all_consumers(None)])


class FindTest(CellsCase):

    def request(self, vcpus=1, **values):
        return api.ResourceRequest(resources={"VCPU": vcpus}, **values)

    def groups(self, vcpus=1, limit=None, **values):
        return api.CandidatesRequest(limit=limit, groups=[
            api.CandidateGroup(resources={"VCPU": vcpus}, **values)])

    def found(self, wanted, client=None):
        return [each.uuid for each in (client or self.api).get_by_request(None, wanted).objects]

    def test_a_find_has_all_cells(self):
        self.assertEqual(set(self.nodes.values()), set(self.found(self.request())))
        for order in ("spread", "pack", "random"):
            page = self.api.get_by_request(None, self.request(limit=1, order=order))
            self.assertEqual((1, True), (len(page.objects), page.more))
        for name, rack in self.racks.items():
            self.assertEqual([self.nodes[name]],
                             self.found(self.request(member_of=[[rack]])))
            region = self.api.only(cell=name)
            self.assertEqual([self.nodes[name]], self.found(self.request(), region))
        self.assertEqual(
            [], self.found(self.request(member_of=[[rack] for rack in self.racks.values()])))

    def test_candidates_have_all_cells(self):
        for version in ("1.10", "1.28", "1.39"):
            answer = self.api.get_allocation_candidates(None, self.groups(), version)
            self.assertEqual((2, False), (answer.count, answer.is_cut))
            self.assertEqual(2, len(answer.allocation_requests))
            self.assertEqual(set(self.nodes.values()), set(answer.provider_summaries))
        cut = self.api.get_allocation_candidates(None, self.groups(limit=1))
        self.assertEqual((1, True), (cut.count, cut.is_cut))
        self.assertEqual(set(cut.allocation_requests[0]["allocations"]),
                         set(cut.provider_summaries))

    def test_a_cell_with_room_is_claimed_from(self):
        self.api.claim_allocations(None, self.claim("north", vcpus=8))
        for wanted in (self.request(), self.groups()):
            claim = base.claim(None, consumer_generation=0)
            result = self.api.claim_by_request(None, wanted, claim)
            self.assertEqual([self.nodes["south"]], list(result.generations))
        for more in (self.request(9), self.groups(9),
                     self.request(member_of=[[self.racks["north"]]])):
            self.assertRaises(exception.NoCandidates, self.api.claim_by_request, None, more,
                              base.claim(None))

    def test_a_repeated_find_and_claim_has_the_first_outcome(self):
        request_id, claim = api.new_request_id(), base.claim(None, consumer_generation=0)
        first = self.api.claim_by_request(None, self.request(), claim, request_id=request_id)
        for _ in range(5):
            again = self.make_api().claim_by_request(
                None, self.request(), claim, request_id=request_id)
            self.assertEqual((True, first.generations), (again.replayed, again.generations))

    def test_what_a_consumer_has_is_replaced_in_its_cell(self):
        claim = self.claim("north")
        self.api.claim_allocations(None, claim)
        again = base.claim(None, claim.consumer_uuid)
        for _ in range(5):
            self.api.claim_by_request(None, self.request(2), again)
        self.assertEqual({self.nodes["north"]: {"VCPU": 2}},
                         self.held("north", claim.consumer_uuid))
        self.assertRaises(
            exception.ConsumerConflict, self.api.claim_by_request, None,
            self.request(member_of=[[self.racks["south"]]]), again)

    def test_headroom_is_added_up(self):
        for wanted in (self.request(2), self.groups(2)):
            self.assertEqual(8, self.api.get_headroom(None, wanted).count)
        by_aggregate = self.api.get_headroom(None, self.groups(2), by="aggregate").parts
        self.assertEqual(dict.fromkeys(self.racks.values(), 4),
                         {part["name"]: part["count"] for part in by_aggregate})
        by_class = self.api.get_headroom(None, self.groups(2), by="class-limit").parts
        self.assertEqual([("VCPU", 8, 2)], [
            (part["name"], part["count"], part["trees"]) for part in by_class])
