# SPDX-License-Identifier: Apache-2.0
"""What becomes of a compute node that is created, saved or destroyed.

While the gate is closed both places are written: the columns, and the inventories of a node that
has them. From then on it is inventories alone.
"""

import dataclasses
import json

from placement_rpc import exception
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.db.queries import providers
from placement_rpc.objects import inventory, node_columns
from placement_rpc.objects.node_inventory import CLASSES, DEVICES, inventories_of
from placement_rpc.objects.node_migration import (
    Arrival,
    devices_of,
    mark,
    migrate,
    provide,
)
from placement_rpc.objects.resource_provider import ResourceProvider

# What a node is known by is not changed by saying something else of it.
_FIXED = frozenset(("id", "uuid"))


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
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
    :param inventories: list of :class:`placement_rpc.objects.inventory.Inventory`; None for a
        node that has no provider
    :param classes: list of the classes whose inventory is another one
    """

    columns: dict
    inventories: list | None
    classes: list

    @property
    def changed(self):
        """list of str, what is written"""
        return [*sorted(self.columns), *self.classes]


def plan(tx, row, values, given, said, settings):
    """Compare what is said of a node with what is stored.

    :param row: row of the node
    :param values: dict of all its columns, as :func:`node_columns.read` returned it
    :param given: a ComputeNode of which the changed fields are set, or all
    :param said: :class:`Said`
    :param settings: :class:`placement_rpc.objects.node_migration.Settings`
    :returns: :class:`Plan`
    """
    columns = {**node_columns.columns_of(given, set(given.fields) - _FIXED), **said.columns()}
    wanted = given.of_columns({**values, **columns})
    provider = providers.get(tx, row.uuid) if row.uuid else None
    inventories, classes = None, []
    if provider is not None:
        inventories = _inventories(tx, row, provider, wanted, said, settings.options)
        classes = inventory.changes(tx, provider.id, inventories, CLASSES)
    stored = dict(values)
    if settings.migrates:
        columns = {name: value for name, value in columns.items() if name in queries.COLUMNS}
    else:
        stored |= queries.capacities(tx, [row.id])[row.id]._mapping
    return Plan({name: value for name, value in columns.items() if stored[name] != value},
                inventories, classes)


def _inventories(tx, row, provider, wanted, said, options):
    shares = row.shares_disk if said.shares_disk is None else said.shares_disk
    in_use = devices_of(row) if said.devices_in_use is None else said.devices_in_use
    if in_use is None:
        in_use = {each.resource_class: each.used
                  for each in queries.inventories(tx, [provider.uuid])
                  if each.resource_class in DEVICES}
    return inventories_of(
        wanted, options, bool(shares) or bool(queries.sharing(tx, [provider.uuid])), in_use)


def create(tx, journal, node, settings, said=None):
    """Insert a node, and make it a provider.

    :param node: a ComputeNode; its uuid is set
    :returns: int, its id
    :raises ComputeNodeExists: :raises NameInUse: :raises InvalidInput:
    """
    said = said or Said()
    columns = {**node_columns.columns_of(node), **said.columns()}
    if settings.migrates:
        columns = {name: value for name, value in columns.items() if name in queries.COLUMNS}
    if queries.of_uuids(tx, [node.uuid]) or queries.named(
            tx, columns.get("host"), columns.get("hypervisor_hostname")):
        raise exception.ComputeNodeExists(node=node.label)
    node_id = queries.insert(tx, columns)
    arrival = Arrival(node_id, node.uuid, node, bool(said.shares_disk), said.devices_in_use)
    for error in provide(tx, journal, [arrival], settings.options).values():
        raise error
    if settings.migrates:
        mark(tx, journal, [arrival])
    return node_id


def save(tx, journal, row, given, settings, said=None):
    """Write what changed of a node, and nothing where nothing did.

    :param row: row of the node, locked
    :param given: as of :func:`plan`
    :returns: list of str, what was written
    :raises CapacityConflict: :raises InventoryInUse: :raises NameInUse: :raises InvalidInput:
    """
    said, changed = said or Said(), []
    if settings.migrates and row.inventory_migrated_at is None:
        _, refused = migrate(tx, journal, [row.id], settings.options, given.of_columns)
        for error in refused.values():
            raise error
        row, = queries.of_ids(tx, [row.id])
        changed = ["inventory_migrated_at"]
    values, = node_columns.read(tx, [row])
    wanted = plan(tx, row, values, given, said, settings)
    if wanted.columns:
        queries.update(tx, row.id, wanted.columns)
    if wanted.classes:
        inventory.merge(tx, journal, row.uuid, wanted.inventories, CLASSES)
    name = wanted.columns.get("hypervisor_hostname")
    if name and wanted.inventories is not None:
        ResourceProvider(uuid=row.uuid, name=node_columns.provider_name(given)).rename(
            tx, journal)
    return changed + wanted.changed


def locked(tx, node):
    """Lock a node's row.

    :param node: a ComputeNode that has an id or a uuid
    :raises ComputeNodeNotFound:
    """
    rows = []
    if node.value("uuid"):
        rows = queries.of_uuids(tx, [node.uuid])
    if not rows and node.value("id"):
        rows = queries.of_ids(tx, [node.id])
    rows = queries.lock(tx, [rows[0].id]) if rows else []
    if not rows:
        raise exception.ComputeNodeNotFound(node=node.label)
    return rows[0]


def destroy(tx, journal, node):
    """Delete a node, and its provider.

    :raises ComputeNodeNotFound: :raises ProviderInUse: when something is allocated from it
    """
    row = locked(tx, node)
    queries.delete(tx, row.id)
    if row.uuid and providers.get(tx, row.uuid) is not None:
        ResourceProvider.delete(tx, journal, row.uuid)
