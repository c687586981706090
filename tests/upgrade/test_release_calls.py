# SPDX-License-Identifier: Apache-2.0
"""Every call that the old release has, between clients and conductors of either release."""

from placement_rpc.db import models
from tests import base, servers
from tests.upgrade.release_case import (
    ReleasesTest,
    claim,
    compute_node,
    inventory,
    name_node,
    request,
)


class CallsTest(ReleasesTest):
    """Every call that the old release has, between clients and conductors of either release."""

    def test_each_is_answered_as_within_the_old_release(self):
        pairs = [(self.old, self.old), (self.old, self.new), (self.new, self.old)]
        stores = [self.store, self.make_store(), self.make_store()]
        urls = [self.url, *(
            self.useFixture(servers.VirtualHost()).url for _ in range(2))]
        conductors = [self.begin(server, url, store) for (_, server), url, store in zip(
            pairs, urls, stores, strict=True)]
        clients = [self.client(client, url) for (client, _), url in zip(pairs, urls, strict=True)]
        calls = [(method, {"request_id": f"call-{number}", **arguments}
                  if method in clients[0].changes else arguments)
                 for number, (method, arguments) in enumerate(self.calls())]
        for conductor, store in zip(conductors, stores, strict=True):
            self.wait_for(conductor, store)
        expected = self.answers(clients[0], calls, stores[0])
        for (client, server), found in zip(pairs[1:], clients[1:], strict=True):
            answers = self.answers(found, calls, stores[clients.index(found)])
            for (method, _), before, now in zip(calls, expected, answers, strict=True):
                self.assertEqual(before, now, f"{method}: {client.name} to {server.name}")
        self.assertEqual(sorted(clients[0].methods), sorted({method for method, _ in calls}))

    def answers(self, client, calls, store):
        """Make calls; return their answers without the values that differ each time."""
        found = []
        for method, arguments in calls:
            if method in ("get_event_positions", "list_events"):
                base.wait_until(lambda: not self.count(
                    models.events, models.events.c.position.is_(None), store=store))
            found.append(_comparable(method, client.ask(method, **arguments)))
        return found

    def calls(self):
        """Yield calls: tuples of method and arguments."""
        node, share, server, other, third = (base.new_uuid() for _ in range(5))
        yield "create_provider", {"name": "node", "provider_uuid": node}
        yield "create_provider", {"name": "node", "provider_uuid": share}
        yield "create_provider", {"name": "share", "provider_uuid": share}
        yield "update_provider", {"provider_uuid": share, "name": "disk", "generation": 0}
        yield "set_aggregates", {"provider_uuid": node, "aggregates": [third]}
        yield "get_aggregates", {"provider_uuid": node}
        yield "set_inventory", {"provider_uuid": node, "inventories": [
            inventory("VCPU", 8, max_unit=4, allocation_ratio=2.0),
            inventory("MEMORY_MB", 4096, reserved=512)]}
        yield "set_inventory", {"provider_uuid": node, "inventories": [], "generation": 0}
        yield "add_inventory", {"provider_uuid": share, "inventory": inventory("DISK_GB", 100)}
        yield "add_inventory", {"provider_uuid": share, "inventory": inventory("VCPU", 1)}
        yield "update_inventory", {"provider_uuid": share, "inventory": inventory("DISK_GB", 9)}
        yield "delete_inventory", {"provider_uuid": share, "resource_class": "VCPU"}
        yield "get_inventory", {"provider_uuid": node}
        yield "claim_allocations", {"request_id": "one", "claim": claim(
            {node: {"VCPU": 2, "MEMORY_MB": 1024}, share: {"DISK_GB": 5}}, server)}
        yield "claim_allocations", {"claim": claim({node: {"VCPU": 5}}, other)}
        yield "claim_allocations", {"claim": claim(
            {node: {"VCPU": 1}}, other, consumer_generation=7)}
        yield "claim_batch", {"claims": [claim({node: {"VCPU": 1}}, other), claim(
            {node: {"VCPU": 99}}, third)]}
        yield "move_allocations", {"source_uuid": other, "target_uuid": third}
        yield "claim_by_request", {
            "wanted": request({"VCPU": 1}, member_of=[[third]]), "claim": claim(None, other)}
        yield "release_allocations", {"consumer_uuid": other, "consumer_generation": 1}
        yield "release_allocations", {"consumer_uuid": other}
        yield "get_request_result", {"request_id": "one"}
        yield "get_request_result", {"request_id": "unknown"}
        yield "get_provider", {"provider_uuid": node}
        yield "get_provider", {"provider_uuid": other}
        yield "list_providers", {}
        yield "list_providers", {"member_of": [[third]]}
        yield "get_allocations", {"consumer_uuid": server}
        yield "get_provider_allocations", {"provider_uuid": node}
        yield "get_usages", {"provider_uuid": node}
        yield "get_by_request", {"wanted": request({"VCPU": 2})}
        yield "get_by_request", {"wanted": request({"DISK_GB": 1}, limit=1)}
        yield "explain", {"wanted": request({"VCPU": 9999})}
        yield "resource_class_list", {}
        yield "resource_class_get", {"name": "VCPU"}
        yield "resource_class_create", {"name": "CUSTOM_GOLD"}
        yield "resource_class_create", {"name": "CUSTOM_GOLD"}
        yield "resource_class_rename", {"name": "CUSTOM_GOLD", "new_name": "CUSTOM_SILVER"}
        yield "resource_class_delete", {"name": "CUSTOM_SILVER"}
        yield from self.node_calls(third)
        yield "delete_provider", {"provider_uuid": share}
        yield "ping", {}
        yield "get_versions", {}
        yield "verify_index", {}
        yield "get_event_positions", {}
        yield "list_events", {}

    def node_calls(self, consumer):
        created, synchronised = compute_node(), compute_node()
        name_node(synchronised, base.new_uuid())
        data = created["!ComputeNode"]["nova_object.data"]
        yield "object_action", {"objinst": created, "objmethod": "create", "args": [],
                                "kwargs": {}}
        yield "object_class_action_versions", {
            "objname": "ComputeNode", "objmethod": "get_by_host_and_nodename",
            "object_versions": {"ComputeNode": "1.14", "PciDevicePoolList": "1.1",
                                "PciDevicePool": "1.1"},
            "args": [data["host"], data["hypervisor_hostname"]], "kwargs": {}}
        yield "object_backport_versions", {
            "objinst": created, "object_versions": {"ComputeNode": "1.14"}}
        for _ in range(2):
            yield "sync_compute_node", {
                "node": synchronised, "snapshot_at": 1.0e9, "allocations": {consumer: {
                    "project_id": "project", "user_id": "user", "resources": {"VCPU": 2}}}}


# What differs each time.
# The words of an error may change from release to release; its code and its values may not.
_MASKED = frozenset(("created_at", "updated_at", "event_id", "occurred_at", "incident", "text",
                     "message"))
_KEYS_ONLY = frozenset(("ping", "verify_index"))


def _comparable(method, answer):
    """Return an answer without the values that differ each time."""
    result = answer.get("result")
    if method in _KEYS_ONLY:
        return sorted(result)
    if method == "get_versions":
        return [sorted(each) for each in result["objects"]]
    if method == "list_events":
        return [_masked(event) for event in result["events"]]
    return _masked(answer)


def _masked(value):
    if isinstance(value, list):
        return [_masked(each) for each in value]
    if isinstance(value, dict):
        return {name: None if name in _MASKED else _masked(each)
                for name, each in value.items()}
    return value
