# SPDX-License-Identifier: Apache-2.0
"""nova's ComputeNode, of every release since Liberty (compute-node-inventory)."""

import logging
import typing
import uuid

from oslo_versionedobjects import base as ovo
from oslo_versionedobjects import fields

from placement_rpc import exception, json_text
from placement_rpc.objects import fields as own_fields
from placement_rpc.objects.nova import base, hv_spec, numa, pci_device_pool

LOG = logging.getLogger(__name__)
__all__ = ["ComputeNode", "ComputeNodeList", "hv_spec", "numa", "pci_device_pool"]


@base.NovaObjectRegistry.register
class ComputeNode(base.NovaObject):
    """A machine that runs servers, as its resource tracker reports it.

    ``local_gb`` and ``free_disk_gb`` are in GB, ``memory_mb`` and ``free_ram_mb`` in MB. A ratio
    of None or 0.0 stands for the deployment's default.
    """

    # Version 1.9: Added pci_device_pools
    # Version 1.10: get_first_node_by_host_for_old_compat
    # Version 1.11: PciDevicePoolList 1.1
    # Version 1.12: HVSpec 1.1
    # Version 1.13: HVSpec 1.2
    # Version 1.14: Added cpu_allocation_ratio and ram_allocation_ratio
    # Version 1.15: Added uuid
    # Version 1.16: Added disk_allocation_ratio
    # Version 1.17: Added mapped
    # Version 1.18: get_by_uuid
    # Version 1.19: get_by_nodename
    VERSION = "1.19"

    fields = {
        "id": fields.IntegerField(read_only=True),
        "uuid": own_fields.field(own_fields.Uuid(), read_only=True),
        "service_id": fields.IntegerField(nullable=True),
        "host": fields.StringField(nullable=True),
        "vcpus": fields.IntegerField(),
        "memory_mb": fields.IntegerField(),
        "local_gb": fields.IntegerField(),
        "vcpus_used": fields.IntegerField(),
        "memory_mb_used": fields.IntegerField(),
        "local_gb_used": fields.IntegerField(),
        "hypervisor_type": fields.StringField(),
        "hypervisor_version": fields.IntegerField(),
        "hypervisor_hostname": fields.StringField(nullable=True),
        "free_ram_mb": fields.IntegerField(nullable=True),
        "free_disk_gb": fields.IntegerField(nullable=True),
        "current_workload": fields.IntegerField(nullable=True),
        "running_vms": fields.IntegerField(nullable=True),
        "cpu_info": fields.StringField(nullable=True),
        "disk_available_least": fields.IntegerField(nullable=True),
        "metrics": fields.StringField(nullable=True),
        "stats": fields.DictOfNullableStringsField(nullable=True),
        "host_ip": fields.IPAddressField(nullable=True),
        "numa_topology": fields.StringField(nullable=True),
        "supported_hv_specs": fields.ListOfObjectsField("HVSpec"),
        "pci_device_pools": fields.ObjectField("PciDevicePoolList", nullable=True),
        "cpu_allocation_ratio": fields.FloatField(nullable=True),
        "ram_allocation_ratio": fields.FloatField(nullable=True),
        "disk_allocation_ratio": fields.FloatField(nullable=True),
        "mapped": fields.IntegerField(),
    }

    added = {"cpu_allocation_ratio": "1.14", "ram_allocation_ratio": "1.14", "uuid": "1.15",
             "disk_allocation_ratio": "1.16", "mapped": "1.17"}

    @property
    def label(self) -> str:
        """str, the name of the node in messages for people"""
        return self.value("hypervisor_hostname") or self.value("host") or (
            self.value("uuid") or f"number {self.value('id')}")

    @property
    def topology(self) -> numa.NUMATopology | None:
        """The NUMA topology; None if there is none

        :raises InvalidInput: if the stored text is malformed
        """
        return numa.NUMATopology.of_text(self.value("numa_topology"))

    @classmethod
    def of_row(cls, values: dict[str, typing.Any]) -> typing.Self:
        """Return a node from a row of nova's ``compute_nodes``, or from a JSON object.

        ``pci_stats``, ``stats`` and ``supported_instances`` are columns of JSON.

        :param values: dict of column to value; columns that the object does not have are ignored
        :raises InvalidInput: if a value is not valid; it names the node
        """
        if "nova_object.data" in values:
            return cls.read(values)
        known = {name: value for name, value in values.items()
                 if name in cls.fields and value is not None}
        label = values.get("hypervisor_hostname") or values.get("host") or values.get("id")
        try:
            stats = _json(values.get("stats"))
            known["stats"] = {} if stats is None else stats
            specifications = _json(values.get("supported_instances"))
            known["supported_hv_specs"] = [
                hv_spec.HVSpec(arch=arch, hv_type=hv_type, vm_mode=vm_mode)
                for arch, hv_type, vm_mode in (
                    () if specifications is None else specifications)]
            known["pci_device_pools"] = pci_device_pool.PciDevicePoolList.of_stats(
                _json(values.get("pci_stats")))
            return cls(**known)
        except exception.PlacementException as error:
            raise exception.InvalidInput(
                what=f"compute node {label}", reason=error.text) from None
        except base.BROKEN as error:
            raise exception.InvalidInput(
                what=f"compute node {label}",
                reason=(str(error) or type(error).__name__)[:200]) from None

    @classmethod
    def of_columns(cls, values: dict[str, typing.Any]) -> typing.Self:
        """Return a node from its stored columns, with all nullable fields set.

        :param values: dict of column to value
        :raises InvalidInput: if a value is not valid; it names the node
        """
        node = cls.of_row(values)
        for name, field in cls.fields.items():
            if field.nullable and not node.obj_attr_is_set(name):
                setattr(node, name, None)
        if not node.obj_attr_is_set("mapped"):
            node.mapped = 0
        node.forget_changes()
        return node

    # -- from the store -----------------------------------------------------------------

    @classmethod
    @base.remotable
    def get_by_id(cls, context, compute_id):
        """Return the node with an id.

        :raises ComputeNodeNotFound: if there is none
        """
        own_fields.WholeNumber(maximum=2 ** 63 - 1).coerce(None, "compute_id", compute_id)
        return context.nodes.one(context, f"number {compute_id}", ids=[compute_id])

    @classmethod
    @base.remotable
    def get_by_uuid(cls, context, compute_uuid):
        """Return the node with a uuid.

        :raises ComputeNodeNotFound: if there is none
        """
        compute_uuid = own_fields.Uuid().coerce(None, "compute_uuid", compute_uuid)
        return context.nodes.one(context, compute_uuid, uuids=[compute_uuid])

    @classmethod
    @base.remotable
    def get_by_host_and_nodename(cls, context, host, nodename):
        """Return the node with a host and a hypervisor_hostname.

        :raises ComputeNodeNotFound: if there is none
        """
        for name, value in (("host", host), ("nodename", nodename)):
            own_fields.Text().coerce(None, name, value)
        return context.nodes.one(context, nodename, host=host, nodename=nodename)

    @classmethod
    @base.remotable
    def get_by_nodename(cls, context, hypervisor_hostname):
        """Return the first node with a hypervisor_hostname.

        :raises ComputeNodeNotFound: if there is none
        """
        own_fields.Text().coerce(None, "hypervisor_hostname", hypervisor_hostname)
        return context.nodes.one(context, hypervisor_hostname, limit=1,
                                 hypervisor_hostname=hypervisor_hostname)

    @classmethod
    @base.remotable
    def get_first_node_by_host_for_old_compat(cls, context, host, use_slave=False):
        """Return the first node of a host.

        :raises ComputeNodeNotFound: if there is none
        """
        own_fields.Text().coerce(None, "host", host)
        return context.nodes.one(context, host, limit=1, host=host)

    # -- to the store -------------------------------------------------------------------

    @base.remotable
    def create(self):
        """Store a new node and make it a provider.

        :raises ComputeNodeExists: if it already has an id
        :raises NameInUse: if another provider has the name
        :raises InvalidInput: if a value cannot be stored
        """
        if self.value("id"):
            raise exception.ComputeNodeExists(node=self.label)
        if not self.value("uuid"):
            self.uuid = str(uuid.uuid4())
        self._refresh(self._context.nodes.create(self._context, self))

    @base.remotable
    def save(self):
        """Store the changes; once the gate is open, capacity is stored in inventories.

        :raises ComputeNodeNotFound: if it is not stored
        :raises CapacityConflict: if an inventory would shrink below its allocations
        :raises InventoryInUse: if an inventory in use would be removed
        :raises NameInUse: if another provider has the name
        :raises InvalidInput: if a value cannot be stored
        """
        self._refresh(self._context.nodes.save(self._context, self))

    @base.remotable
    def destroy(self):
        """Delete the node and its provider.

        :raises ComputeNodeNotFound: if it is not stored
        :raises ProviderInUse: if the provider has allocations
        """
        self._context.nodes.destroy(self._context, self)

    def _refresh(self, values):
        """Set the fields to the stored values.

        :param values: dict of column to value
        """
        stored = self.of_columns(values)
        for name, field in self.fields.items():
            if stored.obj_attr_is_set(name) and not (
                    field.read_only and self.obj_attr_is_set(name)):
                setattr(self, name, getattr(stored, name))
        self.forget_changes()


def _json(value):
    """Return the value of a JSON column, in which an empty text is none."""
    if value == "":
        return None
    return json_text.loads(value) if isinstance(value, str) else value


@base.NovaObjectRegistry.register
class ComputeNodeList(ovo.ObjectListBase, base.NovaObject):
    """A list of compute nodes."""

    # Version 1.17: get_all_by_not_mapped
    VERSION = "1.17"

    fields = {"objects": fields.ListOfObjectsField("ComputeNode")}

    @classmethod
    def _of(cls, context, **which):
        return cls(context, objects=context.nodes.several(context, **which))

    @classmethod
    @base.remotable
    def get_all(cls, context):
        """Return every node."""
        return cls._of(context)

    @classmethod
    @base.remotable
    def get_all_by_host(cls, context, host):
        """Return the nodes of a host."""
        own_fields.Text().coerce(None, "host", host)
        return cls._of(context, host=host)

    @classmethod
    @base.remotable
    def get_by_hypervisor(cls, context, hypervisor_match):
        """Return the nodes whose hypervisor_hostname contains a text."""
        own_fields.Text().coerce(None, "hypervisor_match", hypervisor_match)
        return cls._of(context, match=hypervisor_match)

    @classmethod
    @base.remotable
    def get_all_by_not_mapped(cls, context, mapped_less_than):
        """Return the nodes that are mapped to fewer cells than this."""
        own_fields.WholeNumber().coerce(None, "mapped_less_than", mapped_less_than)
        return cls._of(context, mapped_below=mapped_less_than)

    @classmethod
    @base.remotable
    def get_all_by_uuids(cls, context, compute_uuids):
        """Return the existing nodes of these uuids."""
        compute_uuids = own_fields.Several(own_fields.Uuid()).coerce(
            None, "compute_uuids", compute_uuids)
        return cls._of(context, uuids=compute_uuids)

    @classmethod
    @base.remotable
    def get_by_pagination(cls, context, limit=None, marker=None):
        """Return nodes in the order of their ids.

        :param limit: int, the maximum number of nodes
        :param marker: int, the id after which to begin
        """
        for name, value in (("limit", limit), ("marker", marker)):
            if value is not None:
                own_fields.WholeNumber(maximum=2 ** 63 - 1).coerce(None, name, value)
        return cls._of(context, after=marker or 0, limit=limit)
