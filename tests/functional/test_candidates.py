# SPDX-License-Identifier: Apache-2.0
"""Candidates: what is found, in which order; the index and a slow model agree on random fleets."""



from placement_rpc import exception
from placement_rpc.objects.request import ResourceRequest
from tests import base
from tests.functional import candidate_fleet


class FleetTest(base.TestCase):

    def test_index_and_model_agree_on_random_fleets(self):
        candidate_fleet.run(candidate_fleet.Fleet, 10)


class OrderTest(base.ContractTest):

    def setUp(self):
        super().setUp()
        self.uuids = [self.provider(VCPU=10, MEMORY_MB=100) for _ in range(4)]
        for uuid, used in zip(self.uuids, (6, 0, 8, 3), strict=True):
            if used:
                self.claim({uuid: {"VCPU": used}})

    def test_the_emptiest_or_the_fullest_first(self):
        one, two, three, four = self.uuids
        self.assertEqual([two, four, one, three], self.find({"VCPU": 1}, order="spread"))
        self.assertEqual([three, one, four, two], self.find({"VCPU": 1}, order="pack"))
        self.assertEqual([one, four], self.find({"VCPU": 3}, order="pack", limit=2))

    def test_a_claim_is_placed_in_that_order(self):
        for order, expected in (("pack", 2), ("pack", 2), ("pack", 0), ("spread", 1)):
            claim = base.claim(None)
            del claim.allocations
            done = self.api.claim_by_request(
                None, ResourceRequest(resources={"VCPU": 1}, order=order), claim)
            self.assertEqual([self.uuids[expected]], list(done.generations))

    def test_no_order_is_another_one_each_time(self):
        found = {tuple(self.find({"VCPU": 1})) for _ in range(40)}
        self.assertLess(5, len(found))

    def test_what_is_free_is_answered(self):
        found = self.api.get_by_request(None, ResourceRequest(
            resources={"VCPU": 1, "MEMORY_MB": 1}, order="pack", limit=1)).objects
        self.assertEqual([{"VCPU": 2, "MEMORY_MB": 100}], [each.free for each in found])
        self.assertFalse(self.api.get_provider(None, self.uuids[0]).obj_attr_is_set("free"))

    def test_an_answer_has_a_maximum_and_says_whether_there_are_more(self):
        def found(**values):
            answer = self.api.get_by_request(None, ResourceRequest(
                resources={"VCPU": 1}, **values))
            return len(answer.objects), answer.more

        most = len(self.uuids)
        self.assertEqual((most, False), found())
        self.service.conf.set_override("max_found", 2, "candidates")
        for limit, expected in ((None, 2), (1, 1), (2, 2), (1000, 2)):
            for order in ("spread", "pack", "random", None):
                self.assertEqual((expected, True), found(limit=limit, order=order))
        self.service.conf.set_override("max_found", most, "candidates")
        self.assertEqual((most, False), found(limit=1000))

    def test_another_order_is_refused(self):
        self.assertRaises(exception.InvalidInput, self.find, {"VCPU": 1}, order="emptiest")

    def test_not_member_of(self):
        red, blue = base.new_uuid(), base.new_uuid()
        self.api.set_aggregates(None, self.uuids[0], [red, blue])
        self.api.set_aggregates(None, self.uuids[1], [red])
        self.assertEqual({self.uuids[1]}, set(self.find(
            {"VCPU": 1}, member_of=[[red]], not_member_of=[blue])))
        self.assertEqual(set(self.uuids[2:]), set(self.find(
            {"VCPU": 1}, not_member_of=[blue, red, base.new_uuid()])))
