# SPDX-License-Identifier: Apache-2.0
"""Migration of compute nodes to providers with inventories, in sets (compute-node-inventory).

The caller opens the transaction, so a set of nodes is migrated as a whole or not at all. A node
that cannot be migrated is left out and reported; the others are migrated.
"""

import contextlib
import dataclasses
import json
import uuid as uuids

from placement_rpc import exception
from placement_rpc.accounting import providers
from placement_rpc.accounting.inventories import merge
from placement_rpc.accounting.outbox import primitive
from placement_rpc.accounting.resource_classes import resolve
from placement_rpc.db import api as db
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.nova import store
from placement_rpc.nova.inventory import CLASSES, DEVICES, checked_devices, inventories_of
from placement_rpc.objects import inventory
from placement_rpc.objects.payloads import (
    ComputeNodePayload,
    InventoryChange,
    InventoryPayload,
    ResourceProviderPayload,
)
from placement_rpc.objects.resource_provider import ResourceProvider


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """How the capacity of compute nodes is stored.

    :param options: ``conf.compute_nodes``
    :param migrates: bool, whether the gate is open, so that only inventories are written
    """

    options: object
    migrates: bool


@dataclasses.dataclass(slots=True)
class NodeToMigrate:
    """A node that is to become a provider.

    ``shares_disk`` and ``devices_in_use`` are known in addition to the object. :func:`provide`
    sets ``name``, ``inventories`` and ``generation``.
    """

    id: int
    uuid: str
    node: object
    shares_disk: bool = False
    devices_in_use: dict | None = None
    name: str = ""
    inventories: dict = dataclasses.field(default_factory=dict)
    generation: int = 0


def node_to_migrate(row, values, read):
    """Return the :class:`NodeToMigrate` of a row.

    :param row: row of the node
    :param values: dict of all its columns to their values
    :param read: callable that makes a ComputeNode of the values
    :raises InvalidInput: if a value is not valid
    """
    return NodeToMigrate(row.id, row.uuid or str(uuids.uuid4()), read(values),
                   bool(row.shares_disk), stored_devices(row))


def stored_devices(row):
    """Return the stored number of devices in use by class, a dict; None if it is not known.

    :raises InvalidInput: if the stored value is not valid
    """
    try:
        return checked_devices(json.loads(row.pci_in_use) if row.pci_in_use else None)
    except (ValueError, RecursionError) as error:
        raise exception.InvalidInput(
            what=f"compute node {row.hypervisor_hostname}: pci_in_use",
            reason=str(error)[:200]) from None


def migrate(tx, outbox, ids, options, read):
    """Move the capacity of nodes from their columns into inventories.

    Nodes that another process has migrated meanwhile are not changed.

    :param ids: collection of the nodes' ids
    :param options: ``conf.compute_nodes``
    :param read: callable that makes a ComputeNode of a dict of columns
    :returns: tuple of the number of migrated nodes, and a dict of node id to the
        PlacementException that prevented the migration of others
    """
    rows = [row for row in queries.lock(tx, ids) if row.inventory_migrated_at is None]
    nodes, refused = _to_migrate(tx, rows, read)
    queries.set_uuids(tx, {each.id: each.uuid for each, row in _with_rows(nodes, rows)
                           if row.uuid is None})
    refused |= provide(tx, outbox, nodes, options)
    done = [each for each in nodes if each.id not in refused]
    mark(tx, outbox, done)
    return len(done), refused


def _to_migrate(tx, rows, read):
    """Read nodes.

    :returns: tuple of a list of :class:`NodeToMigrate`, and a dict of node id to the
        PlacementException for which the node cannot be read
    """
    nodes, refused = [], {}
    for row, values in zip(rows, store.read(tx, rows), strict=True):
        try:
            nodes.append(node_to_migrate(row, values, read))
        except exception.PlacementException as error:
            refused[row.id] = error
    return nodes, refused


def _with_rows(nodes, rows):
    by_id = {row.id: row for row in rows}
    return [(each, by_id[each.id]) for each in nodes]


def mark(tx, outbox, nodes):
    """Mark nodes as migrated, and publish that."""
    if not nodes:
        return
    queries.mark_migrated(tx, [each.id for each in nodes])
    for each in nodes:
        outbox.add_plain(
            "compute_node.inventory_migrated", ComputeNodePayload, provider_uuid=each.uuid,
            generation=each.generation, compute_node_id=each.id, host=each.node.value("host"),
            hypervisor_hostname=each.name)


def provide(tx, outbox, nodes, options):
    """Make nodes providers with all their inventories.

    An existing provider with the uuid of a node becomes the node's.

    :param nodes: list of :class:`NodeToMigrate`, which are completed
    :returns: dict of node id to the PlacementException for which the node was left out
    """
    known = queries.providers(tx, [each.uuid for each in nodes])
    refused = _complete(tx, nodes, known, options)
    _insert(tx, outbox, [each for each in nodes
                          if each.id not in refused and each.uuid not in known])
    for each in nodes:
        if each.id not in refused and each.uuid in known:
            try:
                _adopt(tx, outbox, each)
            except exception.PlacementException as error:
                refused[each.id] = error
    _keep_devices(tx, [each for each in nodes if each.id not in refused])
    return refused


def obstacles(tx, rows, options, read):
    """Return why nodes cannot be migrated, as far as their own values and names show it.

    Nothing is changed.

    :param rows: list of rows of nodes that are not migrated
    :param options: ``conf.compute_nodes``
    :param read: callable that makes a ComputeNode of a dict of columns
    :returns: dict of node id to PlacementException
    """
    nodes, refused = _to_migrate(tx, rows, read)
    known = queries.providers(tx, [each.uuid for each in nodes])
    return refused | _complete(tx, nodes, known, options)


def _complete(tx, nodes, known, options):
    """Determine the names and the inventories of nodes.

    :param known: dict of uuid to row of the providers that exist
    :returns: dict of node id to the PlacementException for which the node is left out
    """
    refused = {}
    shared = {row.node_uuid for row in queries.sharing(tx, list(known))}
    allocated = _allocated(tx, known)
    for each in nodes:
        if each.devices_in_use is None:
            each.devices_in_use = allocated.get(each.uuid, {})
        try:
            each.name = store.provider_name(each.node)
            each.inventories = inventories_of(
                each.node, options, each.shares_disk or each.uuid in shared, each.devices_in_use)
        except exception.PlacementException as error:
            refused[each.id] = error
    _refuse_taken_names(tx, nodes, refused)
    return refused


def _allocated(tx, known):
    """Return the number of allocated devices, a dict of provider uuid to dict of class to int."""
    found = {}
    for row in queries.inventories(tx, list(known)):
        if row.resource_class in DEVICES and row.used:
            found.setdefault(row.provider_uuid, {})[row.resource_class] = row.used
    return found


@contextlib.contextmanager
def expected_provider(uuid):
    """Surround changes of a provider that was read before, without a lock.

    :raises placement_rpc.db.api.Stale: if it was deleted meanwhile
    """
    try:
        yield
    except exception.ProviderNotFound as error:
        raise db.Stale(f"resource provider {uuid}") from error


def _adopt(tx, outbox, node):
    """Make an existing provider the node's."""
    with expected_provider(node.uuid):
        renamed = providers.update(
            tx, outbox, ResourceProvider(uuid=node.uuid, name=node.name))
        node.generation = renamed.generation
        node.generation = merge(tx, outbox, node.uuid, node.inventories, CLASSES).generation


def _keep_devices(tx, nodes):
    """Store the number of devices in use that belongs to the current pools."""
    values = {}
    for each in nodes:
        values.setdefault(json.dumps(each.devices_in_use, sort_keys=True), []).append(each.id)
    for value, ids in values.items():
        queries.set_devices(tx, ids, value)


def _refuse_taken_names(tx, nodes, refused):
    taken = queries.taken_names(tx, {each.name for each in nodes if each.name})
    uuids = set()
    for each in nodes:
        if each.id in refused:
            continue
        if each.uuid in uuids:
            refused[each.id] = exception.ComputeNodeExists(node=each.uuid)
            continue
        uuids.add(each.uuid)
        if taken.setdefault(each.name, each.uuid) != each.uuid:
            refused[each.id] = exception.NameInUse(name=each.name)


def _insert(tx, outbox, nodes):
    """Insert providers and their inventories, and record their events."""
    if not nodes:
        return
    for each in nodes:
        each.generation = 1 if each.inventories else 0
    ids = queries.insert_providers(
        tx, [(each.uuid, each.name, each.generation) for each in nodes])
    classes = resolve(tx, {name for each in nodes for name in each.inventories})
    queries.insert_inventories(tx, [
        (ids[each.uuid], classes[name], values["total"], values["reserved"], values["min_unit"],
         values["max_unit"], values["step_size"], values["allocation_ratio"],
         values["capacity"], 0)
        for each in nodes for name, values in each.inventories.items()])
    for each in nodes:
        outbox.add_plain(
            "resource_provider.create", ResourceProviderPayload, provider_uuid=each.uuid,
            generation=0, previous_generation=None, name=each.name, previous_name=None)
        if each.inventories:
            outbox.add_plain(
                "inventory.create", InventoryPayload, provider_uuid=each.uuid, generation=1,
                previous_generation=0, inventories=[
                    _created(name, values) for name, values in each.inventories.items()])


def _created(resource_class, values):
    return primitive(
        InventoryChange, resource_class=resource_class, before=None, after=primitive(
            inventory.Inventory, resource_class=resource_class, used=0,
            **{name: value for name, value in values.items() if name != "capacity"}))
