# SPDX-License-Identifier: Apache-2.0
"""Trees of providers: parents, roots, moves, and what can be listed by them."""

import json
from unittest import mock

import sqlalchemy as sa

from placement_rpc import api, exception
from placement_rpc.db import models
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, trees


class _TreeTest(base.ContractTest):

    def child(self, parent, **values):
        name = f"child {base.new_uuid()}"
        return self.api.create_provider(
            None, name, parent_provider_uuid=parent, **values).uuid

    def move(self, uuid, parent, **values):
        return self.api.update_provider(None, uuid, self.api.get_provider(None, uuid).name,
                                        parent_provider_uuid=parent, **values)

    def place(self, uuid):
        """Return parent, root and generation of a provider."""
        found = self.api.get_provider(None, uuid)
        return found.parent_provider_uuid, found.root_provider_uuid, found.generation

    def listed(self, **filters):
        return [each.uuid for each in self.api.list_providers(None, **filters).objects]


class TreeTest(_TreeTest):

    def test_a_provider_without_a_parent_is_its_own_root(self):
        root = self.provider()
        self.assertEqual((None, root, 0), self.place(root))

    def test_children_have_the_root_of_their_parent(self):
        root = self.provider()
        child = self.child(root)
        grandchild = self.child(child)
        self.assertEqual((root, root, 0), self.place(child))
        self.assertEqual((child, root, 0), self.place(grandchild))
        # A new child does not change its parent.
        self.assertEqual((None, root, 0), self.place(root))

    def test_parents_that_cannot_be(self):
        uuid = base.new_uuid()
        for parent in (base.new_uuid(), uuid):
            self.assertRaises(exception.ParentNotFound, self.api.create_provider, None, "child",
                              uuid, parent_provider_uuid=parent)
        for parent in ("", "root", 7):
            self.assertRaises(exception.InvalidInput, self.api.create_provider, None, "child",
                              uuid, parent_provider_uuid=parent)
        root = self.provider()
        self.assertRaises(exception.ParentNotFound, self.move, root, base.new_uuid())
        self.assertEqual([root], self.listed())

    def test_a_move_takes_all_that_is_below_along(self):
        old, new = self.provider(), self.provider()
        child = self.child(old)
        grandchild, other = self.child(child), self.child(old)
        moved = self.move(child, new)
        self.assertEqual((new, new, 1), (
            moved.parent_provider_uuid, moved.root_provider_uuid, moved.generation))
        self.assertEqual((new, new, 1), self.place(child))
        self.assertEqual((child, new, 1), self.place(grandchild))
        # What stays is not changed.
        self.assertEqual((old, old, 0), self.place(other))
        self.assertEqual([(None, old, 0), (None, new, 0)], [self.place(old), self.place(new)])
        trees.check(self, self.service.database)

    def test_a_move_within_a_tree_changes_the_provider_alone(self):
        root = self.provider()
        first, second = self.child(root), self.child(root)
        below = self.child(first)
        self.move(first, second)
        self.assertEqual((second, root, 1), self.place(first))
        self.assertEqual((first, root, 0), self.place(below))
        trees.check(self, self.service.database)

    def test_a_provider_becomes_a_root_and_a_root_becomes_a_child(self):
        root = self.provider()
        child = self.child(root)
        below = self.child(child)
        self.move(child, None)
        self.assertEqual((None, child, 1), self.place(child))
        self.assertEqual((child, child, 1), self.place(below))
        self.move(root, below)
        self.assertEqual((below, child, 1), self.place(root))
        self.move(child, None)
        self.assertEqual((None, child, 1), self.place(child))
        trees.check(self, self.service.database)

    def test_loops_are_refused(self):
        root = self.provider()
        child = self.child(root)
        below = self.child(child)
        for uuid, parent in ((root, root), (root, child), (root, below), (child, below)):
            self.assertRaises(exception.TreeLoop, self.move, uuid, parent)
        self.assertEqual([0, 0, 0], [self.place(each)[2] for each in (root, child, below)])

    def test_a_rename_keeps_the_parent(self):
        root = self.provider()
        child = self.child(root)
        self.api.update_provider(None, child, "renamed")
        self.assertEqual((root, root, 1), self.place(child))
        # The same name and the same parent change nothing.
        self.api.update_provider(None, child, "renamed", parent_provider_uuid=root)
        self.assertEqual((root, root, 1), self.place(child))

    def test_a_move_and_a_rename_are_one_change(self):
        root, child = self.provider(), self.provider()
        self.api.update_provider(
            None, child, "renamed", 0, parent_provider_uuid=root)
        self.assertEqual((root, root, 1), self.place(child))
        self.assertEqual("renamed", self.api.get_provider(None, child).name)

    def test_a_refused_move_changes_no_name(self):
        root = self.provider("taken")
        child = self.child(root)
        self.assertRaises(exception.NameInUse, self.api.update_provider, None, child, "taken",
                          parent_provider_uuid=None)
        self.assertRaises(exception.TreeLoop, self.api.update_provider, None, root, "other",
                          parent_provider_uuid=child)
        self.assertRaises(exception.ConcurrentUpdate, self.move, child, None, generation=7)
        self.assertEqual("taken", self.api.get_provider(None, root).name)
        self.assertEqual((root, root, 0), self.place(child))

    def test_a_parent_that_may_not_be_changed(self):
        root, other = self.provider(), self.provider()
        self.move(other, root, may_move=False)
        self.move(other, root, may_move=False)
        for parent in (None, self.provider()):
            self.assertRaises(
                exception.ParentFixed, self.move, other, parent, may_move=False)
        self.assertEqual((root, root, 1), self.place(other))

    def test_a_parent_is_deleted_after_its_children(self):
        root = self.provider(VCPU=8)
        child = self.child(root)
        self.assertRaises(exception.ProviderIsParent, self.api.delete_provider, None, root)
        self.api.delete_provider(None, child)
        self.api.delete_provider(None, root)
        self.assertEqual([], self.listed())

    def test_a_repeated_move_has_the_first_outcome(self):
        root, other, request_id = self.provider(), self.provider(), base.new_uuid()
        first = self.move(other, root, generation=0, request_id=request_id)
        self.move(other, None)
        again = self.move(other, root, generation=2, request_id=request_id)
        self.assertEqual((first.generation, first.root_provider_uuid),
                         (again.generation, again.root_provider_uuid))
        self.assertEqual((None, other, 2), self.place(other))
        for parent in (None, api.KEEP):
            self.assertRaises(exception.RequestIdReused, self.move, other, parent,
                              request_id=request_id)

    def test_events_tell_parents_and_roots_before_and_after(self):
        old, new = self.provider(), self.provider()
        child = self.child(old)
        below = self.child(child)
        self.move(child, new)
        self.move(child, None)
        self.api.delete_provider(None, below)
        told = [(kind, data["provider_uuid"], data["previous_parent_provider_uuid"],
                 data["previous_root_provider_uuid"], data["parent_provider_uuid"],
                 data["root_provider_uuid"])
                for kind, data in self.payloads() if data.get("provider_uuid") in (child, below)]
        update = "resource_provider.update"
        self.assertEqual([
            ("resource_provider.create", child, None, None, old, old),
            ("resource_provider.create", below, None, None, child, old),
            (update, child, old, old, new, new), (update, below, child, old, child, new),
            (update, child, new, new, None, child), (update, below, child, new, child, child),
            ("resource_provider.delete", below, child, child, child, child)], told)
        trees.check(self, self.service.database)

    def payloads(self):
        """Return type and data of each event, in order."""
        with self.service.database.reader() as tx:
            rows = tx.execute(models.events.select().order_by(models.events.c.id)).all()
        return [(row.event_type, json.loads(row.payload)["placement_object.data"])
                for row in rows]


class ListTest(_TreeTest):
    """Every filter of list_providers, alone and combined."""

    def setUp(self):
        super().setUp()
        self.root, self.other = self.provider(VCPU=8), self.provider(VCPU=2)
        self.children = [self.child(self.root) for _ in range(3)]
        for number, uuid in enumerate(self.children):
            self.api.set_inventory(None, uuid, [base.inventory("VCPU", number + 1)])
        for name in ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C"):
            self.api.create_trait(None, name)
        for uuid, *traits in ((self.children[0], "CUSTOM_A"),
                              (self.children[1], "CUSTOM_A", "CUSTOM_B"),
                              (self.other, "CUSTOM_B")):
            self.api.set_provider_traits(None, uuid, traits)

    def test_in_tree(self):
        tree = [self.root, *self.children]
        for uuid in tree:
            self.assertEqual(tree, self.listed(in_tree=uuid))
        self.assertEqual([self.other], self.listed(in_tree=self.other))
        self.assertEqual([], self.listed(in_tree=base.new_uuid()))

    def test_traits(self):
        first, second, _ = self.children
        self.assertEqual([first, second], self.listed(required=[["CUSTOM_A"]]))
        self.assertEqual([second], self.listed(required=[["CUSTOM_A"], ["CUSTOM_B"]]))
        self.assertEqual([self.other, first, second],
                         self.listed(required=[["CUSTOM_A", "CUSTOM_B"]]))
        self.assertEqual([first], self.listed(required=[["CUSTOM_A"]], forbidden=["CUSTOM_B"]))
        self.assertEqual([], self.listed(required=[["CUSTOM_A"]], forbidden=["CUSTOM_A"]))
        self.assertEqual([], self.listed(required=[["CUSTOM_C"]]))
        for filters in ({"required": [["CUSTOM_NONE"]]}, {"forbidden": ["CUSTOM_NONE"]}):
            self.assertRaises(exception.TraitNotFound, self.listed, **filters)

    def test_all_at_once(self):
        first, second, third = self.children
        aggregate, other = base.new_uuid(), base.new_uuid()
        self.api.set_aggregates(None, first, [aggregate, other])
        self.api.set_aggregates(None, second, [aggregate])
        tree = {"in_tree": third, "member_of": [[aggregate]], "required": [["CUSTOM_A"]]}
        self.assertEqual([first, second], self.listed(**tree))
        self.assertEqual([second], self.listed(**tree, not_member_of=[other]))
        self.assertEqual([second], self.listed(**tree, resources={"VCPU": 2}))
        self.assertEqual([first], self.listed(**tree, forbidden=["CUSTOM_B"]))
        self.assertEqual([second], self.listed(**tree, uuid=second))
        self.assertEqual([second], self.listed(**tree, marker=first))
        self.assertEqual([], self.listed(**tree, uuid=self.other))
        self.assertEqual([], self.listed(**tree, name="no such name"))

    def test_pages_with_resources_lose_and_repeat_nothing(self):
        fitting = [self.root, self.other, *self.children[1:]]
        self.assertEqual(fitting, self.listed(resources={"VCPU": 2}))
        for limit in (1, 2, 3, 4, 5):
            found, marker, more = [], None, True
            while more:
                page = self.api.list_providers(
                    None, resources={"VCPU": 2}, marker=marker, limit=limit)
                self.assertLessEqual(len(page.objects), limit)
                found += [each.uuid for each in page.objects]
                more, marker = page.more, found[-1]
            self.assertEqual(fitting, found)
        self.assertRaises(exception.ResourceClassNotFound, self.listed,
                          resources={"CUSTOM_NONE": 1})
        for resources in ({}, {"VCPU": 0}, {"VCPU": "1"}, [], "VCPU:1"):
            self.assertRaises(exception.InvalidInput, self.listed, resources=resources)


class PositionTest(base.ContractTest):

    def service_arguments(self):
        # With a relay, which gives the events their positions.
        return {}

    def test_a_list_with_resources_claims_no_event_that_the_search_did_not_see(self):
        self.provider(VCPU=8)
        database, search = self.service.database, self.service.manager.candidates
        base.wait_published(database)
        find = search.find

        def found(*arguments):
            before = find(*arguments)
            self.late = self.provider(VCPU=8)
            base.wait_published(database)
            return before

        with mock.patch.object(search, "find", found):
            page = self.api.list_providers(None, resources={"VCPU": 1})
        self.assertNotIn(self.late, [each.uuid for each in page.objects])
        self.assertIn(("inventory.create", self.late), [
            (each["event_type"], each["payload"].get("provider_uuid"))
            for each in self.api.list_events(None, after=page.position).events])


class PlanTest(base.TestCase):
    """A list with a filter does not look at every provider."""

    def test_filters_begin_with_an_index(self):
        service = self.useFixture(placement_fixtures.RunningService("local"))
        uuid, aggregate = service.api.create_provider(None, "provider").uuid, base.new_uuid()
        service.api.set_aggregates(None, uuid, [aggregate])
        service.api.set_provider_traits(None, uuid, ["COMPUTE_NODE"])
        asked = []
        sa.event.listen(service.database.engine, "before_cursor_execute",
                        lambda *arguments: asked.append(arguments[2:4]))
        for filters in ({"in_tree": uuid}, {"required": [["COMPUTE_NODE"]]},
                        {"member_of": [[aggregate]]}, {"uuid": uuid}):
            asked.clear()
            found = service.api.list_providers(None, **filters).objects
            self.assertEqual([uuid], [each.uuid for each in found])
            (statement, parameters), = [each for each in asked if "ORDER BY" in each[0]]
            with service.database.reader() as tx:
                plan = tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            self.assertEqual([], [row.detail for row in plan
                                  if row.detail.startswith("SCAN resource_providers")], filters)
