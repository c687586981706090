# SPDX-License-Identifier: Apache-2.0
"""The server's end of the calls about compute nodes, and nova's calls to its own objects."""

import functools
from typing import Any

from placement_rpc import exception
from placement_rpc.accounting import (
    idempotency,
)
from placement_rpc.accounting.idempotency import Request
from placement_rpc.context import RequestContext, versions_of
from placement_rpc.endpoints.base import ManagerBase
from placement_rpc.nova import remotable, sync
from placement_rpc.nova.changes import TrackerReport
from placement_rpc.nova.compute_node import ComputeNodeStore
from placement_rpc.nova.inventory import checked_devices
from placement_rpc.nova.report import allocations_of, reported_devices
from placement_rpc.nova.unchanged import UnchangedCycles
from placement_rpc.objects.base import instance_of
from placement_rpc.objects.fields import RequestId
from placement_rpc.objects.nova.base import NovaObject
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.rpc.endpoint import as_bool, exposed, require_fields
from placement_rpc.versions import releases


class ComputeNodeEndpoint(ManagerBase):

    @exposed
    def sync_compute_node(self, context: RequestContext, node: ComputeNode, allocations: dict,
                          snapshot_at: float, request_id: str, shares_disk: bool | None = None,
                          devices_in_use: dict | None = None, heal: bool = False,
                          allow_below_use: bool | None = None) -> sync.PendingCycle:
        require_fields(instance_of(ComputeNode, "node", node), "host", "hypervisor_hostname")
        allocations = allocations_of(allocations)
        report = TrackerReport(
            as_bool("shares_disk", shares_disk),
            checked_devices(devices_in_use) if devices_in_use is not None else
            reported_devices(allocations), frozenset(allocations))
        cycle = sync.Cycle(
            RequestId().coerce(None, "request_id", request_id), node, allocations, snapshot_at,
            report, as_bool("heal", heal), self.below_use(context, allow_below_use))
        self._open_nodes(context)
        return sync.PendingCycle(context, self.group_commit, cycle, self._unchanged_cycles)

    def recall(self, pending: list) -> list:
        return self._unchanged_cycles.find(self.database, pending)

    @functools.cached_property
    def _unchanged_cycles(self):
        return UnchangedCycles()

    def _open_nodes(self, context):
        context.nodes = ComputeNodeStore(self.gate.settings)

    @exposed
    def object_class_action_versions(self, context: RequestContext, objname: str, objmethod: str,
                                     object_versions: dict[str, str], args: list,
                                     kwargs: dict) -> Any:
        context.receiver = releases.lower(context.receiver, versions_of(object_versions))
        self._open_nodes(context)
        return remotable.class_action(context, objname, objmethod, args, kwargs)

    @exposed
    def object_action(self, context: RequestContext, objinst: NovaObject, objmethod: str,
                      args: list, kwargs: dict, request_id: str | None = None) -> list:
        instance_of(NovaObject, "objinst", objinst)
        self._open_nodes(context)
        if request_id is None:
            # nova's own callers send no request id.
            return list(remotable.action(context, objinst, objmethod, args, kwargs))
        asked = Request.of(request_id, "object_action", {
            "object": objinst, "method": objmethod, "args": args, "kwargs": kwargs})
        return idempotency.run_once(context, asked, lambda tx, outbox: list(remotable.action_in(
            tx, outbox, context, objinst.obj_clone(), objmethod, args, kwargs)))

    @exposed
    def object_backport_versions(self, context: RequestContext, objinst: Any,
                                 object_versions: dict[str, str]) -> dict:
        if not hasattr(objinst, "obj_to_primitive"):
            raise exception.InvalidInput(what="objinst", reason="it is not an object")
        return objinst.obj_to_primitive(version_manifest=versions_of(object_versions))
