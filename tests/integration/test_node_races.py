# SPDX-License-Identifier: Apache-2.0
"""Compute nodes whose providers, or which themselves, are changed by others at the same time."""

import threading
import time

import sqlalchemy as sa
import testscenarios

from placement_rpc import api, exception, manager
from placement_rpc.db import models
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers

# Without the checks, nearly each round went wrong.
_ROUNDS = 12


def _node(uuid, name, vcpus=4):
    return ComputeNode(
        uuid=uuid, host=name, hypervisor_hostname=name, vcpus=vcpus, memory_mb=4096, local_gb=10,
        vcpus_used=0, memory_mb_used=0, local_gb_used=0, hypervisor_type="QEMU",
        hypervisor_version=1, cpu_info="")


class NodeRacesTest(testscenarios.WithScenarios, base.TestCase):

    time_limit = 120
    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES]

    def setUp(self):
        super().setUp()
        store = self.useFixture(placement_fixtures.Store(
            servers.new_database(self.kind), database__sqlite_synchronous=False))
        self.database = store.database
        self.clients = [api.PlacementAPI(
            "local", store.conf, manager=manager.Manager(store.conf, store.database))
            for _ in range(3)]
        self.api = self.clients[0]

    def race(self, *calls):
        """Make calls at the same time; return the results, or the errors of this project."""
        done, together = [None] * len(calls), threading.Barrier(len(calls), timeout=30)

        def make(number):
            together.wait()
            try:
                done[number] = calls[number](self.clients[number])
            except exception.PlacementException as error:
                done[number] = error

        threads = [threading.Thread(target=make, args=(number,)) for number in range(len(calls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return done

    def sync(self, node):
        return lambda client: client.sync_compute_node(None, node.obj_clone(), {}, time.time())

    def act(self, node, action):
        return lambda client: client.object_action(None, node.obj_clone(), action, (), {})

    @staticmethod
    def delete(uuid):
        return lambda client: client.delete_provider(None, uuid)

    def nodes(self, uuid):
        with self.database.reader() as tx:
            return tx.execute(sa.select(models.compute_nodes.c.hypervisor_hostname).where(
                models.compute_nodes.c.uuid == uuid)).scalars().all()

    def rounds(self):
        """Yield a number and a new uuid for each round."""
        for number in range(_ROUNDS):
            yield number, base.new_uuid()

    def test_two_nodes_of_one_uuid(self):
        for number, uuid in self.rounds():
            self.api.create_provider(None, f"before {number}", uuid)
            done = self.race(*(self.act(_node(uuid, f"{letter}{number}"), "create")
                               for letter in "ab"))
            refused = [each for each in done if isinstance(each, exception.PlacementException)]
            self.assertEqual([exception.ComputeNodeExists], [*map(type, refused)])
            self.assertEqual(1, len(self.nodes(uuid)))

    def test_the_first_cycle_several_times(self):
        for number, uuid in self.rounds():
            done = self.race(*[self.sync(_node(uuid, f"node {number}"))] * 3)
            self.assertEqual([uuid] * 3, [each.provider_uuid for each in done])
            self.assertEqual([f"node {number}"], self.nodes(uuid))

    def test_a_node_is_destroyed_while_its_provider_is_deleted(self):
        for number, uuid in self.rounds():
            node = _node(uuid, f"node {number}")
            self.sync(node)(self.api)
            destroyed, deleted = self.race(self.act(node, "destroy"), self.delete(uuid))
            self.assertNotIsInstance(destroyed, exception.PlacementException)
            if deleted is not None:
                self.assertIsInstance(deleted, exception.ProviderNotFound)
            self.assertEqual([], self.nodes(uuid))

    def test_a_cycle_changes_a_node_while_its_provider_is_deleted(self):
        for number, uuid in self.rounds():
            self.sync(_node(uuid, f"node {number}"))(self.api)
            self.assert_provided(uuid, 8, *self.race(
                self.sync(_node(uuid, f"node {number}", vcpus=8)), self.delete(uuid)))

    def test_a_new_node_takes_a_provider_that_is_deleted(self):
        for number, uuid in self.rounds():
            self.api.create_provider(None, f"node {number}", uuid)
            self.assert_provided(uuid, 4, *self.race(
                self.sync(_node(uuid, f"node {number}")), self.delete(uuid)))

    def assert_provided(self, uuid, vcpus, synced, deleted):
        """The node is stored, and its provider is what it reported unless it is deleted now."""
        self.assertEqual(uuid, synced.provider_uuid)
        self.assertIsNone(deleted)
        self.assertEqual(1, len(self.nodes(uuid)))
        try:
            found = self.api.get_inventory(None, uuid).objects
        except exception.ProviderNotFound:
            return
        self.assertIn(vcpus, [each.total for each in found if each.resource_class == "VCPU"])
