# SPDX-License-Identifier: Apache-2.0
"""The candidate index: it follows changes, is built again when it is stale, and is verified."""

import threading
import types

import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.candidates import changes, verification
from placement_rpc.candidates.index import SHARES
from placement_rpc.candidates.interned_sets import EMPTY
from placement_rpc.candidates.live_index import LiveIndex
from placement_rpc.candidates.search import CandidateSearch
from placement_rpc.db import models
from placement_rpc.db.queries import traits as trait_queries
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, index_contents
from tests.benchmarks import fleet
from tests.functional import candidate_fleet
from tests.held_store import HeldStore


class SearchTest(base.TestCase):
    """A test of a search of its own on the store of a service."""

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(placement_fixtures.RunningService("local"))
        self.search = CandidateSearch(self.service.database)
        self.wanted = ResourceRequest(resources={"VCPU": 1})
        self.uuid = self.provider("first")

    def provider(self, name, total=8):
        api = self.service.api
        uuid = api.create_provider(None, name).uuid
        api.set_inventory(None, uuid, [base.inventory("VCPU", total)])
        return uuid

    def found(self, deadline=None):
        return {each.uuid for each in self.search.find(self.wanted, deadline).candidates}


class StaleIndexTest(SearchTest):
    """An index with any inconsistency is built again; calls wait for it."""

    def setUp(self):
        super().setUp()
        self.search.index.wait_until_ready()

    def assert_built_again(self, answer):
        self.assertEqual(1, self.search.index.statistics()["made"])
        self.assertEqual(answer, self.found())
        self.assertEqual(2, self.search.index.statistics()["made"])
        self.assertEqual({}, self.search.index.verify(0, 100)["differences"])

    def test_an_event_that_does_not_say_what_it_touched(self):
        other = self.provider("other")
        with self.service.database.writer() as tx:
            tx.execute(sa.update(models.events).values(touched=None))
        self.assert_built_again({self.uuid, other})

    def test_events_that_were_pruned_before_they_were_read(self):
        other = self.provider("other")
        self.assertLess(0, candidate_fleet.assign_positions(self.service.database, 100))
        with self.service.database.writer() as tx:
            tx.execute(sa.delete(models.events))
        self.assert_built_again({self.uuid, other})

    def test_a_change_of_what_the_index_does_not_have(self):
        with self.search.index.current() as index:
            index.generation[index.slot_of(1)] -= 1
        self.service.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}))
        self.assert_built_again({self.uuid})

    def test_nobody_uses_an_index_with_a_part_of_the_changes(self):
        used = []

        class Watched(LiveIndex):
            def drop(self, reason, followed=None):
                with self.peek() as index:
                    used.append(index)
                super().drop(reason, followed)

        watched = Watched(self.service.database.reader)
        watched.wait_until_ready()
        with watched.current() as index:
            index.generation[index.slot_of(1)] -= 1
        self.service.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}))
        with watched.current() as index:
            self.assertEqual(1, index.inventory_of(index.slot_of(1), 0)["used"])
        self.assertEqual([None], used)
        self.assertEqual(2, watched.statistics()["made"])

    def test_a_row_that_changed_without_an_event_is_found_by_verifying(self):
        self.found()
        with self.service.database.writer() as tx:
            tx.execute(sa.update(models.inventories).values(used=8, updated_at=sa.func.now()))
        answer = self.search.index.verify(0, 100)
        self.assertIn("instead of", answer["differences"]["1"])
        self.assertEqual(set(), self.found())

    def test_parents_that_are_not_those_of_trees(self):
        other = self.provider("other")
        self.assertEqual({self.uuid, other}, self.found())
        api, providers = self.service.api, models.resource_providers
        for broken in ({"parent_provider_id": 2}, {"root_provider_id": 2}):
            with self.service.database.writer() as tx:
                tx.execute(sa.update(providers).where(providers.c.id == 1).values(broken))
                tx.execute(sa.update(providers).where(providers.c.id == 2).values(
                    parent_provider_id=1))
            api.set_aggregates(None, other, [base.new_uuid()])
            error = self.assertRaises(exception.ServiceUnavailable, self.found)
            self.assertIn("parents", error.text)
            with self.service.database.writer() as tx:
                tx.execute(sa.update(providers).values(
                    parent_provider_id=None, root_provider_id=None))
            self.assertEqual({self.uuid, other}, self.found())

    def test_a_release_before_trees_knows_no_roots(self):
        # Its providers have neither parent nor root.
        with self.service.database.reader() as tx:
            row = tx.execute(models.resource_providers.select()).one()
        self.assertEqual((None, None), (row.parent_provider_id, row.root_provider_id))
        with self.search.index.current() as index:
            slot = index.slot_of(row.id)
            self.assertEqual(slot, index.root[index.tree[slot]])

    def test_each_difference_is_reported(self):
        others = [self.provider(f"other {number}") for number in range(5)]
        self.service.api.set_aggregates(None, others[0], [base.new_uuid()])
        with self.search.index.current() as index:
            two, three, four = index.slots_of([2, 3, 5]).tolist()
            index.aggregate_set[two] = EMPTY
            index.slots["name_length"][three] -= 1
            index.generation[four] -= 1
            changes.put(index, [changes.Provider(9, base.new_uuid(), "ninth", 0)], removed=[4])
        texts = self.search.index.verify(0, 100)["differences"]
        self.assertEqual(["2", "3", "4", "5", "9"], sorted(texts))
        for id_, words in (("2", "aggregates"), ("3", "name"), ("4", "not in the index"),
                           ("5", "generation"), ("9", "not in the store")):
            self.assertIn(words, texts[id_])


class FollowingTest(SearchTest):
    """The index follows every kind of change of trees, traits and aggregates."""

    def setUp(self):
        super().setUp()
        self.api = self.service.api
        self.search.index.wait_until_ready()
        self.root, self.other = (self.api.create_provider(None, name).uuid
                                 for name in ("root", "other root"))
        self.chain = [self.root]
        for number in range(4):
            self.chain.append(self.child(f"level {number}", self.chain[-1]))

    def child(self, name, parent):
        uuid = self.api.create_provider(None, name, parent_provider_uuid=parent).uuid
        self.api.set_inventory(None, uuid, [base.inventory("VGPU", 4)])
        return uuid

    def move(self, uuid, parent):
        self.api.update_provider(None, uuid, self.api.get_provider(None, uuid).name,
                                 parent_provider_uuid=parent, may_move=True)

    def check(self):
        """Check what the index has against the store; it was not built again."""
        providers = {each.uuid: types.SimpleNamespace(
            parent=each.parent_provider_uuid,
            traits=self.api.get_provider_traits(None, each.uuid).traits,
            aggregates=self.api.get_aggregates(None, each.uuid).aggregates)
            for each in self.api.list_providers(None).objects}
        with self.search.index.current() as index:
            found = index_contents.of(index)
            traits = set(index.traits)
        self.assertEqual(index_contents.expected(providers), found)
        self.assertEqual({each.name for each in self.api.list_traits(None).objects}, traits)
        self.assertEqual({}, self.search.index.verify(0, 100)["differences"])
        self.assertEqual(1, self.search.index.statistics()["made"])
        return found

    def test_a_deep_subtree_moves(self):
        self.check()
        self.move(self.chain[2], self.other)
        found = self.check()
        self.assertEqual(self.other, found[self.chain[4]].root)
        self.move(self.chain[3], None)
        found = self.check()
        self.assertEqual(set(self.chain[3:]), found[self.chain[3]].subtree)

    def test_children_are_deleted(self):
        self.check()
        for uuid in reversed(self.chain):
            self.api.delete_provider(None, uuid)
            self.assertNotIn(uuid, self.check())

    def test_between_two_reads_all_happens_at_once(self):
        self.check()
        self.move(self.chain[3], self.other)
        self.api.delete_provider(None, self.chain[2])
        self.child("new", self.chain[4])
        self.move(self.other, self.chain[1])
        self.check()

    def test_aggregates_of_sharing_providers(self):
        one, other = base.new_uuid(), base.new_uuid()
        self.api.set_provider_traits(None, self.uuid, [SHARES])
        self.api.set_aggregates(None, self.uuid, [one])
        self.assertEqual({self.uuid}, self.check()[self.uuid].anchors)
        self.api.set_aggregates(None, self.chain[3], [one, other])
        self.assertEqual({self.uuid, self.root}, self.check()[self.uuid].anchors)
        self.move(self.chain[2], self.other)
        self.assertEqual({self.uuid, self.other}, self.check()[self.uuid].anchors)
        self.api.set_aggregates(None, self.chain[3], [other])
        self.assertEqual({self.uuid}, self.check()[self.uuid].anchors)
        self.api.set_aggregates(None, self.uuid, [other])
        self.assertEqual({self.uuid, self.other}, self.check()[self.uuid].anchors)
        self.api.set_provider_traits(None, self.uuid, [])
        self.assertEqual({self.uuid}, self.check()[self.uuid].anchors)

    def test_traits_are_created_and_deleted(self):
        self.check()
        self.api.create_trait(None, "CUSTOM_NEW")
        self.check()
        self.api.set_provider_traits(None, self.root, ["CUSTOM_NEW", "HW_CPU_X86_AVX2"])
        self.check()
        self.api.set_provider_traits(None, self.root, [])
        self.api.delete_trait(None, "CUSTOM_NEW")
        self.check()

    def test_a_standard_trait_that_another_release_knows(self):
        self.check()
        with self.service.database.writer() as tx:
            trait_queries.insert(tx, ["HW_OF_ANOTHER_RELEASE"])
        self.api.set_provider_traits(None, self.root, ["HW_OF_ANOTHER_RELEASE"])
        self.check()

    def test_many_changes_leave_few_dead_slots(self):
        fleet.grow(self.service.database, 1000)
        self.search.index.drop("a test")
        for number in range(300):
            self.move(self.chain[1], (self.root, self.other)[number % 2])
            with self.search.index.current() as index:
                self.assertLessEqual(index.dead, 1024)
        self.assertEqual({}, self.search.index.verify(0, 2000)["differences"])


class BrokenPartTest(SearchTest):
    """Verification finds each part of an index that is wrong."""

    def setUp(self):
        super().setUp()
        api = self.service.api
        self.aggregate = base.new_uuid()
        self.child = api.create_provider(None, "child", parent_provider_uuid=self.uuid).uuid
        self.below = api.create_provider(None, "below", parent_provider_uuid=self.child).uuid
        self.last = api.create_provider(None, "last", parent_provider_uuid=self.uuid).uuid
        self.shared = api.create_provider(None, "shared").uuid
        api.set_provider_traits(None, self.shared, [SHARES])
        for uuid in (self.shared, self.below):
            api.set_aggregates(None, uuid, [self.aggregate])
        self.search.index.wait_until_ready()

    def assert_found(self, words, damage, id_=0):
        """Check that a damage is found in a provider, or in the index as a whole.

        :param damage: callable that takes the index, and the slots of all providers by id
        """
        self.search.index.wait_until_ready()
        self.assertEqual({}, self.search.index.verify(0, 100)["differences"])
        with self.search.index.current() as index:
            index.anchors(index.slot_of(5))
            damage(index, dict(enumerate(index.slots_of(range(1, 6)).tolist(), 1)))
        found = self.search.index.verify(0, 100)["differences"]
        self.assertIn(words, found[str(id_)])
        # It is built again.
        self.search.index.wait_until_ready()
        self.assertEqual({}, self.search.index.verify(0, 100)["differences"])

    def test_parents_and_the_order_of_trees(self):
        def value(name, provider, other):
            return lambda index, slots: index.slots[name].__setitem__(
                slots[provider], other(index, slots) if callable(other) else other)

        self.assert_found("parent is", value("parent", 3, lambda _, slots: slots[1]), 3)
        self.assert_found("no parent", value("parent", 4, -1), 4)
        self.assert_found("not contiguous", value(
            "subtree_end", 3, lambda _, slots: slots[3]), 3)
        self.assert_found("outside", value("subtree_end", 3, lambda _, slots: slots[4] + 1), 3)
        self.assert_found("not contiguous", value(
            "subtree_end", 2, lambda _, slots: slots[4] + 1), 3)
        self.assert_found("tree", value(
            "tree", 4, lambda index, slots: index.tree[slots[5]]), 4)
        self.assert_found("another slot", value("id", 4, 17), 4)
        self.assert_found("the uuid is", value("low", 4, 17), 4)
        self.assert_found("root", lambda index, slots: index.root.__setitem__(
            index.tree[slots[5]], slots[4]), 5)

    def test_traits_aggregates_and_sharing(self):
        def put(sets, name, provider, names):
            return lambda index, slots: index.slots[name].__setitem__(
                slots[provider], getattr(index, sets).number_of(names))

        self.assert_found("CUSTOM_X", put("trait_sets", "trait_set", 2, ["CUSTOM_X"]), 2)
        self.assert_found(self.aggregate, put("aggregate_sets", "aggregate_set", 4,
                                              [self.aggregate]), 4)
        self.assert_found("shares", lambda index, _slots: index.sharing_ids.clear(), 5)
        self.assert_found("shares", lambda index, _slots: index.sharing_ids.add(4), 4)
        self.assert_found("anchors", lambda index, _slots: index.known_anchors.update(
            {frozenset([self.aggregate]): index.tree[:1]}), 5)

    def test_inventories(self):
        for name in ("capacity", "used", "min_unit", "max_unit", "step_size", "reserved"):
            self.assert_found("class 0", lambda index, slots, name=name: index.inventories[0][
                name].__setitem__(0, 5), 1)
        self.assert_found("class 0", lambda index, _slots: index.inventories.pop(0), 1)

    def test_what_belongs_to_no_provider(self):
        self.assert_found("class", lambda index, _slots: index.class_ids.pop("VCPU"))
        self.assert_found("trait", lambda index, _slots: index.traits.add("CUSTOM_X"))
        self.assert_found("slots are dead", lambda index, _slots: setattr(index, "dead", 5))
        self.assert_found("dead slots", lambda index, slots: index.inventories[
            0].append(1, slots=slots[5], capacity=-1, used=0, min_unit=1, max_unit=-1,
                      step_size=1, reserved=0))


class VerificationTest(SearchTest):
    """Verification of an index, while calls find candidates in it."""

    def test_finds_do_not_wait_for_it(self):
        # Its first transaction reads the changes that the index lacks, as that of a find does.
        store = HeldStore(self.service.database, "verification", after=1)
        self.addCleanup(store.release.set)
        index = LiveIndex(store.reader)
        index.wait_until_ready()
        answers = []
        thread = threading.Thread(
            name="verification", target=lambda: answers.append(index.verify(0, 100)))
        thread.start()
        self.assertTrue(store.asked.wait(30))
        claimed = base.claim({self.uuid: {"VCPU": 8}})
        self.service.api.claim_allocations(None, claimed)
        with index.current() as current:
            self.assertEqual(1, len(current))
        self.assertEqual([], answers)
        store.release.set()
        thread.join()
        self.assertEqual({}, answers[0]["differences"])

    def test_it_goes_slice_by_slice(self):
        fleet.grow(self.service.database, 2 * verification.SLICE)
        index = LiveIndex(self.service.database.reader)
        index.wait_until_ready()
        self.assertIsNone(index.verify(0, 1000)["next"])
        ids = self.ids(index)
        # Out of time after the first slice, which the next call continues.
        answer = index.verify(0, 1000, seconds=0)
        self.assertEqual(ids[verification.SLICE - 1], answer["next"])
        self.assertIsNone(index.verify(answer["next"], 1000)["next"])
        last = ids[-1]
        with self.service.database.writer() as tx:
            tx.execute(sa.update(models.inventories).where(
                models.inventories.c.resource_provider_id == last).values(used=1))
        self.assertIn(str(last), index.verify(0, 1000)["differences"])

    def test_a_limit_within_a_slice(self):
        fleet.grow(self.service.database, 20)
        index = LiveIndex(self.service.database.reader)
        index.wait_until_ready()
        ids = self.ids(index)
        self.assertEqual(ids[9], index.verify(0, 10)["next"])

    def test_an_index_that_cannot_follow_is_reported(self):
        self.found()
        with self.search.index.current() as index:
            index.generation[index.slot_of(1)] -= 1
        self.service.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}))
        self.assertIn(
            "changed from generation", self.search.index.verify(0, 100)["differences"]["0"])

    @staticmethod
    def ids(index):
        with index.current() as current:
            return current.id[current.page(0)].tolist()


class ReservationTest(SearchTest):
    """Concurrent claims do not all try the last free provider."""

    def setUp(self):
        super().setUp()
        self.uuids = {self.uuid, self.provider("second")}
        self.wanted = ResourceRequest(resources={"VCPU": 8})

    def test_what_is_offered_is_reserved(self):
        one, two, three = (self.search.offers(self.wanted) for _ in range(3))
        first, second = next(one), next(two)
        self.assertEqual(self.uuids, {*first.allocations, *second.allocations})
        # Not every reservation becomes a claim: better to try in vain than to refuse for nothing.
        self.assertLess(set(next(three).allocations), self.uuids)
        self.assertEqual(24, sum(amounts[0] for amounts in self.search.reserved.values()))
        for each in (one, two, three):
            each.close()
        self.assertEqual({}, self.search.reserved)

    def test_a_search_ignores_reservations(self):
        offers = self.search.offers(self.wanted)
        next(offers)
        self.assertEqual(self.uuids, self.found())
        offers.close()
