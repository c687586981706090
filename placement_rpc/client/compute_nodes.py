# SPDX-License-Identifier: Apache-2.0
"""The client's calls about compute nodes, and nova's calls to its own objects."""

from collections.abc import Sequence
from typing import Any

from oslo_context.context import RequestContext

from placement_rpc.client.base import any_list
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.objects.sync_result import SyncResult
from placement_rpc.rpc.client import Client


class ComputeNodeCalls(Client):

    def sync_compute_node(self, context: RequestContext | None, node: ComputeNode,
                          allocations: dict[str, dict[str, Any]], snapshot_at: float,
                          shares_disk: bool | None = None,
                          devices_in_use: dict[str, int] | None = None, heal: bool = False,
                          request_id: str | None = None, timeout: float | None = None,
                          allow_below_use: bool | None = None) -> SyncResult:
        """Report one periodic cycle of a resource tracker.

        A new node is created, and what changed of a known one is stored; a cycle without changes
        writes nothing. The result compares the consumers of the node in the store with those that
        the tracker reports. A consumer that changed after ``snapshot_at`` is not changed.

        :param allocations: dict of consumer uuid to dict of ``project_id``, ``user_id`` and
            ``resources``, a dict of class to amount. DISK_GB of a node that shares a disk counts
            for the provider that has the disk
        :param snapshot_at: time of the tracker's snapshot, in seconds since the epoch
        :param shares_disk: whether the node's disk is another provider's; None if not known
        :param devices_in_use: dict of class of PCI devices to how many are claimed or allocated,
            which the node's pools leave out; None if not known
        :param heal: whether to change stored allocations to those that the tracker reports
        :param allow_below_use: whether a capacity may fall below what is used, as of
            :meth:`PlacementAPI.set_inventory`
        :raises ComputeNodeExists: if the uuid belongs to another node
        :raises NameInUse: if another provider has the name
        :raises CapacityConflict: if a capacity would fall below what is used, and may not
        :raises UpgradeInProgress: the same, while a service older than contract 1.3 is live
        :raises InventoryInUse: if an inventory that has allocations would be removed
        :raises ServiceTooOld: if a service is older than the call
        """
        return self._change(
            context, "sync_compute_node", request_id, timeout, node=node,
            allocations=allocations, snapshot_at=snapshot_at, shares_disk=shares_disk,
            devices_in_use=devices_in_use, heal=heal, allow_below_use=allow_below_use)

    def object_class_action_versions(self, context: RequestContext | None, objname: str,
                                     objmethod: str, object_versions: dict[str, str],
                                     args: Sequence, kwargs: dict[str, Any],
                                     timeout: float | None = None) -> Any:
        """Call a remotable method of a class of nova's objects.

        With this method and the next two, a PlacementAPI can serve as
        :attr:`placement_rpc.objects.nova.base.NovaObject.indirection_api` on a machine without a
        database.

        :param object_versions: dict of object name to the version of the answer
        :returns: what the method returned
        """
        return self._call(
            context, "object_class_action_versions", timeout, objname=objname,
            objmethod=objmethod, object_versions=object_versions, args=any_list("args", args),
            kwargs=kwargs)

    def object_action(self, context: RequestContext | None, objinst: Any, objmethod: str,
                      args: Sequence, kwargs: dict[str, Any], request_id: str | None = None,
                      timeout: float | None = None) -> tuple[dict[str, Any], Any]:
        """Call a remotable method of an object.

        :returns: dict of the fields that the method changed, and what it returned
        """
        updates, result = self._change(
            context, "object_action", request_id, timeout, objinst=objinst,
            objmethod=objmethod, args=any_list("args", args), kwargs=kwargs)
        return updates, result

    def object_backport_versions(self, context: RequestContext | None, objinst: Any,
                                 object_versions: dict[str, str],
                                 timeout: float | None = None) -> dict[str, Any]:
        """Return an object that is newer than its receiver in the versions of the receiver.

        :param objinst: a versioned object, or the primitive of one
        :returns: the primitive of the object at these versions
        """
        return self._call(context, "object_backport_versions", timeout, objinst=objinst,
                          object_versions=object_versions)
