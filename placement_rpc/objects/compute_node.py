# SPDX-License-Identifier: Apache-2.0
"""nova's ComputeNode, of every release since Liberty (compute-node-inventory)."""

import json

from oslo_versionedobjects import base as ovo
from oslo_versionedobjects import fields

from placement_rpc import exception
from placement_rpc.objects.nova import base, hv_spec, numa, pci_device_pool

__all__ = ["ComputeNode", "ComputeNodeList", "hv_spec", "numa", "pci_device_pool"]


@base.NovaObjectRegistry.register
class ComputeNode(base.NovaObject):
    """A machine that runs servers, as its resource tracker tells of it.

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
        "uuid": fields.UUIDField(read_only=True),
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
    def label(self):
        """str, what a person knows it by"""
        return self.value("hypervisor_hostname") or self.value("host") or (
            self.value("uuid") or f"number {self.value('id')}")

    @property
    def topology(self):
        """:class:`placement_rpc.objects.nova.numa.NUMATopology`; None where there is none

        :raises InvalidInput:
        """
        return numa.NUMATopology.of_text(self.value("numa_topology"))

    @classmethod
    def of_row(cls, values):
        """A node as a row of nova's ``compute_nodes`` holds it, or a line of JSON.

        ``pci_stats``, ``stats`` and ``supported_instances`` are columns of JSON.

        :param values: dict of column to value; columns that the object does not have are ignored
        :raises InvalidInput: that names the node
        """
        if "nova_object.data" in values:
            return cls.read(values)
        known = {name: value for name, value in values.items()
                 if name in cls.fields and value is not None}
        label = values.get("hypervisor_hostname") or values.get("host") or values.get("id")
        try:
            known["stats"] = _json(values.get("stats")) or {}
            known["supported_hv_specs"] = [
                hv_spec.HVSpec(arch=arch, hv_type=hv_type, vm_mode=vm_mode)
                for arch, hv_type, vm_mode in _json(values.get("supported_instances")) or ()]
            known["pci_device_pools"] = pci_device_pool.PciDevicePoolList.of_stats(
                _json(values.get("pci_stats")))
            return cls(**known)
        except exception.PlacementException as error:
            raise exception.InvalidInput(
                what=f"compute node {label}", reason=error.text) from None
        except (ValueError, TypeError) as error:
            raise exception.InvalidInput(
                what=f"compute node {label}", reason=str(error)[:200]) from None


def _json(value):
    return json.loads(value) if isinstance(value, str) and value else value or None


@base.NovaObjectRegistry.register
class ComputeNodeList(ovo.ObjectListBase, base.NovaObject):
    """Several of them."""

    # Version 1.17: get_all_by_not_mapped
    VERSION = "1.17"

    fields = {"objects": fields.ListOfObjectsField("ComputeNode")}
