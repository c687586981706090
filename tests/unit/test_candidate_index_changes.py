# SPDX-License-Identifier: Apache-2.0
"""Changes of a candidate index, without a store: what is put, moved, removed and used."""

import dataclasses
import random
import types

import numpy as np

from placement_rpc.candidates import changes, structure
from placement_rpc.candidates.index import SHARES, CandidateIndex
from placement_rpc.candidates.trees import BrokenTree
from tests import base, index_contents

_TRAITS = ("CUSTOM_A", "CUSTOM_B", SHARES)
_AGGREGATES = tuple(base.new_uuid() for _ in range(3))
_CLASSES = range(4)


@dataclasses.dataclass
class _Provider:
    id: int
    uuid: str
    name: str
    generation: int = 1
    parent: str | None = None
    inventories: dict = dataclasses.field(default_factory=dict)
    traits: tuple = ()
    aggregates: tuple = ()


class IndexTest(base.TestCase):
    """A test of an index and of the providers that it should have, by uuid."""

    def setUp(self):
        super().setUp()
        self.index = CandidateIndex()
        self.known = {}

    def add(self, name, parent=None, **values):
        """Make a provider, without putting it; return it."""
        each = _Provider(1 + max((each.id for each in self.known.values()), default=0),
                         base.new_uuid(), name, parent=parent and parent.uuid, **values)
        self.known[each.uuid] = each
        return each

    def put(self, *providers, removed=()):
        for each in removed:
            del self.known[each.uuid]
        ids = {uuid: each.id for uuid, each in self.known.items()}
        changes.put(
            self.index,
            [changes.Provider(each.id, each.uuid, each.name, each.generation,
                              ids.get(each.parent)) for each in providers],
            [(each.id, class_id, *values) for each in providers
             for class_id, values in each.inventories.items()],
            {each.id: each.traits for each in providers},
            {each.id: each.aggregates for each in providers}, [each.id for each in removed])

    def check(self):
        """Check everything that the index has of the known providers."""
        index = self.index
        self.assertEqual(index_contents.expected(self.known), index_contents.of(index))
        self.assertEqual(({}, None), (
            structure.faults(index, 0, 10 ** 6), structure.whole_faults(index)))
        found = {each.id: each for each in self.known.values()}
        self.assertEqual(sorted(found), index.id[index.page(0)].tolist())
        for id_, each in found.items():
            slot = index.slot_of(id_)
            self.assertEqual({each.uuid: slot}, index.slots_of_uuids([each.uuid]))
            self.assertEqual((each.name, each.generation),
                             (index.name_of(slot), index.generation[slot]))
            self.assertEqual({class_id: values[:5] for class_id, values in
                              each.inventories.items()}, {
                class_id: tuple(index.inventory_of(slot, class_id).values())
                for class_id in index.inventories if index.inventory_of(slot, class_id)})
        self.assertEqual({class_id for each in found.values() for class_id in each.inventories},
                         set(index.inventories))
        self.assertEqual(sum(len(each.inventories) for each in found.values()), index.size)
        self.assertEqual(len(found), len(index))

    def versions(self):
        """Return a dict of the uuid of each root to the number and the version of its tree."""
        index = self.index
        return {uuid: (number, int(index.tree_version[number])) for number, uuid in zip(
            np.flatnonzero(index.root >= 0).tolist(),
            index.uuids_of(index.root[index.root >= 0]), strict=True)}


class RandomTest(IndexTest):
    """Random changes, and all that is known after each of them."""

    def test_the_index_has_what_was_put(self):
        for seed in range(30):
            # The second half is compacted as soon as there is any waste.
            self.index = CandidateIndex() if seed < 15 else CandidateIndex(waste=0)
            self.known, self.random = {}, random.Random(seed)
            for _ in range(20):
                self.step()
                self.check()

    def step(self):
        before, known = self.versions(), dict(self.known)
        roots = {uuid: place.root for uuid, place in index_contents.of(self.index).items()}
        put, removed = {}, {}
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.choice(("add", "remove", "move", "change", "change"))
            if kind == "add" or not self.known:
                each = self.add(f"provider {len(self.known)}", self.random.choice(
                    [None, *self.known.values()]), **self.values())
                put[each.uuid] = each
            elif kind == "remove":
                parents = {each.parent for each in self.known.values()}
                each = self.random.choice([
                    each for uuid, each in self.known.items() if uuid not in parents])
                put.pop(each.uuid, None)
                removed[each.uuid] = self.known.pop(each.uuid)
            else:
                put |= self.move() if kind == "move" else self.change()
        self.known |= removed
        self.put(*self.random.sample(list(put.values()), len(put)), removed=removed.values())
        concerned = {roots.get(uuid) for uuid in {*put, *removed}}
        after = self.versions()
        for uuid, version in before.items():
            if uuid in concerned:
                self.assertNotEqual(version, after.get(uuid), known[uuid])

    def values(self):
        choose = self.random
        return {"inventories": {class_id: (
            choose.randint(1, 9), choose.randint(0, 5), choose.randint(1, 2), choose.randint(2, 9),
            choose.randint(1, 2), choose.randint(0, 2))
            for class_id in choose.sample(_CLASSES, choose.randint(0, 3))},
            "traits": tuple(choose.sample(_TRAITS, choose.randint(0, 3))),
            "aggregates": tuple(choose.sample(_AGGREGATES, choose.randint(0, 2)))}

    def replaced(self, each, **values):
        self.known[each.uuid] = dataclasses.replace(each, generation=each.generation + 1, **values)
        return {each.uuid: self.known[each.uuid]}

    def move(self):
        """Move a provider; all below it change too, as their root does."""
        each = self.random.choice(list(self.known.values()))
        places = index_contents.expected(self.known)
        parent = self.random.choice([None, *(
            uuid for uuid in self.known if uuid not in places[each.uuid].subtree)])
        found = {}
        for uuid in places[each.uuid].subtree - {each.uuid}:
            found |= self.replaced(self.known[uuid])
        return found | self.replaced(each, parent=parent)

    def change(self):
        name = self.random.choice(("inventories", "traits", "aggregates", "name"))
        values = self.values() | {"name": f"another {self.random.random()}"}
        return self.replaced(self.random.choice(list(self.known.values())), **{name: values[name]})


class TreeTest(IndexTest):

    def setUp(self):
        super().setUp()
        self.roots = [self.add(f"root {number}") for number in range(3)]
        self.chain = [self.add("level 1", self.roots[0])]
        for number in range(2, 7):
            self.chain.append(self.add(f"level {number}", self.chain[-1], inventories={
                0: (8, 1, 1, 8, 1, 0)}))
        self.leaf = self.add("leaf", self.chain[2])
        self.put(*self.known.values())

    def test_a_deep_subtree_is_moved_and_made_a_tree(self):
        self.chain[1].parent = self.roots[2].uuid
        self.put(*self.chain[1:], self.leaf)
        self.check()
        self.chain[3].parent = None
        self.put(*self.chain[3:])
        self.check()

    def test_other_trees_are_left_alone(self):
        before = self.versions()
        self.chain[1].parent = self.roots[2].uuid
        self.put(*self.chain[1:], self.leaf)
        after = self.versions()
        self.assertEqual({self.roots[1].uuid}, {
            uuid for uuid in before if before[uuid] == after[uuid]})
        # A tree keeps its number.
        self.assertEqual({uuid: number for uuid, (number, _) in before.items()},
                         {uuid: number for uuid, (number, _) in after.items()})

    def test_the_number_of_a_tree_that_is_gone_is_used_again_with_another_version(self):
        number, version = self.versions()[self.roots[1].uuid]
        self.put(removed=[self.roots[1]])
        self.assertEqual(-1, self.index.root[number])
        self.put(self.add("new"))
        self.assertIn(number, [each[0] for each in self.versions().values()])
        self.assertLess(version, self.index.tree_version[number])

    def test_parents_that_are_not_those_of_trees_are_refused(self):
        loop = [self.chain[0], self.chain[3]]
        loop[0].parent = loop[1].uuid
        self.assertIn("loop", str(self.assertRaises(BrokenTree, self.put, *loop)))
        missing = changes.Provider(99, base.new_uuid(), "child", 0, 98)
        self.assertIn("missing", str(self.assertRaises(
            BrokenTree, changes.put, CandidateIndex(), [missing])))
        other_root = [changes.Provider(1, base.new_uuid(), "one", 0),
                      changes.Provider(2, base.new_uuid(), "two", 0, 1, 2)]
        self.assertIn("the root of provider 2", str(self.assertRaises(
            BrokenTree, changes.put, CandidateIndex(), other_root)))

    def test_another_provider_of_the_same_id(self):
        # SQLite gives the id of the last row again after it was deleted.
        gone = self.known.pop(self.leaf.uuid)
        each = self.add("another", self.roots[1])
        self.assertEqual(gone.id, each.id)
        self.put(each)
        self.check()

    def test_dead_slots_are_removed_when_they_are_many(self):
        for number in range(2000):
            self.leaf.parent = self.roots[number % 2].uuid
            self.put(self.leaf)
        self.assertLess(len(self.index.slots), 1500)
        self.check()

    def test_sets_that_no_provider_has_are_removed(self):
        for number in range(3000):
            self.leaf.traits = (f"CUSTOM_{number}",)
            self.leaf.name = f"another name {number}"
            self.put(self.leaf)
        self.assertLess(len(self.index.trait_sets), 1500)
        self.assertLess(self.index.names.nbytes, 20_000)
        self.check()

    def test_a_root_that_gets_children_one_by_one(self):
        for number in range(50):
            self.put(self.add(f"child {number}", self.roots[1]))
        self.check()
        # Only the first child moved the tree to the end.
        self.assertEqual(1, self.index.dead)

    def test_children_behind_the_last_tree(self):
        self.put(self.add("first", self.roots[2]))
        one = self.add("one", self.roots[2])
        beside = self.add("beside", self.roots[2])
        self.put(one, beside, self.add("below one", one), self.add("below beside", beside))
        self.check()
        last = list(self.known.values())[-1]
        self.put(self.add("deeper", last), self.add("deeper too", last),
                 self.add("at the top", self.roots[2]))
        self.check()


class AnchorTest(IndexTest):

    def setUp(self):
        super().setUp()
        one, other = _AGGREGATES[:2]
        self.sharing = [self.add("sharing", traits=(SHARES,), aggregates=(one,)),
                        self.add("other", traits=(SHARES,), aggregates=(other,))]
        self.root = self.add("root")
        self.child = self.add("child", self.root, aggregates=(one,))
        self.put(*self.known.values())
        self.check()

    def test_anchors_are_kept_until_what_they_depend_on_changes(self):
        kept = dict(self.index.known_anchors)
        one, other = (frozenset(each.aggregates) for each in self.sharing)
        self.assertEqual({one, other}, set(kept))
        self.root.name = "another"
        self.put(self.root, self.add("beside"))
        self.assertEqual(kept, self.index.known_anchors)
        self.child.aggregates = ()
        self.put(self.child)
        self.assertEqual({other}, set(self.index.known_anchors))
        self.check()

    def test_a_member_that_moves_to_another_tree(self):
        self.child.parent = self.sharing[1].uuid
        self.put(self.child)
        self.check()

    def test_a_provider_that_does_not_share_any_more(self):
        self.sharing[0].traits = ()
        self.put(self.sharing[0])
        self.check()
        slot = self.index.slot_of(self.sharing[1].id)
        self.assertEqual([slot], self.index.sharing.tolist())


class UsedTest(IndexTest):

    def setUp(self):
        super().setUp()
        self.each = [self.add(f"{number}", inventories={
            0: (8, 0, 1, 8, 1, 0), 1: (80, 0, 1, 80, 1, 0)}) for number in range(3)]
        self.put(*self.each)

    def used(self):
        return {each.id: tuple(self.index.inventory_of(self.index.slot_of(
            each.id), class_id)["used"] for class_id in (0, 1)) for each in self.each}

    def test_transactions_are_applied_in_their_order(self):
        one, two, three = (each.id for each in self.each)
        versions = self.versions()
        self.assertEqual([], changes.set_used(self.index, [
            (one, 1, 2, [0, 3]), (two, 1, 2, [1, 7]), (one, 2, 3, [0, 5, 1, 6]),
            # It is in the index already, since the provider was read again after it.
            (three, 0, 1, [0, 8])]))
        self.assertEqual({one: (5, 6), two: (0, 7), three: (0, 0)}, self.used())
        self.assertEqual([3, 2, 1], self.index.generation[self.index.page(0)].tolist())
        changed = {uuid for uuid, version in self.versions().items() if version != versions[uuid]}
        self.assertEqual({each.uuid for each in self.each[:2]}, changed)

    def test_what_cannot_be_followed_is_returned(self):
        one, two, three = (each.id for each in self.each)
        for row in ((one, 2, 3, [0, 3]), (two, 1, 2, [7, 3]), (99, 1, 2, [0, 3])):
            self.assertEqual([row], changes.set_used(self.index, [row]))
        self.assertEqual([], changes.set_used(self.index, [(three, 1, 2, [0, 3])]))

    def test_an_empty_index(self):
        row = (1, 1, 2, [0, 3])
        self.assertEqual([row], changes.set_used(CandidateIndex(), [row]))


class MemoryTest(IndexTest):

    def test_bytes_of_a_provider(self):
        hosts = [types.SimpleNamespace(id=10 * number + 1) for number in range(2000)]
        rows = [changes.Provider(host.id + child, base.new_uuid(), f"compute-{host.id}:{child}", 1,
                                 host.id if child else None)
                for host in hosts for child in range(10)]
        inventories = [(row.id, class_id, 64, 0, 1, 64, 1) for row in rows
                       for class_id in (range(3) if row.parent_id is None else (3,))]
        traits = {host.id: [f"CUSTOM_{host.id % 7 + number}" for number in range(40)]
                  for host in hosts}
        changes.put(self.index, rows, inventories, traits, {
            host.id: [_AGGREGATES[host.id % 3]] for host in hosts})
        self.index.slots_of_uuids([rows[5].uuid])
        self.assertLess(self.index.nbytes / len(rows), 200)
