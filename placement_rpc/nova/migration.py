# SPDX-License-Identifier: Apache-2.0
"""Compute nodes become providers, set by set (compute-node-inventory).

Whatever calls this has the transaction: all that is done for a set of nodes is done in it, or
nothing. A node that can not be migrated is left out and told of; the others go on.
"""

import dataclasses
import json
import uuid as uuids

from placement_rpc import exception
from placement_rpc.accounting import providers
from placement_rpc.accounting.inventories import columns, merge
from placement_rpc.accounting.outbox import primitive
from placement_rpc.accounting.resource_classes import resolve
from placement_rpc.db.queries import compute_nodes as queries
from placement_rpc.nova import store
from placement_rpc.nova.inventory import CLASSES, DEVICES, in_use, inventories_of
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
    """How compute nodes are dealt with.

    :param options: ``conf.compute_nodes``
    :param migrates: bool, whether the gate is open: inventories are all that is written
    """

    options: object
    migrates: bool


@dataclasses.dataclass(slots=True)
class NodeToMigrate:
    """A node on its way to be a provider.

    ``shares_disk`` and ``devices_in_use`` are what is known of it beside the object.
    """

    id: int
    uuid: str
    node: object
    shares_disk: bool = False
    devices_in_use: dict | None = None
    name: str = ""
    inventories: list = dataclasses.field(default_factory=list)
    generation: int = 0


def node_to_migrate(row, values, read):
    """:param row: row of the node; :param values: dict of all its columns

    :param read: callable that makes the object of the columns
    """
    return NodeToMigrate(row.id, row.uuid or str(uuids.uuid4()), read(values),
                   bool(row.shares_disk), devices_of(row))


def devices_of(row):
    """:returns: dict of class to how many devices of a node are in use; None where unknown"""
    try:
        return in_use(json.loads(row.pci_in_use) if row.pci_in_use else None)
    except (ValueError, RecursionError) as error:
        raise exception.InvalidInput(
            what=f"compute node {row.hypervisor_hostname}: pci_in_use",
            reason=str(error)[:200]) from None


def migrate(tx, outbox, ids, options, read):
    """Move the capacity of nodes from their columns into inventories.

    Nodes that somebody else migrated meanwhile are left as they are.

    :param ids: collection of the nodes' ids
    :param options: ``conf.compute_nodes``
    :param read: callable that makes a ComputeNode of a dict of columns
    :returns: tuple of the number of nodes migrated, and dict of node id to the PlacementException
        for which one was not
    """
    rows = [row for row in queries.lock(tx, ids) if row.inventory_migrated_at is None]
    arrivals, refused = [], {}
    for row, values in zip(rows, store.read(tx, rows), strict=True):
        try:
            arrivals.append(node_to_migrate(row, values, read))
        except exception.PlacementException as error:
            refused[row.id] = error
    queries.set_uuids(tx, {each.id: each.uuid for each, row in _with_rows(arrivals, rows)
                           if row.uuid is None})
    refused |= provide(tx, outbox, arrivals, options)
    done = [each for each in arrivals if each.id not in refused]
    mark(tx, outbox, done)
    return len(done), refused


def _with_rows(arrivals, rows):
    by_id = {row.id: row for row in rows}
    return [(each, by_id[each.id]) for each in arrivals]


def mark(tx, outbox, arrivals):
    """Say of nodes that inventories have what they have."""
    if not arrivals:
        return
    queries.mark_migrated(tx, [each.id for each in arrivals])
    for each in arrivals:
        outbox.add_plain(
            "compute_node.inventory_migrated", ComputeNodePayload, provider_uuid=each.uuid,
            generation=each.generation, compute_node_id=each.id, host=each.node.value("host"),
            hypervisor_hostname=each.name)


def provide(tx, outbox, arrivals, options):
    """Make nodes providers, with all their inventories.

    A provider that has a node's uuid already becomes the node's.

    :param arrivals: list of :class:`Arrival`; what becomes of each is set on it
    :returns: dict of node id to the PlacementException for which it was left out
    """
    refused = {}
    known = queries.providers(tx, [each.uuid for each in arrivals])
    shared = {row.node_uuid for row in queries.sharing(tx, list(known))}
    allocated = _allocated(tx, known)
    for each in arrivals:
        if each.devices_in_use is None:
            each.devices_in_use = allocated.get(each.uuid, {})
        try:
            each.name = store.provider_name(each.node)
            each.inventories = inventories_of(
                each.node, options, each.shares_disk or each.uuid in shared, each.devices_in_use)
        except exception.PlacementException as error:
            refused[each.id] = error
    _refuse_taken_names(tx, arrivals, refused)
    _insert(tx, outbox, [each for each in arrivals
                          if each.id not in refused and each.uuid not in known])
    for each in arrivals:
        if each.id not in refused and each.uuid in known:
            try:
                _adopt(tx, outbox, each)
            except exception.PlacementException as error:
                refused[each.id] = error
    _keep_devices(tx, [each for each in arrivals if each.id not in refused])
    return refused


def _allocated(tx, known):
    """:returns: dict of provider uuid to dict of class to how many devices are allocated"""
    found = {}
    for row in queries.inventories(tx, list(known)):
        if row.resource_class in DEVICES and row.used:
            found.setdefault(row.provider_uuid, {})[row.resource_class] = row.used
    return found


def _adopt(tx, outbox, node):
    """Make a provider that is there already the node's."""
    renamed = providers.rename(
        tx, outbox, ResourceProvider(uuid=node.uuid, name=node.name))
    node.generation = renamed.generation
    node.generation = merge(tx, outbox, node.uuid, node.inventories, CLASSES).generation


def _keep_devices(tx, arrivals):
    """Remember how many devices were in use beside the pools as they are now."""
    values = {}
    for each in arrivals:
        values.setdefault(json.dumps(each.devices_in_use, sort_keys=True), []).append(each.id)
    for value, ids in values.items():
        queries.set_devices(tx, ids, value)


def _refuse_taken_names(tx, arrivals, refused):
    taken = queries.taken_names(tx, {each.name for each in arrivals if each.name})
    uuids = set()
    for each in arrivals:
        if each.id in refused:
            continue
        if each.uuid in uuids:
            refused[each.id] = exception.ComputeNodeExists(node=each.uuid)
            continue
        uuids.add(each.uuid)
        if taken.setdefault(each.name, each.uuid) != each.uuid:
            refused[each.id] = exception.NameInUse(name=each.name)


def _insert(tx, outbox, arrivals):
    """Insert providers and their inventories, and tell of them."""
    if not arrivals:
        return
    for each in arrivals:
        each.generation = 1 if each.inventories else 0
    ids = queries.insert_providers(
        tx, [(each.uuid, each.name, each.generation) for each in arrivals])
    rows = {each.id: {one.resource_class: columns(one) for one in each.inventories}
            for each in arrivals}
    classes = resolve(tx, {name for inventories in rows.values() for name in inventories})
    queries.insert_inventories(tx, [
        (ids[each.uuid], classes[name], values["total"], values["reserved"], values["min_unit"],
         values["max_unit"], values["step_size"], values["allocation_ratio"],
         values["capacity"], 0)
        for each in arrivals for name, values in rows[each.id].items()])
    for each in arrivals:
        outbox.add_plain(
            "resource_provider.create", ResourceProviderPayload, provider_uuid=each.uuid,
            generation=0, previous_generation=None, name=each.name, previous_name=None)
        if each.inventories:
            outbox.add_plain(
                "inventory.create", InventoryPayload, provider_uuid=each.uuid, generation=1,
                previous_generation=0, inventories=[
                    _created(name, values) for name, values in rows[each.id].items()])


def _created(resource_class, values):
    return primitive(
        InventoryChange, resource_class=resource_class, before=None, after=primitive(
            inventory.Inventory, resource_class=resource_class, used=0,
            **{name: value for name, value in values.items() if name != "capacity"}))
