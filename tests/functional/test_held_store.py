# SPDX-License-Identifier: Apache-2.0
"""While the store is held every change is refused with 503, and every read is answered."""

import time

from placement_rpc import exception
from placement_rpc.db.queries import events, hold
from placement_rpc.http import routes
from placement_rpc.objects.inventory import InventoryList
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.versions import contract
from tests import base, http

_REASON = "a test holds it"
# Calls that change nothing. An object's action, of which there are some that do, has a test of its
# own; the other two are made by the library of objects.
_READS = {
    "get_provider", "list_providers", "get_inventory", "get_allocations", "get_usages",
    "get_provider_allocations", "get_by_request", "get_allocation_candidates", "get_aggregates",
    "resource_class_list", "resource_class_get", "get_project_usages", "list_traits",
    "get_provider_traits", "get_request_result", "ping", "get_versions", "explain",
    "get_headroom", "list_provider_summaries", "list_consumers", "get_event_positions",
    "list_events", "verify_index", "object_class_action_versions", "object_backport_versions"}


class HeldServiceTest(base.ContractTest):

    def setUp(self):
        super().setUp()
        self.uuid = self.provider("provider", VCPU=8)
        self.consumer, _ = self.claim({self.uuid: {"VCPU": 1}})
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        self.api.create_trait(None, "CUSTOM_QUIET")

    def hold(self):
        self.service.database.write(lambda tx: hold.set_(tx, _REASON), "hold")

    def changes(self):
        """Return dict of call to its arguments: one that would change something."""
        claim = base.claim({self.uuid: {"VCPU": 2}})
        return {
            "create_provider": ("name",),
            "update_provider": (self.uuid, "new name"),
            "delete_provider": (self.uuid,),
            "set_inventory": (self.uuid, [base.inventory("VCPU", 4)]),
            "add_inventory": (self.uuid, base.inventory("DISK_GB", 8)),
            "update_inventory": (self.uuid, base.inventory("VCPU", 4)),
            "delete_inventory": (self.uuid, "VCPU"),
            "claim_allocations": (claim,),
            "set_allocations": ([claim],),
            "claim_batch": ([claim, base.claim({self.uuid: {"VCPU": 99}})],),
            "claim_by_request": (ResourceRequest(resources={"VCPU": 1}), base.claim({})),
            "move_allocations": (self.consumer, base.new_uuid()),
            "release_allocations": (self.consumer,),
            "reshape": ([InventoryList(provider_uuid=self.uuid, objects=[
                base.inventory("VCPU", 4)])], [claim]),
            "set_aggregates": (self.uuid, [base.new_uuid()]),
            "resource_class_create": ("CUSTOM_SILVER",),
            "resource_class_rename": ("CUSTOM_GOLD", "CUSTOM_SILVER"),
            "resource_class_delete": ("CUSTOM_GOLD",),
            "create_trait": ("CUSTOM_LOUD",),
            "delete_trait": ("CUSTOM_QUIET",),
            "set_provider_traits": (self.uuid, ["CUSTOM_QUIET"]),
            "sync_compute_node": (ComputeNode(
                uuid=base.new_uuid(), host="host", hypervisor_hostname="node", vcpus=4,
                memory_mb=1024, local_gb=10), {}, time.time()),
        }

    def last_event(self):
        # Its position is given to it a moment later.
        with self.service.database.reader() as tx:
            return events.last_id(tx)

    def test_every_change_is_refused_and_can_be_made_later(self):
        changes = self.changes()
        self.assertEqual(set(contract.CALLS), set(changes) | _READS | {"object_action"})
        before = self.last_event()
        self.hold()
        for name, arguments in changes.items():
            began = time.monotonic()
            error = self.assertRaises(
                exception.StoreHeld, getattr(self.api, name), None, *arguments, request_id=name)
            self.assertIn(_REASON, str(error), name)
            # It is not for the client to wait.
            self.assertLess(time.monotonic() - began, 5, name)
            self.assertRaises(
                exception.RequestNotFound, self.api.get_request_result, None, name)
        self.assertEqual({"VCPU": 1}, self.used(self.uuid))
        self.assertEqual(before, self.last_event())
        self.service.database.write(hold.release, "hold")
        for name in ("create_trait", "claim_allocations", "resource_class_rename"):
            getattr(self.api, name)(None, *changes[name], request_id=name)
        self.assertEqual({"VCPU": 3}, self.used(self.uuid))

    def test_a_change_that_would_be_refused_in_any_case_has_no_outcome(self):
        """What a half filled store lacks is no reason for a final answer."""
        self.hold()
        nobody = base.new_uuid()
        for name, arguments in (("release_allocations", (nobody,)), ("delete_provider", (nobody,)),
                                ("set_aggregates", (nobody, [])),
                                ("claim_allocations", (base.claim({nobody: {"VCPU": 1}}),))):
            self.assertRaises(exception.StoreHeld, getattr(self.api, name), None, *arguments)

    def test_a_change_that_was_made_before_is_answered(self):
        made = self.api.create_provider(None, "once", request_id="once")
        self.hold()
        self.assertEqual(made.uuid, self.api.create_provider(
            None, "once", request_id="once").uuid)

    def test_reads_are_answered(self):
        self.hold()
        self.assertEqual("provider", self.api.get_provider(None, self.uuid).name)
        self.assertEqual([self.uuid], self.find({"VCPU": 7}))
        self.assertEqual({"VCPU": 1}, self.api.get_project_usages(None, "project").usages)
        self.api.get_versions(None)


class HeldFacadeTest(http.HTTPTest):

    def setUp(self):
        super().setUp()
        self.uuid = self.make(VCPU={"total": 8})
        self.consumer = base.new_uuid()
        self.api.claim_allocations(None, base.claim({self.uuid: {"VCPU": 1}}, self.consumer))
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        self.api.create_trait(None, "CUSTOM_QUIET")

    def requests(self):
        """Return dict of method and route to address and body."""
        provider = f"/resource_providers/{self.uuid}"
        generation = {"resource_provider_generation": self.api.get_provider(
            None, self.uuid).generation}
        inventory = {"total": 4}
        claim = {"allocations": {self.uuid: {"resources": {"VCPU": 2}}}, "project_id": "p",
                 "user_id": "u", "consumer_generation": None, "consumer_type": "INSTANCE"}
        return {
            ("POST", "/resource_providers"): ("", {"name": "new"}),
            ("PUT", "/resource_providers/{uuid}"): (provider, {"name": "new"}),
            ("DELETE", "/resource_providers/{uuid}"): (provider, None),
            ("PUT", "/resource_providers/{uuid}/inventories"): (
                f"{provider}/inventories", {**generation, "inventories": {"VCPU": inventory}}),
            ("POST", "/resource_providers/{uuid}/inventories"): (
                f"{provider}/inventories", {"resource_class": "DISK_GB", **inventory}),
            ("DELETE", "/resource_providers/{uuid}/inventories"): (
                f"{provider}/inventories", None),
            ("PUT", "/resource_providers/{uuid}/inventories/{resource_class}"): (
                f"{provider}/inventories/VCPU", {**generation, **inventory}),
            ("DELETE", "/resource_providers/{uuid}/inventories/{resource_class}"): (
                f"{provider}/inventories/VCPU", None),
            ("PUT", "/resource_providers/{uuid}/aggregates"): (
                f"{provider}/aggregates", {**generation, "aggregates": [base.new_uuid()]}),
            ("PUT", "/resource_providers/{uuid}/traits"): (
                f"{provider}/traits", {**generation, "traits": ["CUSTOM_QUIET"]}),
            ("DELETE", "/resource_providers/{uuid}/traits"): (f"{provider}/traits", None),
            ("PUT", "/allocations/{consumer_uuid}"): (f"/allocations/{base.new_uuid()}", claim),
            ("DELETE", "/allocations/{consumer_uuid}"): (f"/allocations/{self.consumer}", None),
            ("POST", "/allocations"): ("", {base.new_uuid(): claim}),
            ("POST", "/reshaper"): ("", {"inventories": {self.uuid: {
                **generation, "inventories": {"VCPU": inventory}}}, "allocations": {}}),
            ("POST", "/resource_classes"): ("", {"name": "CUSTOM_SILVER"}),
            ("PUT", "/resource_classes/{name}"): ("/resource_classes/CUSTOM_SILVER", None),
            ("DELETE", "/resource_classes/{name}"): ("/resource_classes/CUSTOM_GOLD", None),
            ("PUT", "/traits/{name}"): ("/traits/CUSTOM_LOUD", None),
            ("DELETE", "/traits/{name}"): ("/traits/CUSTOM_QUIET", None),
        }

    def test_every_change_is_refused(self):
        requests = self.requests()
        self.database.write(lambda tx: hold.set_(tx, _REASON), "hold")
        for (method, path), (address, body) in requests.items():
            answer = self.send(method, address or path, body, version="1.39", X_Roles=(
                "admin,service" if path == "/reshaper" else None))
            error = self.refused(503, answer)
            self.assertEqual(
                ("placement.store.held", "10"),
                (error["exact_code"], answer.headers["retry-after"]), (method, path))
        # Pools are another spelling of the same.
        self.assertEqual({(route.method, route.path) for route in routes.ROUTES
                          if route.method != "GET" and "pool" not in route.path}, set(requests))
        self.assertEqual(200, self.send("GET", "/resource_providers").status_code)
