# SPDX-License-Identifier: Apache-2.0
"""Finding candidates with groups, and finding and claiming them in one call."""

from placement_rpc import exception
from placement_rpc.api import CandidateGroup, CandidatesRequest, PlacementAPI
from placement_rpc.objects.candidates import CandidateClaimResult
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, stored_events


def request(*groups, **values):
    """Return a request; each group is a dict of its fields."""
    return CandidatesRequest(groups=[CandidateGroup(**each) for each in groups], **values)


def claim(consumer=None, **values):
    """Return a claim without allocations."""
    found = base.claim(None, consumer, **values)
    del found.allocations
    return found


#: What a server with two devices asks for.
SERVER = request({"resources": {"VCPU": 2}}, {"suffix": "_A", "resources": {"VGPU": 1}},
                 {"suffix": "_B", "resources": {"VGPU": 1}}, group_policy="isolate")


class TreesTest(base.ContractTest):
    """A test with trees: computes with VCPU, and devices of VGPU below them."""

    def tree(self, cpus=4, *devices):
        """Create a compute and its devices; return their uuids."""
        root = self.provider(VCPU=cpus)
        children = []
        for total in devices:
            children.append(self.api.create_provider(
                None, base.new_uuid(), parent_provider_uuid=root).uuid)
            self.api.set_inventory(None, children[-1], [base.inventory("VGPU", total)])
        return [root, *children]

    def candidates(self, wanted, **values):
        return self.api.get_allocation_candidates(None, wanted, **values)

    def place(self, wanted=SERVER, consumer=None, **values):
        return self.api.claim_by_request(None, wanted, claim(consumer), **values)


class CandidatesTest(TreesTest):

    def test_candidates_of_all_groups(self):
        root, one, two = self.tree(4, 1, 1)
        self.tree(1, 1, 1)
        self.tree(4, 2)
        answer = self.candidates(SERVER)
        self.assertEqual((2, False), (answer.count, answer.is_cut))
        allocations = {root: {"resources": {"VCPU": 2}}, one: {"resources": {"VGPU": 1}},
                       two: {"resources": {"VGPU": 1}}}
        self.assertCountEqual(
            [{"allocations": allocations, "mappings": {"": [root], "_A": [first], "_B": [second]}}
             for first, second in ((one, two), (two, one))], answer.allocation_requests)
        self.assertEqual({root, one, two}, set(answer.provider_summaries))
        self.assertEqual({"capacity": 1, "used": 0},
                         answer.provider_summaries[one]["resources"]["VGPU"])

    def test_the_shape_is_that_of_the_microversion(self):
        root = self.provider(VCPU=4)
        wanted = request({"resources": {"VCPU": 1}})
        self.assertEqual(
            [{"allocations": [{"resource_provider": {"uuid": root}, "resources": {"VCPU": 1}}]}],
            self.candidates(wanted, microversion="1.10").allocation_requests)
        self.assertEqual([{"allocations": {root: {"resources": {"VCPU": 1}}}}],
                         self.candidates(wanted, microversion="1.33").allocation_requests)

    def test_below_1_29_there_are_no_trees(self):
        self.tree(4, 1)
        wanted = request({"resources": {"VCPU": 1, "VGPU": 1}})
        self.assertEqual(0, self.candidates(wanted, microversion="1.28").count)
        self.assertEqual(1, self.candidates(wanted, microversion="1.29").count)

    def test_microversions_without_candidates(self):
        for microversion in ("1.9", "1.40", "2.10", "1.010", "x", "", 1.3, ["1.39"]):
            error = self.assertRaises(exception.InvalidInput, self.candidates, SERVER,
                                      microversion=microversion)
            self.assertIn("1.10", error.text)

    def test_what_does_not_exist(self):
        self.tree(4, 1)
        self.assertRaises(exception.ResourceClassNotFound, self.candidates,
                          request({"resources": {"CUSTOM_NONE": 1}}))
        self.assertRaises(exception.TraitNotFound, self.candidates, request(
            {"resources": {"VCPU": 1}, "required": [["CUSTOM_NONE"]]}))

    def test_a_bad_request_is_refused(self):
        for wanted in (request(), request({"required": [["HW_CPU_X86_AVX"]]})):
            self.assertRaises(exception.InvalidInput, self.candidates, wanted)
            self.assertRaises(exception.InvalidInput, self.place, wanted)

    def test_an_answer_has_what_was_committed_before_it(self):
        self.tree(2, 1, 1)
        self.assertEqual(2, self.candidates(SERVER).count)
        done = self.place()
        self.assertEqual(0, self.candidates(SERVER).count)
        self.api.release_allocations(None, done.consumer_uuid)
        self.assertEqual(2, self.candidates(SERVER).count)


class OlderServicesTest(base.TestCase):

    def test_an_older_service_is_not_asked(self):
        service = self.useFixture(placement_fixtures.RunningService("local"))
        api = PlacementAPI("local", service.conf, manager=service.manager, pin="2026.2")
        self.addCleanup(api.close)
        for call, arguments, missing in (
                (api.get_allocation_candidates, (SERVER,), "get_allocation_candidates"),
                (api.claim_by_request, (SERVER, claim()), "CandidatesRequest")):
            error = self.assertRaises(exception.ServiceTooOld, call, None, *arguments)
            self.assertEqual((missing, "1.3"), (error.kwargs["what"], error.kwargs["needed"]))

    def test_a_service_that_is_pinned_refuses_it(self):
        service = self.useFixture(placement_fixtures.RunningService(
            "local", upgrade_levels__placement="2026.2"))
        api = PlacementAPI("local", service.conf, manager=service.manager, pin="2027.1")
        self.addCleanup(api.close)
        self.assertRaises(
            exception.UnsupportedCall, api.get_allocation_candidates, None, SERVER)
        self.assertRaises(
            exception.IncompatibleObjectVersion, api.claim_by_request, None, SERVER, claim())
        uuid = service.api.create_provider(None, "host").uuid
        error = self.assertRaises(
            exception.UnsupportedCall, api.update_inventory, None, uuid,
            base.inventory("VCPU", 4), allow_below_use=True)
        self.assertIn("2026.2, which has no update_inventory(allow_below_use)", str(error))


class MaximumTest(base.TestCase):

    def run_with(self, **options):
        service = self.useFixture(placement_fixtures.RunningService("local", **options))
        for number in range(6):
            uuid = service.api.create_provider(None, str(number)).uuid
            service.api.set_inventory(None, uuid, [base.inventory("VCPU", 4)])
        return service

    def ask(self, service, limit=None):
        return service.api.get_allocation_candidates(None, request(
            {"resources": {"VCPU": 1}}, limit=limit))

    def test_a_cut_is_said_counted_and_logged(self):
        service = self.run_with(placement__max_allocation_candidates=4)
        for limit, count, is_cut in ((None, 4, True), (100, 4, True), (3, 3, False)):
            answer = self.ask(service, limit)
            self.assertEqual((count, is_cut), (answer.count, answer.is_cut))
            self.assertEqual(count, len(answer.allocation_requests))
        self.assertIn("max_allocation_candidates = 4", self.log.output)
        self.assertIn(b"placement_rpc_allocation_candidates_cut_total 2.0",
                      service.manager.metrics.show())

    def test_no_maximum_and_the_least(self):
        for maximum, count in ((-1, 6), (0, 1)):
            service = self.run_with(placement__max_allocation_candidates=maximum)
            self.assertEqual(count, self.ask(service).count)

    def test_a_random_sample(self):
        service = self.run_with(placement__randomize_allocation_candidates=True)
        found = {tuple(sorted(self.ask(service, 2).provider_summaries)) for _ in range(60)}
        self.assertLess(9, len(found))
        self.assertEqual({2}, set(map(len, found)))
        orders = {json_of(self.ask(service)) for _ in range(10)}
        self.assertLess(5, len(orders))


def json_of(answer):
    return b"".join(answer.chunks())


class TreeClaimsTest(stored_events.StoredEvents, TreesTest):

    def test_all_groups_are_found_and_claimed(self):
        root, one, two = self.tree(4, 1, 1)
        done = self.place()
        self.assertIsInstance(done, CandidateClaimResult)
        self.assertEqual({root: {"VCPU": 2}, one: {"VGPU": 1}, two: {"VGPU": 1}},
                         done.allocations)
        self.assertEqual(done.allocations, self.held(done.consumer_uuid))
        self.assertEqual({"": [root]}, {
            suffix: uuids for suffix, uuids in done.mappings.items() if not suffix})
        self.assertCountEqual([[one], [two]], [done.mappings["_A"], done.mappings["_B"]])
        self.assertEqual({root: 2, one: 2, two: 2}, done.generations)
        self.assertEqual((1, False), (done.consumer_generation, done.replayed))
        _, data = self.events()[-1]
        self.assertEqual(done.mappings, data["mappings"])

    def test_two_groups_of_one_provider_are_one_amount(self):
        _, device = self.tree(4, 2)
        wanted = request({"suffix": "_A", "resources": {"VGPU": 1}},
                         {"suffix": "_B", "resources": {"VGPU": 1}}, group_policy="none")
        done = self.place(wanted)
        self.assertEqual({device: {"VGPU": 2}}, self.held(done.consumer_uuid))
        self.assertEqual({"_A": [device], "_B": [device]}, done.mappings)

    def test_the_fleet_can_be_filled(self):
        for _ in range(3):
            self.tree(4, 1, 1)
        for _ in range(3):
            self.place()
        error = self.assertRaises(exception.NoCandidates, self.place)
        self.assertIn("VCPU:2; group _A: VGPU:1; group _B: VGPU:1", error.text)
        self.assertEqual({}, self.service.manager.candidates.reserved)

    def test_a_repeated_call_is_answered_as_before_although_the_fleet_is_full(self):
        self.tree(2, 1, 1)
        placed = claim()
        one, two = (self.api.claim_by_request(None, SERVER, placed, request_id="one")
                    for _ in range(2))
        self.assertEqual((False, True), (one.replayed, two.replayed))
        self.assertEqual((one.allocations, one.mappings, one.generations),
                         (two.allocations, two.mappings, two.generations))
        stored = self.api.get_request_result(None, "one").result()
        self.assertEqual(one.mappings, stored.mappings)
        self.assertRaises(
            exception.RequestIdReused, self.api.claim_by_request, None,
            request({"resources": {"VCPU": 1}}), placed, request_id="one")

    def test_a_refusal_is_final(self):
        placed = claim()
        self.assertRaises(exception.NoCandidates, self.api.claim_by_request, None, SERVER, placed,
                          request_id="one")
        (event_type, _), = self.events()
        self.assertEqual("allocation.claim.refused", event_type)
        self.tree(4, 1, 1)
        self.assertRaises(exception.NoCandidates, self.api.claim_by_request, None, SERVER, placed,
                          request_id="one")

    def test_a_consumer_may_use_what_it_frees_if_nothing_else_fits(self):
        root, *_ = self.tree(2, 1, 1)
        first = self.place()
        bigger = request({"resources": {"VCPU": 1}}, {"suffix": "_A", "resources": {"VGPU": 1}})
        self.assertRaises(exception.NoCandidates, self.place, bigger)
        done = self.place(bigger, first.consumer_uuid)
        self.assertEqual(2, done.consumer_generation)
        self.assertEqual({"VCPU": 1}, self.used(root))
        # Its own providers are the last ones to be tried.
        other, *_ = self.tree(2)
        done = self.place(request({"resources": {"VCPU": 2}}), first.consumer_uuid)
        self.assertEqual({other: {"VCPU": 2}}, done.allocations)
        self.assertRaises(exception.NoCandidates, self.place, request(
            {"resources": {"VCPU": 3}}), first.consumer_uuid)

    def test_the_service_chooses(self):
        root, *_ = self.tree(4, 1, 1)
        for name, value in (("allocations", {root: {"VCPU": 1}}), ("mappings", {"": [root]})):
            given = claim()
            setattr(given, name, value)
            error = self.assertRaises(exception.InvalidInput, self.api.claim_by_request, None,
                                      SERVER, given)
            self.assertIn(name, error.text)

    def test_what_no_claim_can_have_is_refused_before_the_search(self):
        self.assertRaises(exception.InvalidInput, self.place, request(
            {"resources": {"VCPU": 2 ** 31}}))

    def test_preconditions_and_owners_are_those_of_every_claim(self):
        self.tree(4, 1, 1)
        self.assertRaises(exception.ConsumerConflict, self.api.claim_by_request, None, SERVER,
                          claim(consumer_generation=5))
        done = self.api.claim_by_request(None, SERVER, claim(
            consumer_generation=0, consumer_type="INSTANCE"))
        found = self.api.get_allocations(None, done.consumer_uuid).consumer
        self.assertEqual("INSTANCE", found.consumer_type)

    def test_what_is_offered_is_reserved(self):
        trees = [self.tree(2, 1, 1), self.tree(2, 1, 1)]
        search = self.service.manager.candidates
        one, two, three = (search.offers(SERVER) for _ in range(3))
        offered = [set(next(each).allocations) for each in (one, two)]
        self.assertCountEqual(map(set, trees), offered)
        # Not every reservation becomes a claim: better to try in vain than to refuse for nothing.
        self.assertIn(set(next(three).allocations), offered)
        self.assertEqual(6, len(search.reserved))
        self.assertEqual(12, sum(sum(each.values()) for each in search.reserved.values()))
        # A search ignores reservations, and leaves the index as it was.
        self.assertEqual(4, self.candidates(SERVER).count)
        self.assertEqual({}, search.index.verify(0, 100)["differences"])
        for each in (one, two, three):
            each.close()
        self.assertEqual({}, search.reserved)
