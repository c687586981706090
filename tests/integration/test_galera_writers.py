# SPDX-License-Identifier: Apache-2.0
"""Services that write to several nodes of a Galera cluster at once."""

import concurrent.futures
import functools
import json
import threading
from typing import Any, NamedTuple

import testtools

from placement_rpc import exception
from placement_rpc.accounting import snapshot
from placement_rpc.db.queries import leases
from placement_rpc.moving import hold
from tests import base
from tests.integration.galera_case import GaleraCase


def together(*calls):
    """Call functions at the same moment; return their results, or the errors that they raise."""
    meeting = threading.Barrier(len(calls))

    def outcome(call):
        meeting.wait()
        try:
            return call()
        except exception.PlacementException as error:
            return error

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(outcome, calls))


class WritersTest(GaleraCase):
    """Services on three nodes, which change the same providers."""

    options = {"claims__max_attempts": 30}

    def setUp(self):
        super().setUp()
        self.services = [self.service(number) for number in range(3)]
        self.api = self.services[0].api

    def provider(self, total):
        uuid = self.api.create_provider(None, base.new_uuid()).uuid
        self.api.set_inventory(None, uuid, [base.inventory("VCPU", total)])
        return uuid

    def test_no_provider_is_over_its_capacity(self):
        providers = [self.provider(20) for _ in range(2)]

        def claim(service):
            accepted = 0
            for _ in range(12):
                try:
                    service.api.claim_allocations(None, base.claim({
                        uuid: {"VCPU": 1} for uuid in providers}), timeout=60)
                    accepted += 1
                except exception.CapacityExceeded:
                    pass
            return accepted

        accepted = together(*(lambda each=each: claim(each) for each in self.services))
        self.assertEqual(20, sum(accepted))
        for uuid in providers:
            for service in self.services:
                self.assertEqual(20, service.api.get_usages(None, uuid).objects[0].used)
                self.assertEqual(21, service.api.get_provider(None, uuid).generation)
            self.assert_unbroken(uuid)

    def assert_unbroken(self, uuid):
        """The events of a provider are in the order of its generations."""
        found = []
        rows = self.positioned(self.services[2])
        self.assertEqual(list(range(rows[0].position, rows[0].position + len(rows))),
                         [row.position for row in rows])
        for row in rows:
            data = json.loads(row.payload)["placement_object.data"]
            found += [
                (each["previous_generation"], each["generation"])
                for each in (payload["placement_object.data"]
                             for payload in data.get("providers") or ())
                if each["provider_uuid"] == uuid]
        self.assertEqual([(number, number + 1) for number in range(1, 21)], [
            step for step in found if None not in step])

    def test_a_request_that_reaches_several_nodes_takes_effect_once(self):
        uuid = self.provider(100)
        for number in range(10):
            claim = functools.partial(
                lambda service, wanted, request: service.api.claim_allocations(
                    None, wanted, request_id=request, timeout=60),
                wanted=base.claim({uuid: {"VCPU": 1}}), request=f"{uuid}-{number}")
            results = together(*(functools.partial(claim, each) for each in self.services))
            self.assertEqual([number + 2] * 3, [each.generations[uuid] for each in results])
            self.assertEqual(2, sum(each.replayed for each in results))
        self.assertEqual(10, self.api.get_usages(None, uuid).objects[0].used)

    def test_a_name_that_is_taken_on_several_nodes(self):
        for call, error in ((lambda api: api.create_provider(None, "same"), exception.NameInUse),
                            (lambda api: api.create_trait(None, "CUSTOM_SAME"),
                             exception.TraitExists),
                            (lambda api: api.resource_class_create(None, "CUSTOM_SAME"),
                             exception.ResourceClassExists)):
            found = together(*(lambda each=each, call=call: call(each.api)
                               for each in self.services))
            self.assertEqual(2, sum(isinstance(each, error) for each in found), found)

    def test_one_process_has_a_lease(self):
        name = base.new_uuid()
        for _ in range(5):
            found = together(*(lambda each=each, number=number: each.database.write(
                lambda tx: leases.acquire(tx, name, str(number), 60))
                for number, each in enumerate(self.services)))
            self.assertEqual(1, sum(found))
            holder = str(found.index(True))
            self.services[1].database.write(
                functools.partial(leases.release, name=name, holder=holder))

    def test_a_lease_that_expires_moves_to_another_node(self):
        name = base.new_uuid()

        def acquired(number, seconds):
            return self.services[number].database.write(lambda tx: leases.acquire(
                tx, name, str(number), seconds))

        self.assertTrue(acquired(0, 1))
        self.assertFalse(acquired(1, 60))
        base.wait_until(lambda: acquired(1, 60))
        self.assertFalse(acquired(0, 1))


class Pair(NamedTuple):
    """Two changes that exclude each other.

    ``first`` is made on one node, and ``second`` on another that does not have it yet;
    ``expected`` is the error of the second, or a function of its result that checks it.
    """

    first: Any
    second: Any
    expected: Any


class PairsTest(GaleraCase):
    """A change on a node that has not applied yet what it contradicts."""

    time_limit = 180
    # What the second node reads is out of date.
    options = {"transactions__causal_reads": False, "claims__max_attempts": 30}

    def setUp(self):
        super().setUp()
        self.one, self.other = (self.service(number) for number in (0, 1))
        self.api = self.one.api

    def provider(self, parent=None, **inventories):
        uuid = self.api.create_provider(
            None, base.new_uuid(), parent_provider_uuid=parent).uuid
        if inventories:
            self.api.set_inventory(None, uuid, [
                base.inventory(name, total) for name, total in inventories.items()])
        return uuid

    def move(self, uuid, parent):
        return lambda api: api.update_provider(
            None, uuid, base.new_uuid(), parent_provider_uuid=parent)

    def child(self, parent):
        return lambda api: api.create_provider(None, base.new_uuid(), parent_provider_uuid=parent)

    def tree_pairs(self):
        one, two = self.provider(), self.provider()
        yield Pair(self.move(one, two), self.move(two, one), exception.TreeLoop)
        root, other = self.provider(), self.provider()
        moved = self.provider(root)
        yield Pair(self.move(moved, other), self.child(moved),
                   lambda made: self.assertEqual(other, made.root_provider_uuid))
        root = self.provider()
        below, above = self.provider(root), self.provider(root)
        yield Pair(self.move(above, below), self.move(below, above), exception.TreeLoop)
        parent = self.provider()
        yield Pair(self.child(parent), lambda api: api.delete_provider(None, parent),
                   exception.ProviderIsParent)
        gone = self.provider()
        yield Pair(lambda api: api.delete_provider(None, gone), self.child(gone),
                   exception.ParentNotFound)

    def provider_pairs(self):
        vcpu = [base.inventory("VCPU", 10)]
        deleted = [self.provider(VCPU=10) for _ in range(3)]
        for uuid, second in zip(deleted, (
                lambda api: api.set_inventory(None, deleted[0], [base.inventory("VCPU", 5)]),
                lambda api: api.set_aggregates(None, deleted[1], [base.new_uuid()]),
                lambda api: api.claim_allocations(
                    None, base.claim({deleted[2]: {"VCPU": 1}}))), strict=True):
            yield Pair(lambda api, uuid=uuid: api.delete_provider(None, uuid), second,
                       exception.ProviderNotFound)
        used = self.provider(VCPU=10)
        yield Pair(lambda api: api.claim_allocations(None, base.claim({used: {"VCPU": 1}})),
                   lambda api: api.delete_provider(None, used), exception.ProviderInUse)
        emptied = self.provider(VCPU=10)
        yield Pair(lambda api: api.claim_allocations(None, base.claim({emptied: {"VCPU": 1}})),
                   lambda api: api.set_inventory(None, emptied, []), exception.InventoryInUse)
        read = self.provider()
        yield Pair(lambda api: api.set_inventory(None, read, vcpu),
                   lambda api: api.set_inventory(None, read, vcpu, generation=0),
                   exception.ConcurrentUpdate)
        full = self.provider(VCPU=1)
        yield Pair(lambda api: api.claim_allocations(None, base.claim({full: {"VCPU": 1}})),
                   lambda api: api.claim_allocations(None, base.claim({full: {"VCPU": 1}})),
                   exception.CapacityExceeded)

    def name_pairs(self):
        for first in (self.api.create_trait, self.api.resource_class_create):
            for name in ("CUSTOM_GONE", "CUSTOM_USED", "CUSTOM_RENAMED"):
                first(None, name)
        uuids = [self.provider() for _ in range(5)]
        yield Pair(lambda api: api.delete_trait(None, "CUSTOM_GONE"),
                   lambda api: api.set_provider_traits(None, uuids[0], ["CUSTOM_GONE"]),
                   exception.TraitNotFound)
        yield Pair(lambda api: api.set_provider_traits(None, uuids[1], ["CUSTOM_USED"]),
                   lambda api: api.delete_trait(None, "CUSTOM_USED"), exception.TraitInUse)
        yield Pair(lambda api: api.resource_class_delete(None, "CUSTOM_GONE"),
                   lambda api: api.set_inventory(
                       None, uuids[2], [base.inventory("CUSTOM_GONE", 1)]),
                   exception.ResourceClassNotFound)
        yield Pair(lambda api: api.set_inventory(
            None, uuids[3], [base.inventory("CUSTOM_USED", 1)]),
            lambda api: api.resource_class_delete(None, "CUSTOM_USED"),
            exception.ResourceClassInUse)
        yield Pair(lambda api: api.resource_class_rename(None, "CUSTOM_RENAMED", "CUSTOM_NEW"),
                   lambda api: api.set_inventory(
                       None, uuids[4], [base.inventory("CUSTOM_RENAMED", 1)]),
                   exception.ResourceClassNotFound)

    def consumer_pairs(self):
        uuid = self.provider(VCPU=100)
        new, released, request = base.new_uuid(), base.new_uuid(), base.new_uuid()
        self.api.claim_allocations(None, base.claim({uuid: {"VCPU": 1}}, released))
        same = base.claim({uuid: {"VCPU": 1}})
        yield Pair(lambda api: api.claim_allocations(
            None, base.claim({uuid: {"VCPU": 1}}, new)), lambda api: api.claim_allocations(
            None, base.claim({uuid: {"VCPU": 2}}, new, consumer_generation=0)),
            exception.ConsumerConflict)
        yield Pair(lambda api: api.release_allocations(None, released),
                   lambda api: api.release_allocations(None, released),
                   exception.ConsumerNotFound)
        yield Pair(lambda api: api.claim_allocations(None, same, request_id=request),
                   lambda api: api.claim_allocations(None, same, request_id=request),
                   lambda result: self.assertTrue(result.replayed))

    def test_the_second_of_a_pair_sees_the_first(self):
        pairs = [*self.tree_pairs(), *self.provider_pairs(), *self.name_pairs(),
                 *self.consumer_pairs()]
        with self.busy(1) as check:
            for each in pairs:
                each.first(self.api)
            check()
            found = together(*(lambda each=each: each.second(self.other.api)
                               for each in pairs))
        for each, outcome in zip(pairs, found, strict=True):
            if isinstance(each.expected, type):
                self.assertIsInstance(outcome, each.expected)
            else:
                each.expected(outcome)

    def test_a_snapshot_has_no_allocations_from_before_a_change_that_it_follows(self):
        uuid, consumer = self.provider(VCPU=100), base.new_uuid()
        self.api.claim_allocations(None, base.claim({uuid: {"VCPU": 1}}, consumer))
        snapshot.begin(self.one.database)
        with self.busy(1) as check:
            self.api.claim_allocations(None, base.claim({uuid: {"VCPU": 2}}, consumer))
            check()
            while snapshot.go_on(self.other.database) is not None:
                pass
        amounts = []
        for row in self.positioned(self.one):
            data = json.loads(row.payload)["placement_object.data"]
            if data.get("consumer_uuid") == consumer:
                held, = data["providers"]
                amounts.append((
                    row.event_type, held["placement_object.data"]["after"]["VCPU"]))
        self.assertEqual([("allocation.create", 1), ("allocation.update", 2),
                          ("allocation.exists", 2)], amounts)


class HoldTest(GaleraCase):
    """An import begins on one node while a client changes the store on another."""

    options = {"transactions__causal_reads": False}

    def test_no_change_from_before_the_hold_is_committed_after_it(self):
        one, other = (self.service(number) for number in (0, 1))
        with self.busy(1) as check:
            hold.begin_pass(one.database, "a test")
            check()
            with testtools.ExpectedException(exception.StoreHeld):
                other.api.create_provider(None, "late")
