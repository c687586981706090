# SPDX-License-Identifier: Apache-2.0
"""Providers: created, found, renamed, deleted (generic-resource-pools)."""

from unittest import mock

from placement_rpc import exception
from placement_rpc.accounting import provider_lists
from placement_rpc.rpc import endpoint
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base


class ProviderTest(base.ContractTest):

    def test_a_new_provider_is_at_generation_0_and_can_be_read_back(self):
        uuid = base.new_uuid()
        created = self.api.create_provider(None, "Global NFS share", uuid)
        self.assertEqual((uuid, "Global NFS share", 0),
                         (created.uuid, created.name, created.generation))
        read = self.api.get_provider(None, uuid)
        self.assertEqual((uuid, "Global NFS share", 0), (read.uuid, read.name, read.generation))

    def test_a_uuid_is_made_where_none_is_given(self):
        first = self.api.create_provider(None, "first")
        second = self.api.create_provider(None, "second")
        self.assertNotEqual(first.uuid, second.uuid)

    def test_a_name_is_used_once(self):
        self.provider("RBD volume group")
        error = self.assertRaises(
            exception.NameInUse, self.api.create_provider, None, "RBD volume group")
        self.assertIn("RBD volume group", error.text)

    def test_names_differ_by_the_case_of_their_letters(self):
        self.provider("pool")
        self.provider("Pool")
        self.assertEqual(2, len(self.api.list_providers(None).objects))

    def test_a_uuid_is_used_once(self):
        uuid = self.provider("one")
        for name in ("another", "one"):
            self.assertRaises(
                exception.ProviderExists, self.api.create_provider, None, name, uuid)

    def test_a_rename_raises_the_generation(self):
        uuid = self.provider("old")
        renamed = self.api.update_provider(None, uuid, "new")
        self.assertEqual(("new", 1), (renamed.name, renamed.generation))
        self.assertEqual("new", self.api.get_provider(None, uuid).name)

    def test_the_same_name_again_changes_nothing(self):
        uuid = self.provider("name")
        self.assertEqual(0, self.api.update_provider(None, uuid, "name").generation)

    def test_a_rename_to_a_name_in_use_is_refused(self):
        self.provider("taken")
        uuid = self.provider("mine")
        self.assertRaises(
            exception.NameInUse, self.api.update_provider, None, uuid, "taken")
        self.assertEqual("mine", self.api.get_provider(None, uuid).name)

    def test_a_stale_generation_is_refused(self):
        uuid = self.provider("name")
        self.api.update_provider(None, uuid, "newer", generation=0)
        error = self.assertRaises(
            exception.ConcurrentUpdate, self.api.update_provider, None, uuid, "newest",
            generation=0)
        self.assertEqual({"provider": uuid, "current": 1, "given": 0}, error.kwargs)

    def test_deleting_takes_inventories_and_aggregates_along(self):
        uuid = self.provider("name", VCPU=8)
        self.api.set_aggregates(None, uuid, [base.new_uuid()])
        self.api.delete_provider(None, uuid)
        self.assertRaises(exception.ProviderNotFound, self.api.get_provider, None, uuid)
        self.assertEqual([], self.find({"VCPU": 1}))

    def test_a_provider_with_allocations_is_not_deleted(self):
        uuid = self.provider(VCPU=8)
        consumer, _ = self.claim({uuid: {"VCPU": 1}})
        self.assertRaises(exception.ProviderInUse, self.api.delete_provider, None, uuid)
        self.api.release_allocations(None, consumer)
        self.api.delete_provider(None, uuid)

    def test_what_is_not_there_is_named(self):
        uuid = base.new_uuid()
        for call in (self.api.get_provider, self.api.delete_provider, self.api.get_inventory,
                     self.api.get_usages, self.api.get_aggregates,
                     self.api.get_provider_allocations):
            error = self.assertRaises(exception.ProviderNotFound, call, None, uuid)
            self.assertIn(uuid, error.text)

    def test_lists_come_in_the_order_of_creation_and_in_pages(self):
        uuids = [self.provider(f"provider {number}") for number in range(5)]

        def listed(**filters):
            return [each.uuid for each in self.api.list_providers(None, **filters).objects]

        self.assertEqual(uuids, listed())
        self.assertEqual(uuids[:2], listed(limit=2))
        self.assertEqual(uuids[2:4], listed(limit=2, marker=uuids[1]))
        self.assertEqual([uuids[3]], listed(name="provider 3"))
        self.assertRaises(exception.ProviderNotFound, listed, marker=base.new_uuid())

    def test_lists_by_aggregate(self):
        aggregate, other = base.new_uuid(), base.new_uuid()
        inside, both, _outside = (self.provider() for _ in range(3))
        self.api.set_aggregates(None, inside, [aggregate])
        self.api.set_aggregates(None, both, [aggregate, other])

        def members(*sets):
            return [each.uuid for each in self.api.list_providers(
                None, member_of=list(sets)).objects]

        self.assertEqual([inside, both], members([aggregate]))
        self.assertEqual([both], members([aggregate], [other]))
        self.assertEqual([inside, both], members([aggregate, other]))


class AggregateTest(base.ContractTest):

    def test_aggregates_are_replaced_and_raise_the_generation(self):
        uuid = self.provider()
        first, second, third = sorted(base.new_uuid() for _ in range(3))
        done = self.api.set_aggregates(None, uuid, [second, first])
        self.assertEqual(([first, second], 1), (done.aggregates, done.generation))
        self.api.set_aggregates(None, uuid, [second, third])
        read = self.api.get_aggregates(None, uuid)
        self.assertEqual(([second, third], 2), (read.aggregates, read.generation))

    def test_the_same_aggregates_change_nothing(self):
        uuid, aggregate = self.provider(), base.new_uuid()
        self.api.set_aggregates(None, uuid, [aggregate])
        self.assertEqual(1, self.api.set_aggregates(None, uuid, [aggregate]).generation)

    def test_a_stale_generation_is_refused(self):
        uuid = self.provider()
        self.api.set_aggregates(None, uuid, [base.new_uuid()], generation=0)
        self.assertRaises(exception.ConcurrentUpdate, self.api.set_aggregates, None, uuid, [],
                          generation=0)
        self.assertEqual(1, len(self.api.get_aggregates(None, uuid).aggregates))

    def test_all_aggregates_can_be_taken_away(self):
        uuid = self.provider()
        self.api.set_aggregates(None, uuid, [base.new_uuid()])
        self.assertEqual([], self.api.set_aggregates(None, uuid, []).aggregates)
        self.assertEqual([], self.api.get_aggregates(None, uuid).aggregates)


class PagesTest(base.TestCase):
    """A list of more providers than one answer has."""

    def setUp(self):
        super().setUp()
        self.patch(endpoint, "MAX_PAGE", 2)
        self.service = self.useFixture(placement_fixtures.RunningService(transport="local"))
        self.api = self.service.api
        self.uuids = [self.api.create_provider(None, f"provider {number}").uuid
                      for number in range(7)]

    def listed(self, deleted, **filters):
        """List providers, while some are deleted after the first page was read."""
        gone = list(deleted)
        read = provider_lists.ProviderLists.page

        def page(*arguments, **values):
            found = read(*arguments, **values)
            while gone:
                self.api.delete_provider(None, gone.pop())
            return found

        with mock.patch.object(provider_lists.ProviderLists, "page", page):
            return [each.uuid for each in self.api.list_providers(None, **filters).objects]

    def test_the_last_one_of_a_page_is_deleted(self):
        self.assertEqual(self.uuids, self.listed(self.uuids[1:2]))

    def test_all_of_a_page_are_deleted(self):
        self.assertEqual(self.uuids[2:], self.listed(self.uuids[:2]))

    def test_all_after_a_given_one_are_deleted(self):
        self.assertEqual(self.uuids[3:], self.listed(self.uuids[1:3], marker=self.uuids[0]))

    def test_no_more_than_asked_for(self):
        self.assertEqual(self.uuids[:5], self.listed(self.uuids[1:2], limit=5))
