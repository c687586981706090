# SPDX-License-Identifier: Apache-2.0
"""The client's end of the calls about compute nodes: a part of PlacementAPI."""

from placement_rpc.calls import Calls


class NodeCalls(Calls):
    """Calls about compute nodes; :class:`placement_rpc.api.PlacementAPI` says what all take."""

    def sync_compute_node(self, context, node, allocations, snapshot_at, shares_disk=None,
                          devices_in_use=None, heal=False, request_id=None, timeout=None):
        """One periodic cycle of a resource tracker.

        The node is created where it is new, and what changed of it is written; a cycle in which
        nothing changed writes nothing. What the store and the tracker say of who uses the node
        is compared; a consumer that changed after the tracker looked is left alone.

        :param node: :class:`placement_rpc.objects.compute_node.ComputeNode`
        :param allocations: dict of consumer uuid to dict of ``project_id``, ``user_id`` and
            ``resources``, a dict of class to amount. DISK_GB of a node that shares a disk is
            taken to be of the provider that has it
        :param snapshot_at: float, seconds since the epoch, when the tracker looked
        :param shares_disk: bool, whether the node's disk is another provider's; None where that
            is not said
        :param devices_in_use: dict of class of PCI devices to how many are claimed or allocated,
            which the node's pools leave out; None where that is not said
        :param heal: bool, whether the store is to have what the tracker says
        :returns: :class:`placement_rpc.objects.node_sync.SyncResult`
        :raises ComputeNodeExists: :raises NameInUse: :raises CapacityConflict:
        :raises InventoryInUse: :raises ServiceTooOld:
        """
        return self._change(
            context, "sync_compute_node", request_id, timeout, node=node,
            allocations=allocations, snapshot_at=snapshot_at, shares_disk=shares_disk,
            devices_in_use=devices_in_use, heal=heal)

    def object_class_action_versions(self, context, objname, objmethod, object_versions, args,
                                     kwargs, timeout=None):
        """Call a remotable method of a class of nova's objects.

        With this and the two that follow a PlacementAPI is what
        :attr:`placement_rpc.objects.nova.base.NovaObject.indirection_api` can be set to on a
        machine without a database.

        :param object_versions: dict of object name to the version in which to answer
        :returns: what the method returned
        """
        return self._call(
            context, "object_class_action_versions", timeout, objname=objname,
            objmethod=objmethod, object_versions=object_versions, args=list(args),
            kwargs=kwargs)

    def object_action(self, context, objinst, objmethod, args, kwargs, request_id=None,
                      timeout=None):
        """Call a remotable method of an object.

        :returns: tuple of dict of the fields that are others now, and what the method returned
        """
        updates, result = self._change(
            context, "object_action", request_id, timeout, objinst=objinst,
            objmethod=objmethod, args=list(args), kwargs=kwargs)
        return updates, result

    def object_backport_versions(self, context, objinst, object_versions, timeout=None):
        """An object that is newer than its receiver, as the receiver knows it.

        :param objinst: a versioned object, or what travels of one
        :returns: the object at these versions, as it travels
        """
        return self._call(context, "object_backport_versions", timeout, objinst=objinst,
                          object_versions=object_versions)
