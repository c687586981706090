# SPDX-License-Identifier: Apache-2.0
"""The server's end of the calls about compute nodes: a part of the manager."""

from placement_rpc import exception
from placement_rpc.context import versions_of
from placement_rpc.exposure import an, as_truth, exposed, having
from placement_rpc.objects import node_sync, outcome, remote
from placement_rpc.objects.compute_node import ComputeNode
from placement_rpc.objects.node_changes import Said
from placement_rpc.objects.node_inventory import in_use
from placement_rpc.objects.nova.base import NovaObject
from placement_rpc.objects.outcome import Request
from placement_rpc.upgrade import manifests


class NodeEndpoint:
    """Calls about compute nodes; :class:`placement_rpc.manager.Manager` has what they work on."""

    @exposed
    def sync_compute_node(self, context, node, allocations, snapshot_at, request_id,
                          shares_disk=None, devices_in_use=None, heal=False):
        having(an(ComputeNode, "node", node), "host", "hypervisor_hostname")
        allocations = node_sync.allocations_of(allocations)
        said = Said(as_truth("shares_disk", shares_disk),
                    in_use(devices_in_use) if devices_in_use is not None else
                    node_sync.devices_of(allocations))
        asked = Request.of(request_id, "sync_compute_node", {
            "node": node, "allocations": allocations, "at": snapshot_at, "said": [
                said.shares_disk, said.devices_in_use], "heal": as_truth("heal", heal)})
        context.nodes = self.gate.settings
        return node_sync.Sync(context, self.group_commit, asked, node, allocations, snapshot_at,
                              said, bool(heal)).run()

    @exposed
    def object_class_action_versions(self, context, objname, objmethod, object_versions, args,
                                     kwargs):
        context.receiver = manifests.lower(context.receiver, versions_of(object_versions))
        context.nodes = self.gate.settings
        return remote.class_action(context, objname, objmethod, args, kwargs)

    @exposed
    def object_action(self, context, objinst, objmethod, args, kwargs, request_id=None):
        an(NovaObject, "objinst", objinst)
        context.nodes = self.gate.settings
        if request_id is None:
            # nova's own callers make none.
            return list(remote.action(context, objinst, objmethod, args, kwargs))
        asked = Request.of(request_id, "object_action", {
            "object": objinst, "method": objmethod, "args": args, "kwargs": kwargs})

        def act(tx, journal):
            context.transaction = tx, journal
            try:
                return list(remote.action(
                    context, objinst.obj_clone(), objmethod, args, kwargs))
            finally:
                context.transaction = None

        return outcome.once(context, asked, act)

    @exposed
    def object_backport_versions(self, context, objinst, object_versions):
        if not hasattr(objinst, "obj_to_primitive"):
            raise exception.InvalidInput(what="objinst", reason="it is no object")
        return objinst.obj_to_primitive(version_manifest=versions_of(object_versions))
