# SPDX-License-Identifier: Apache-2.0
"""Conversion of compute nodes to the columns of their table, and back."""

import dataclasses
import json

from placement_rpc import exception
from placement_rpc.db import api as db
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.db.queries import inventories as inventory_queries
from placement_rpc.db.queries import providers
from placement_rpc.objects import fields

# Fields that are stored as JSON, and their columns.
_JSON = {"stats": "stats", "supported_hv_specs": "supported_instances",
         "pci_device_pools": "pci_stats"}
_LONGEST = {"host": 255, "hypervisor_hostname": 200, "hypervisor_type": 255}
_MAX = 2 ** 63 - 1
_MAX_MAPPED = 2 ** 31 - 1


def columns_of(node, names=None):
    """Return the columns of a node.

    :param node: :class:`placement_rpc.objects.nova.compute_node.ComputeNode`
    :param names: collection of the object's fields; None for all that are set
    :returns: dict of column to value
    :raises InvalidInput: if a column cannot store a value; it names the node
    """
    values = {}
    for name in node.fields if names is None else names:
        if not node.obj_attr_is_set(name) or name == "id":
            continue
        column = _JSON.get(name, name)
        try:
            value = _plain(name, getattr(node, name))
        except NotImplementedError as error:
            # Of an object in the field, for one of its own fields that is not set.
            raise exception.InvalidInput(
                what=f"compute node {node.label}", reason=f"{name}: {error}") from None
        value = _check(node, name, value)
        values[column] = value
    return values


def check_names(node):
    """Check that a node can be looked up by its uuid and its names.

    :raises InvalidInput: if one of them cannot be stored
    """
    columns_of(node, ("uuid", "host", "hypervisor_hostname"))


def _plain(name, value):
    """Return the value of a field as a number, a text or None."""
    if value is None:
        return None
    if name == "stats":
        return json.dumps(value, sort_keys=True)
    if name == "supported_hv_specs":
        return json.dumps([[each.arch, each.hv_type, each.vm_mode] for each in value])
    if name == "pci_device_pools":
        value = value.obj_clone()
        value.forget_changes()
        return json.dumps(value.obj_to_primitive(), sort_keys=True)
    return value if isinstance(value, (int, float, str)) else str(value)


def _check(node, name, value):
    reason, most = None, _MAX_MAPPED if name == "mapped" else _MAX
    if isinstance(value, (int, float)) and not -most <= value <= most:
        reason = "it is out of range, or not a number"
    elif isinstance(value, str) and len(value) > _LONGEST.get(name, _MAX):
        reason = f"it is longer than {_LONGEST[name]} characters"
    elif isinstance(value, str) and not _can_be_kept(value):
        reason = "it has a character that databases cannot store (NUL or a lone surrogate)"
    if reason:
        raise exception.InvalidInput(
            what=f"compute node {node.label}", reason=f"{name}: {reason}")
    return value


def _can_be_kept(text):
    try:
        return "\x00" not in text and bool(text.encode() or True)
    except UnicodeEncodeError:
        return False


def provider_name(node):
    """Return the name for a node's provider, its hypervisor_hostname.

    :raises InvalidInput: if that is not a valid name
    """
    return fields.Name().coerce(
        None, f"compute node {node.label}: hypervisor_hostname",
        node.value("hypervisor_hostname"))


def derived(rows, shared=None):
    """Return the capacity columns of a node, computed from its inventories.

    The used amounts include reserved ones, as a resource tracker counts.

    :param rows: dict of class name to row of total, reserved, allocation_ratio, used
    :param shared: row of total, allocation_ratio, free of the disk that it shares; None for none
    :returns: dict of capacity column to value
    """
    values = {}
    for name, total, ratio, used, free in (
            ("VCPU", "vcpus", "cpu_allocation_ratio", "vcpus_used", None),
            ("MEMORY_MB", "memory_mb", "ram_allocation_ratio", "memory_mb_used", "free_ram_mb"),
            ("DISK_GB", "local_gb", "disk_allocation_ratio", "local_gb_used", "free_disk_gb")):
        row = rows.get(name)
        has, ratio_is, taken = (row.total, row.allocation_ratio, row.reserved + row.used) if (
            row) else (0, None, 0)
        if row is None and shared is not None and name == "DISK_GB":
            has, ratio_is = shared.total, shared.allocation_ratio
            taken = shared.total - max(0, shared.free)
        values |= {total: has, ratio: ratio_is, used: taken}
        if free:
            values[free] = has - taken
    return values


def read(tx, rows):
    """Return all columns of nodes, with capacities from their columns or from inventories.

    All inventories are read by one query.

    :param rows: list of rows of :data:`placement_rpc.db.queries.compute_nodes.COLUMNS`
    :returns: list of dicts of column to value, in the same order; nodes that have been deleted
        since are left out
    """
    migrated = [row.uuid for row in rows if row.inventory_migrated_at is not None]
    found = {uuid: {} for uuid in migrated}
    for row in queries.inventories(tx, migrated):
        found[row.provider_uuid][row.resource_class] = row
    shared = _reported_disks(queries.sharing(
        tx, [uuid for uuid, rows in found.items() if "DISK_GB" not in rows]))
    own = queries.capacities(tx, [row.id for row in rows if row.inventory_migrated_at is None])
    return [{
        **row._mapping,
        **(derived(found[row.uuid], shared.get(row.uuid)) if row.inventory_migrated_at is not None
           else {name: getattr(own[row.id], name) for name in queries.CAPACITY})}
        for row in rows if row.inventory_migrated_at is not None or row.id in own]


def _reported_disks(shared):
    """Return the shared disk whose capacity each node reports as its own.

    Of several disks it is the first by uuid, so that what a node reports does not change from one
    disk to another as they fill.

    :param shared: list of rows of the disks that nodes share, in the order of uuids
    :returns: dict of a node's uuid to the row of the disk
    """
    return {row.node_uuid: row for row in reversed(shared)}


@dataclasses.dataclass(frozen=True, slots=True)
class StoredNode:
    """A node as it is stored.

    :param row: row of the node
    :param values: dict of column to value, with capacities from wherever they are stored
    :param provider: row of its provider; None if it has none
    :param inventories: list of rows of the provider's inventories
    :param shared: list of rows of the disks that it shares
    """

    row: object
    values: dict
    provider: object
    inventories: list
    shared: list

    @property
    def shared_disk(self):
        """str, uuid of the shared disk that new consumers claim: the one with the most free space;
        None for none"""
        return max(self.shared, key=lambda row: row.free).provider_uuid if self.shared else None


def stored_node(tx, row):
    """Read a node.

    :returns: :class:`StoredNode`
    :raises Stale: if the node has been deleted since its row was read
    """
    provider = providers.get(tx, row.uuid) if row.uuid else None
    rows = inventory_queries.of_provider(tx, provider.id) if provider else []
    shared = queries.sharing(tx, [row.uuid]) if provider else []
    if row.inventory_migrated_at is not None:
        capacity = derived({each.resource_class: each for each in rows},
                           _reported_disks(shared).get(row.uuid))
    else:
        own = queries.capacities(tx, [row.id]).get(row.id)
        if own is None:
            raise db.Stale(f"compute node {row.id}")
        capacity = {name: getattr(own, name) for name in queries.CAPACITY}
    return StoredNode(row, {**row._mapping, **capacity}, provider, rows, shared)
