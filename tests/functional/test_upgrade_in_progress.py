# SPDX-License-Identifier: Apache-2.0
"""What waits until no live service is older than contract 1.3, and what is stored meanwhile."""

import json
import time

from placement_rpc import exception, manager
from placement_rpc.api import InventoryList
from placement_rpc.db import models
from placement_rpc.db.queries import requests, services
from placement_rpc.objects.nova import compute_node
from placement_rpc.versions import releases
from tests import base, http

_OLD = {"binary": "placement-rpc-conductor", "host": "old.example.org", "worker": 0}


class _OldService:
    """Adds and removes the heartbeat of a service of release 2026.2."""

    def add_old(self, database, rpc_version="1.2"):
        database.write(lambda tx: services.beat(tx, _OLD, {
            "version": "0.2.0", "rpc_version": rpc_version, "pin": None, "oldest_caller": None},
            started=True))

    def remove_old(self, database):
        database.write(lambda tx: services.remove(tx, _OLD))

    def wait_refused(self):
        """Wait until the service has seen the heartbeat; return the error."""
        def error():
            try:
                self.api.set_provider_traits(None, base.new_uuid(), [])
            except exception.UpgradeInProgress as found:
                return found
            except exception.ProviderNotFound:
                return None

        return base.wait_until(error)


class CallsTest(_OldService, base.ContractTest):

    def setUp(self):
        super().setUp()
        self.root, self.other = self.provider("root"), self.provider("other")
        self.api.create_trait(None, "CUSTOM_A")
        self.api.set_provider_traits(None, self.root, ["CUSTOM_A"])
        self.child = self.api.create_provider(None, "child", parent_provider_uuid=self.root).uuid
        self.database = self.service.database

    def test_changes_that_an_older_service_would_misread_are_refused(self):
        self.add_old(self.database)
        error = self.wait_refused()
        self.assertIn("old.example.org", error.text)
        self.assertEqual(503, error.http_status)
        typed = base.claim({self.other: {"VCPU": 1}}, consumer_type="INSTANCE")
        for call, arguments, values in (
                (self.api.create_trait, ("CUSTOM_B",), {}),
                (self.api.delete_trait, ("CUSTOM_A",), {}),
                (self.api.reshape, ([InventoryList(provider_uuid=self.root, objects=[])],), {}),
                (self.api.set_provider_traits, (self.root, []), {}),
                (self.api.create_provider, ("new",), {"parent_provider_uuid": self.root}),
                (self.api.update_provider, (self.other, "other"),
                 {"parent_provider_uuid": self.root}),
                (self.api.update_provider, (self.child, "child"),
                 {"parent_provider_uuid": None}),
                (self.api.create_provider, (" blanks ",), {}),
                (self.api.update_provider, (self.other, "blank "), {}),
                (self.api.claim_allocations, (typed,), {}),
                (self.api.set_allocations, ([typed],), {})):
            self.assertRaises(exception.UpgradeInProgress, call, None, *arguments, **values)
        # All else goes on.
        self.api.update_provider(None, self.other, "renamed")
        self.assertEqual(0, self.api.create_provider(None, "new").generation)
        self.assertEqual(["CUSTOM_A"], self.api.get_provider_traits(None, self.root).traits)
        self.assertEqual(["CUSTOM_A"], [each.name for each in self.api.list_traits(
            None, prefix="CUSTOM_").objects])
        self.assertEqual([self.root, self.child], [each.uuid for each in self.api.list_providers(
            None, in_tree=self.child).objects])
        self.assertEqual(self.root, self.api.get_provider(None, self.child).root_provider_uuid)
        self.assertRaises(exception.ProviderIsParent, self.api.delete_provider, None, self.root)

    def test_a_capacity_below_what_is_used(self):
        uuid = self.provider(VCPU=8)
        self.claim({uuid: {"VCPU": 8}})
        self.add_old(self.database)
        self.wait_refused()
        small = base.inventory("VCPU", 4)
        for request_id, call, wanted in (
                ("set", self.api.set_inventory, [small]),
                ("update", self.api.update_inventory, small)):
            self.assertRaises(exception.UpgradeInProgress, call, None, uuid, wanted,
                              request_id=request_id)
            self.assertRaises(exception.CapacityConflict, call, None, uuid, wanted,
                              allow_below_use=False)
        self.sync_node(4)
        # Other changes of inventories go on.
        self.api.update_inventory(None, uuid, base.inventory("VCPU", 9))
        self.remove_old(self.database)

        def changed():
            try:
                # The refusal is not the outcome of the request.
                return self.api.set_inventory(None, uuid, [small], request_id="set")
            except exception.UpgradeInProgress:
                return None

        self.assertEqual(4, base.wait_until(changed).objects[0].total)

    def sync_node(self, total):
        """A tracker may not report less than is used either."""
        node = compute_node.ComputeNode(
            uuid=base.new_uuid(), host="h", hypervisor_hostname="h", vcpus=8, memory_mb=0,
            local_gb=0, cpu_allocation_ratio=1.0)
        self.api.sync_compute_node(None, node, {}, time.time())
        consumer, _ = self.claim({node.uuid: {"VCPU": 8}})
        node.vcpus = total
        for error, allow in ((exception.UpgradeInProgress, None),
                             (exception.CapacityConflict, False)):
            self.assertRaises(error, self.api.sync_compute_node, None, node, {}, time.time(),
                              allow_below_use=allow)
        self.api.release_allocations(None, consumer)
        self.api.sync_compute_node(None, node, {}, time.time())

    def test_a_ratio_that_an_older_service_cannot_read(self):
        uuid = self.provider(VCPU=8)
        self.add_old(self.database)
        self.wait_refused()
        for ratio in (1e10, 0.0):
            wanted = base.inventory("VCPU", {"total": 8, "allocation_ratio": ratio})
            for call, *values in ((self.api.set_inventory, [wanted]),
                                  (self.api.update_inventory, wanted),
                                  (self.api.add_inventory, wanted)):
                self.assertRaises(exception.UpgradeInProgress, call, None, uuid, *values)
        self.api.update_inventory(None, uuid, base.inventory(
            "VCPU", {"total": 8, "allocation_ratio": 1e9}))

    def test_they_are_accepted_again_without_it(self):
        self.add_old(self.database)
        request_id = base.new_uuid()
        self.wait_refused()
        self.assertRaises(exception.UpgradeInProgress, self.api.create_trait, None, "CUSTOM_B",
                          request_id=request_id)
        self.remove_old(self.database)

        def created():
            try:
                # The refusal is not the outcome of the request.
                return self.api.create_trait(None, "CUSTOM_B", request_id=request_id)
            except exception.UpgradeInProgress:
                return None

        self.assertEqual("CUSTOM_B", base.wait_until(created).name)

    def test_services_of_this_release_and_of_a_later_one_hold_nothing_up(self):
        for version in ("1.3", "1.9", "1.10", "2.0"):
            self.add_old(self.database, version)
            self.new_manager().check_everywhere("a trait", "1.3")

    def new_manager(self):
        """Return a manager that has not read the heartbeats yet."""
        return manager.Manager(self.service.conf, self.database)

    def test_what_is_no_version_holds_them_up(self):
        for version in ("?", "", "1", "1.2.3", "0.9"):
            self.add_old(self.database, version)
            self.assertRaises(exception.UpgradeInProgress,
                              self.new_manager().check_everywhere, "a trait", "1.3")

    def test_what_is_stored_meanwhile_can_be_read_by_it(self):
        """Outcomes and events are at the versions of the oldest live service."""
        self.add_old(self.database)
        self.wait_refused()
        self.api.create_provider(None, "new", request_id="create")
        self.api.update_provider(None, self.child, "renamed", request_id="update")
        known = releases.of_contract("1.2").versions
        with self.database.reader() as tx:
            outcomes = [json.loads(row.outcome)
                        for row in requests.find(tx, ["create", "update"]).values()]
            payloads = [json.loads(row.payload) for row in tx.execute(
                models.events.select().order_by(models.events.c.id.desc()).limit(2))]
        found = list(base.objects_in([outcomes, payloads]))
        self.assertEqual(4, len(found))
        for name, version in found:
            self.assertEqual(known[name], version)
        # The same request is answered from it.
        again = self.api.update_provider(None, self.child, "renamed", request_id="update")
        self.assertEqual((self.child, "renamed", 1), (again.uuid, again.name, again.generation))


class HTTPTest(_OldService, http.HTTPTest):
    version = "1.7"

    def test_answers(self):
        uuid = self.make()
        self.send("PUT", "/traits/CUSTOM_A")
        self.add_old(self.database)
        self.wait_refused()
        path = f"/resource_providers/{uuid}/traits"
        for answer in (
                self.send("PUT", "/traits/CUSTOM_B"), self.send("DELETE", "/traits/CUSTOM_A"),
                self.send("PUT", path, {"traits": [], "resource_provider_generation": 0}),
                self.send("DELETE", path)):
            self.assertEqual(503, answer.status_code)
            self.assertEqual("placement.service.upgrade_in_progress",
                             answer.json["errors"][0]["code"])
        self.assertEqual([], self.get(path)["traits"])
        for path in ("/traits", "/traits/CUSTOM_B", "/resource_providers"):
            self.assertIn(self.send("GET", path).status_code, (200, 404))
