# SPDX-License-Identifier: Apache-2.0
"""What becomes of a compute node that is created, saved or destroyed.

While the gate is closed both places are written: the columns, and the inventories of a node that
has them. From then on it is inventories alone.
"""

import dataclasses
import json

from placement_rpc import exception
from placement_rpc.accounting import providers as provider_rules
from placement_rpc.accounting.inventories import changes, merge
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.db.queries import providers
from placement_rpc.nova import store
from placement_rpc.nova.inventory import CLASSES, DEVICES, inventories_of
from placement_rpc.nova.migration import NodeToMigrate, devices_of, mark, migrate, provide
from placement_rpc.objects.resource_provider import ResourceProvider

# What a node is known by is not changed by saying something else of it.
_FIXED = frozenset(("id", "uuid"))


@dataclasses.dataclass(frozen=True, slots=True)
class TrackerReport:
    """What a caller says of a node beside the object; None where it says nothing.

    :param shares_disk: bool, whether its disk is another provider's
    :param devices_in_use: dict of class to how many devices are claimed or allocated
    """

    shares_disk: bool | None = None
    devices_in_use: dict | None = None

    def columns(self):
        """:returns: dict of column to value"""
        values = {}
        if self.shares_disk is not None:
            values["shares_disk"] = self.shares_disk
        if self.devices_in_use is not None:
            values["pci_in_use"] = json.dumps(self.devices_in_use, sort_keys=True)
        return values


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What would have to be written.

    :param columns: dict of column to value
    :param node: the node as it is to be
    :param devices_in_use: dict of class to number
    :param inventories: list of :class:`placement_rpc.objects.inventory.Inventory` of the classes
        that were spoken of
    :param spoken_of: set of those classes
    :param classes: list of those whose inventory is another one
    """

    columns: dict
    node: object
    devices_in_use: dict
    inventories: list
    spoken_of: set
    classes: list

    @property
    def changed(self):
        """list of str, what is written"""
        return [*sorted(self.columns), *self.classes]


def plan(tx, view, given, said, settings):
    """Compare what is said of a node with what is stored.

    :param view: :class:`placement_rpc.nova.store.StoredNode`
    :param given: a ComputeNode of which the changed fields are set, or all
    :param said: :class:`Said`
    :param settings: :class:`placement_rpc.nova.migration.Settings`
    :returns: :class:`Plan`
    :raises InvalidInput: for what can not be
    """
    columns = {**store.columns_of(given, set(given.fields) - _FIXED), **said.columns()}
    in_use = _devices_in_use(view, columns, said)
    if "pci_stats" in columns:
        columns["pci_in_use"] = json.dumps(in_use, sort_keys=True)
    wanted = given.of_columns({**view.values, **columns})
    shares = view.row.shares_disk if said.shares_disk is None else said.shares_disk
    inventories = inventories_of(
        wanted, settings.options, bool(shares) or bool(view.shared), in_use)
    spoken_of = _spoken_of(columns)
    if any(row.resource_class == "DISK_GB" and row.used for row in view.inventories) and (
            shares or view.shared):
        # What is allocated from it has to go to the other provider first.
        spoken_of.discard("DISK_GB")
    inventories = [each for each in inventories if each.resource_class in spoken_of]
    classes = changes(
        view.inventories, inventories, spoken_of) if view.provider is not None else []
    stored = view.values
    if settings.migrates:
        columns = {name: value for name, value in columns.items() if name in queries.COLUMNS}
    else:
        stored = {**stored, **queries.capacities(tx, [view.row.id])[view.row.id]._mapping}
    return Plan({name: value for name, value in columns.items() if stored[name] != value},
                wanted, in_use, inventories, spoken_of, classes)


def _devices_in_use(view, columns, said):
    """How many devices are in use that the node's pools leave out.

    The number belongs to the pools that it was told with: with other pools, and no word of it,
    what is allocated is in use.
    """
    if said.devices_in_use is not None:
        return said.devices_in_use
    stored = devices_of(view.row)
    if stored is not None and columns.get("pci_stats", view.row.pci_stats) == (
            view.row.pci_stats):
        return stored
    return {each.resource_class: each.used for each in view.inventories
            if each.resource_class in DEVICES and each.used}


def _spoken_of(columns):
    """:returns: set of the classes whose inventory follows from columns that were given"""
    found = set()
    for names, classes in _FOLLOWS:
        if not names.isdisjoint(columns):
            found |= classes
    return found


_FOLLOWS = (
    (frozenset(("vcpus", "cpu_allocation_ratio")), {"VCPU"}),
    (frozenset(("memory_mb", "ram_allocation_ratio")), {"MEMORY_MB"}),
    (frozenset(("local_gb", "disk_allocation_ratio", "disk_available_least", "shares_disk")),
     {"DISK_GB"}),
    (frozenset(("pci_stats", "pci_in_use")), DEVICES),
    (frozenset(("numa_topology",)), {name for name in CLASSES if name.startswith("NUMA_")}),
)


def create(tx, outbox, node, settings, said=None):
    """Insert a node, and make it a provider.

    :param node: a ComputeNode; its uuid is set
    :returns: int, its id
    :raises ComputeNodeExists: :raises NameInUse: :raises InvalidInput:
    """
    said = said or TrackerReport()
    columns = {**store.columns_of(node), **said.columns()}
    if settings.migrates:
        columns = {name: value for name, value in columns.items() if name in queries.COLUMNS}
    if queries.of_uuids(tx, [node.uuid]) or queries.named(
            tx, columns.get("host"), columns.get("hypervisor_hostname")):
        raise exception.ComputeNodeExists(node=node.label)
    node_id = queries.insert(tx, columns)
    arrival = NodeToMigrate(node_id, node.uuid, node, bool(said.shares_disk), said.devices_in_use)
    _provide(tx, outbox, arrival, settings)
    if settings.migrates:
        mark(tx, outbox, [arrival])
    return node_id


def _provide(tx, outbox, arrival, settings):
    for error in provide(tx, outbox, [arrival], settings.options).values():
        raise error


def save(tx, outbox, row, given, settings, said=None):
    """Write what changed of a node, and nothing where nothing did.

    :param row: row of the node, locked
    :param given: as of :func:`plan`
    :returns: list of str, what was written
    :raises CapacityConflict: :raises InventoryInUse: :raises NameInUse: :raises InvalidInput:
    :raises ComputeNodeExists: where it is to have the host and the name of another node
    """
    said, changed = said or TrackerReport(), []
    if settings.migrates and row.inventory_migrated_at is None:
        row = _migrate(tx, outbox, row, given, settings, said)
        changed = ["inventory_migrated_at"]
    view = store.stored_node(tx, row)
    wanted = plan(tx, view, given, said, settings)
    _check_name(tx, row, wanted.columns)
    if wanted.columns:
        queries.update(tx, row.id, wanted.columns)
    if view.provider is None and row.inventory_migrated_at is not None:
        # Somebody deleted it under the node.
        _provide(tx, outbox, NodeToMigrate(
            row.id, row.uuid, wanted.node, bool(row.shares_disk),
            wanted.devices_in_use), settings)
        return [*changed, *wanted.changed, "provider"]
    if wanted.classes:
        merge(tx, outbox, row.uuid, wanted.inventories, wanted.spoken_of)
    if "hypervisor_hostname" in wanted.columns and view.provider is not None:
        provider_rules.rename(tx, outbox, ResourceProvider(
            uuid=row.uuid, name=store.provider_name(given)))
    return changed + wanted.changed


def _migrate(tx, outbox, row, given, settings, said):
    """Migrate a node as it is to be: what is stored of it may be what is wrong.

    :returns: its row as it is then
    """
    columns = {**store.columns_of(given, set(given.fields) - _FIXED), **said.columns()}
    _check_name(tx, row, columns)
    kept = {name: value for name, value in columns.items() if name in queries.COLUMNS}
    if "pci_stats" in kept and kept["pci_stats"] != row.pci_stats:
        kept.setdefault("pci_in_use", None)
    queries.update(tx, row.id, kept)
    _, refused = migrate(tx, outbox, [row.id], settings.options, lambda values: (
        given.of_columns({**values, **columns})))
    for error in refused.values():
        raise error
    return queries.of_ids(tx, [row.id])[0]


def _check_name(tx, row, columns):
    """:raises ComputeNodeExists: where another node has the host and the name already"""
    host, name = (columns.get(key, getattr(row, key)) for key in ("host", "hypervisor_hostname"))
    if (host, name) != (row.host, row.hypervisor_hostname):
        other = queries.named(tx, host, name)
        if other is not None and other.id != row.id:
            raise exception.ComputeNodeExists(node=f"{name} on host {host}")


def lock(tx, node):
    """Lock a node's row.

    :param node: a ComputeNode; found by its uuid, or else by its host and name, or else by its id
    :raises ComputeNodeNotFound:
    """
    host, name = node.value("host"), node.value("hypervisor_hostname")
    if node.value("uuid"):
        rows = queries.of_uuids(tx, [node.uuid])
    elif host and name:
        # A number that it has may be of nova's own table.
        rows = [row for row in (queries.named(tx, host, name),) if row is not None]
    else:
        rows = queries.of_ids(tx, [node.id]) if node.value("id") else []
    rows = queries.lock(tx, [rows[0].id]) if rows else []
    if not rows:
        raise exception.ComputeNodeNotFound(node=node.label)
    return rows[0]


def destroy(tx, outbox, node):
    """Delete a node, and its provider.

    :raises ComputeNodeNotFound: :raises ProviderInUse: when something is allocated from it
    """
    row = lock(tx, node)
    queries.delete(tx, row.id)
    if row.uuid and providers.get(tx, row.uuid) is not None:
        provider_rules.delete(tx, outbox, row.uuid)
