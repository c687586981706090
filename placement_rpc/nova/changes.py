# SPDX-License-Identifier: Apache-2.0
"""Creating, saving and destroying compute nodes.

While the gate is closed, the capacity of a node is written to its columns, and to inventories if
it has them. Once the gate is open, it is written to inventories only.
"""

import collections
import dataclasses
import json

from placement_rpc import exception
from placement_rpc.accounting import providers as provider_rules
from placement_rpc.accounting.inventories import changes, merge
from placement_rpc.db import api as db
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.db.queries import consumers, providers
from placement_rpc.nova import store
from placement_rpc.nova.inventory import CLASSES, DEVICES, inventories_of
from placement_rpc.nova.migration import (
    NodeToMigrate,
    expected_provider,
    mark,
    migrate,
    provide,
    stored_devices,
)
from placement_rpc.objects.resource_provider import ResourceProvider

# The fields that identify a node; saving a node does not change them.
_FIXED = frozenset(("id", "uuid"))


@dataclasses.dataclass(frozen=True, slots=True)
class TrackerReport:
    """What a resource tracker reports about a node in addition to the object.

    :param shares_disk: bool, whether its disk belongs to another provider; None if not reported
    :param devices_in_use: dict of class name to the number of devices that are claimed or
        allocated; None if not reported
    :param consumers: frozenset of the uuids of all consumers on the node; None if not reported
    """

    shares_disk: bool | None = None
    devices_in_use: dict | None = None
    consumers: frozenset | None = None

    def columns(self):
        """Return the reported values, a dict of column to value."""
        values = {}
        if self.shares_disk is not None:
            values["shares_disk"] = self.shares_disk
        if self.devices_in_use is not None:
            values["pci_in_use"] = json.dumps(self.devices_in_use, sort_keys=True)
        return values


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The difference between a node as reported and as stored.

    :param columns: dict of column to value, the columns that differ
    :param node: the node as reported
    :param devices_in_use: dict of class name to number of devices
    :param inventories: dict of class name to the columns of its inventory, of the classes
        that the report determines
    :param reported_classes: set of those classes
    :param classes: list of those classes whose inventory differs
    """

    columns: dict
    node: object
    devices_in_use: dict
    inventories: dict
    reported_classes: set
    classes: list

    @property
    def changed(self):
        """list of str, the columns and classes that differ"""
        return [*sorted(self.columns), *self.classes]


def plan(tx, view, given, report, settings):
    """Compare a node as reported with the node as stored.

    :param view: :class:`placement_rpc.nova.store.StoredNode`
    :param given: a ComputeNode with at least its changed fields set
    :param report: :class:`TrackerReport`
    :param settings: :class:`placement_rpc.nova.migration.Settings`
    :returns: :class:`Plan`
    :raises InvalidInput: if a value cannot be stored or makes no valid inventory
    """
    columns = _reported_columns(given, report)
    in_use = _devices_in_use(tx, view, columns, report)
    if "pci_stats" in columns:
        columns["pci_in_use"] = json.dumps(in_use, sort_keys=True)
    wanted = given.of_columns({**view.values, **columns})
    shares = view.row.shares_disk if report.shares_disk is None else report.shares_disk
    inventories = inventories_of(
        wanted, settings.options, bool(shares) or bool(view.shared), in_use)
    reported = _reported_classes(columns)
    if any(row.resource_class == "DISK_GB" and row.used for row in view.inventories) and (
            shares or view.shared):
        # The inventory stays until its allocations have been moved to the other provider.
        reported.discard("DISK_GB")
    inventories = {name: values for name, values in inventories.items() if name in reported}
    classes = changes(
        view.inventories, inventories, reported) if view.provider is not None else []
    stored = view.values
    if settings.migrates:
        columns = {name: value for name, value in columns.items() if name in queries.COLUMNS}
    else:
        stored = {**stored, **queries.capacities(tx, [view.row.id])[view.row.id]._mapping}
    return Plan({name: value for name, value in columns.items() if stored[name] != value},
                wanted, in_use, inventories, reported, classes)


def _devices_in_use(tx, view, columns, report):
    """Return the number of devices in use by class, which the node's pools do not count.

    A stored number belongs to the pools with which it was reported. If new pools are reported
    without a number, the allocated devices are assumed to be in use, unless their consumers are
    not on the node: the pools count the devices of those.
    """
    if report.devices_in_use is not None:
        return report.devices_in_use
    stored = stored_devices(view.row)
    if stored is not None and columns.get("pci_stats", view.row.pci_stats) == (
            view.row.pci_stats):
        return stored
    allocated = {each.resource_class: each.used for each in view.inventories
                 if each.resource_class in DEVICES and each.used}
    if not allocated or report.consumers is None:
        return allocated
    found = collections.Counter()
    for row in consumers.holding(tx, view.provider.id, []):
        if row.provider_uuid == view.row.uuid and row.resource_class in DEVICES and (
                row.consumer_uuid in report.consumers):
            found[row.resource_class] += row.used
    return dict(found)


def _reported_classes(columns):
    """Return the set of classes whose inventory depends on some of the given columns."""
    found = set()
    for names, classes in _DEPENDENCIES:
        if not names.isdisjoint(columns):
            found |= classes
    return found


_DEPENDENCIES = (
    (frozenset(("vcpus", "cpu_allocation_ratio")), {"VCPU"}),
    (frozenset(("memory_mb", "ram_allocation_ratio")), {"MEMORY_MB"}),
    (frozenset(("local_gb", "disk_allocation_ratio", "disk_available_least", "shares_disk")),
     {"DISK_GB"}),
    (frozenset(("pci_stats", "pci_in_use")), DEVICES),
    (frozenset(("numa_topology",)), {name for name in CLASSES if name.startswith("NUMA_")}),
)


def create(tx, outbox, node, settings, report=None):
    """Insert a node and make it a provider.

    :param node: a ComputeNode with its uuid set
    :param report: :class:`TrackerReport`; None for none
    :returns: int, its id
    :raises ComputeNodeExists: if there is a node with its uuid, or with its host and name
    :raises NameInUse: if another provider has its name
    :raises InvalidInput: if a value cannot be stored or makes no valid inventory
    """
    report = report or TrackerReport()
    columns = {**store.columns_of(node), **report.columns()}
    if settings.migrates:
        columns = {name: value for name, value in columns.items() if name in queries.COLUMNS}
    if queries.of_uuids(tx, [node.uuid]) or queries.named(
            tx, columns.get("host"), columns.get("hypervisor_hostname")):
        raise exception.ComputeNodeExists(node=node.label)
    node_id = queries.insert(tx, columns)
    migrant = NodeToMigrate(
        node_id, node.uuid, node, bool(report.shares_disk), report.devices_in_use)
    _provide(tx, outbox, migrant, settings)
    if len(queries.of_uuids(tx, [node.uuid])) > 1:
        # Another transaction made one, committed, and left the provider to this one.
        raise db.Stale(f"compute node {node.uuid}")
    if settings.migrates:
        mark(tx, outbox, [migrant])
    return node_id


def _provide(tx, outbox, migrant, settings):
    for error in provide(tx, outbox, [migrant], settings.options).values():
        raise error


def save(tx, outbox, row, given, settings, report=None, below_use=False):
    """Write the changes of a node; write nothing if there are none.

    :param row: row of the node, locked
    :param given: as in :func:`plan`
    :param report: :class:`TrackerReport`; None for none
    :param below_use: see :func:`placement_rpc.accounting.inventories.merge`
    :returns: list of str, the columns and classes that were written
    :raises CapacityConflict: if an inventory would shrink below its allocations, and may not
    :raises UpgradeInProgress: the same, if it may not yet
    :raises InventoryInUse: if an inventory with allocations would be removed
    :raises NameInUse: if another provider has its new name
    :raises InvalidInput: if a value cannot be stored or makes no valid inventory
    :raises ComputeNodeExists: if another node has its new host and name
    """
    report, changed = report or TrackerReport(), []
    if settings.migrates and row.inventory_migrated_at is None:
        row = _migrate(tx, outbox, row, given, settings, report)
        changed = ["inventory_migrated_at"]
    view = store.stored_node(tx, row)
    wanted = plan(tx, view, given, report, settings)
    _check_name(tx, row, wanted.columns)
    if wanted.columns:
        queries.update(tx, row.id, wanted.columns)
    if view.provider is None and row.inventory_migrated_at is not None:
        # The node's provider was deleted: make it again.
        _provide(tx, outbox, NodeToMigrate(
            row.id, row.uuid, wanted.node, bool(row.shares_disk),
            wanted.devices_in_use), settings)
        return [*changed, *wanted.changed, "provider"]
    with expected_provider(row.uuid):
        if wanted.classes:
            merge(tx, outbox, row.uuid, wanted.inventories, wanted.reported_classes, below_use)
        if "hypervisor_hostname" in wanted.columns and view.provider is not None:
            provider_rules.update(tx, outbox, ResourceProvider(
                uuid=row.uuid, name=store.provider_name(given)))
    return changed + wanted.changed


def _reported_columns(given, report):
    """Return what a tracker reports of its node: dict of column to value."""
    return {**store.columns_of(given, set(given.fields) - _FIXED), **report.columns()}


def _migrate(tx, outbox, row, given, settings, report):
    """Migrate a node with its reported values, since the stored ones may prevent the migration.

    :returns: its row after the migration
    """
    columns = _reported_columns(given, report)
    _check_name(tx, row, columns)
    kept = {name: value for name, value in columns.items() if name in queries.COLUMNS}
    if "pci_stats" in kept and kept["pci_stats"] != row.pci_stats:
        kept.setdefault("pci_in_use", None)
    queries.update(tx, row.id, kept)
    _, refused = migrate(tx, outbox, [row.id], settings.options, lambda values: (
        given.of_row({**values, **columns})))
    for error in refused.values():
        raise error
    return queries.of_ids(tx, [row.id])[0]


def _check_name(tx, row, columns):
    """Check that no other node has the host and name that a node is given.

    :raises ComputeNodeExists: if another node has them
    """
    host, name = (columns.get(key, getattr(row, key)) for key in ("host", "hypervisor_hostname"))
    if (host, name) != (row.host, row.hypervisor_hostname):
        other = queries.named(tx, host, name)
        if other is not None and other.id != row.id:
            raise exception.ComputeNodeExists(node=f"{name} on host {host}")


def lock(tx, node):
    """Lock a node's row.

    :param node: a ComputeNode; found by its uuid or, if that is not set, by its host and name or,
        if these are not set, by its id
    :raises ComputeNodeNotFound: if it is not stored
    :raises InvalidInput: if its uuid or its names cannot be stored
    """
    store.check_names(node)
    host, name = node.value("host"), node.value("hypervisor_hostname")
    if node.value("uuid"):
        rows = queries.of_uuids(tx, [node.uuid])
    elif host and name:
        # Its id is not used here: it may be that of nova's own table.
        rows = [row for row in (queries.named(tx, host, name),) if row is not None]
    else:
        rows = queries.of_ids(tx, [node.id]) if node.value("id") else []
    rows = queries.lock(tx, [rows[0].id]) if rows else []
    if not rows:
        raise exception.ComputeNodeNotFound(node=node.label)
    return rows[0]


def destroy(tx, outbox, node):
    """Delete a node and its provider.

    :raises ComputeNodeNotFound: if it is not stored
    :raises ProviderInUse: if the provider has allocations
    """
    row = lock(tx, node)
    queries.delete(tx, row.id)
    if row.uuid and providers.get(tx, row.uuid) is not None:
        with expected_provider(row.uuid):
            provider_rules.delete(tx, outbox, row.uuid)
