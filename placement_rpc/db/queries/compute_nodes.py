# SPDX-License-Identifier: Apache-2.0
"""Compute nodes, and their inventories.

The columns of a node's capacity are read by a statement of their own, only for nodes that have
it there: after the contract branch there are no such nodes, and no such columns.
"""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_nodes = models.compute_nodes
_providers = models.resource_providers
_inventories = models.inventories
_classes = models.resource_classes
_links = models.resource_provider_aggregates

#: The columns that are always there.
COLUMNS = tuple(name for name in _nodes.c.keys() if name not in models.COMPUTE_NODE_CAPACITY)  # noqa: SIM118
CAPACITY = models.COMPUTE_NODE_CAPACITY

_BASE = sa.select(*(_nodes.c[name] for name in COLUMNS))
_OF_IDS = bulk.OverLists(lambda among: _BASE.where(
    among(_nodes.c.id, "ids")).order_by(_nodes.c.id))
_LOCK = bulk.OverLists(lambda among: _BASE.where(
    among(_nodes.c.id, "ids")).order_by(_nodes.c.id).with_for_update())
_OF_UUIDS = bulk.OverLists(lambda among: _BASE.where(
    among(_nodes.c.uuid, "uuids")).order_by(_nodes.c.id))
_CAPACITY = bulk.OverLists(lambda among: sa.select(
    _nodes.c.id, *(_nodes.c[name] for name in CAPACITY)).where(among(_nodes.c.id, "ids")))
_NAMED = _BASE.where(_nodes.c.host == sa.bindparam("host"),
                     _nodes.c.hypervisor_hostname == sa.bindparam("name"))
_OF_NAMES = bulk.OverLists(lambda among: _BASE.where(
    among(_nodes.c.hypervisor_hostname, "names")).order_by(_nodes.c.id))
_SET_UUID = sa.update(_nodes).where(
    _nodes.c.id == sa.bindparam("row_id"), _nodes.c.uuid.is_(None))
_MARK = bulk.OverLists(lambda among: sa.update(_nodes).where(
    among(_nodes.c.id, "ids")).values(inventory_migrated_at=sa.bindparam("at")))
_SET_DEVICES = bulk.OverLists(lambda among: sa.update(_nodes).where(
    among(_nodes.c.id, "ids")).values(pci_in_use=sa.bindparam("value")))
_UPDATE = sa.update(_nodes).where(_nodes.c.id == sa.bindparam("row_id"))
_INVENTORIES = bulk.OverLists(lambda among: sa.select(
    _providers.c.uuid.label("provider_uuid"), _classes.c.name.label("resource_class"),
    _inventories.c.total, _inventories.c.reserved, _inventories.c.max_unit,
    _inventories.c.allocation_ratio, _inventories.c.used,
).select_from(_providers).join(_inventories).join(_classes).where(
    among(_providers.c.uuid, "uuids")))
_mine, _other = _links.alias("mine"), _links.alias("other")
_sharing, _as_node = _providers.alias("sharing"), _nodes.alias("as_node")
# The inventories of disks that a provider shares with others in its aggregates.
_IS_SHARED_DISK = (
    _mine.c.resource_provider_id == _providers.c.id,
    _other.c.aggregate_id == _mine.c.aggregate_id,
    _sharing.c.id == _other.c.resource_provider_id, _sharing.c.id != _providers.c.id,
    _inventories.c.resource_provider_id == _sharing.c.id,
    _classes.c.id == _inventories.c.resource_class_id, _classes.c.name == "DISK_GB",
    # The disk of a node is its own, whichever aggregates it is in.
    ~sa.exists().where(_as_node.c.uuid == _sharing.c.uuid))
_SHARING = bulk.OverLists(lambda among: sa.select(
    _providers.c.uuid.label("node_uuid"), _sharing.c.uuid.label("provider_uuid"),
    _inventories.c.total, _inventories.c.allocation_ratio,
    (_inventories.c.capacity - _inventories.c.used).label("free"),
).where(among(_providers.c.uuid, "uuids"), *_IS_SHARED_DISK).distinct().order_by(_sharing.c.uuid))
_UNSHARED = bulk.OverLists(lambda among: sa.select(
    *(_nodes.c[name] for name in COLUMNS), _providers.c.id.label("provider_id"),
    _providers.c.generation, _providers.c.updated_at.label("provider_updated_at"),
).select_from(_nodes).join(_providers, _providers.c.uuid == _nodes.c.uuid).where(
    among(_nodes.c.uuid, "uuids"),
    ~sa.exists().where(among(models.requests.c.request_id, "request_ids")),
    ~sa.exists().where(*_IS_SHARED_DISK)))
_INSERT_PROVIDERS = bulk.Insert(_providers, "uuid", "name", "generation")
_INSERT_INVENTORIES = bulk.Insert(
    _inventories, "resource_provider_id", "resource_class_id", "total", "reserved", "min_unit",
    "max_unit", "step_size", "allocation_ratio", "capacity", "used")
_PROVIDERS = bulk.OverLists(lambda among: sa.select(
    _providers.c.id, _providers.c.uuid, _providers.c.name,
).where(among(_providers.c.uuid, "uuids")))
_NAMES = bulk.OverLists(lambda among: sa.select(
    _providers.c.name, _providers.c.uuid).where(among(_providers.c.name, "names")))


def of_ids(tx, ids):
    """Return the nodes of some ids, rows of :data:`COLUMNS`, in the order of their ids."""
    return _OF_IDS.execute(tx, {"ids": list(ids)}).all()


def of_uuids(tx, uuids):
    """Return the nodes of some uuids, rows of :data:`COLUMNS`, in the order of their ids."""
    return _OF_UUIDS.execute(tx, {"uuids": list(uuids)}).all()


def named(tx, host, name):
    """Return the node of a host and a hypervisor_hostname; None if there is none."""
    return tx.execute(_NAMED, {"host": host, "name": name}).one_or_none()


def lock(tx, ids):
    """Return nodes as :func:`of_ids` does, locked until the transaction ends."""
    return _LOCK.execute(tx, {"ids": sorted(ids)}).all()


def page(tx, after=0, limit=None, host=None, hypervisor_hostname=None, match=None,
         mapped_below=None, unmigrated=False):
    """Return nodes in the order of their ids.

    :param after: int, id after which to begin
    :param limit: int, how many at most
    :param host: str, only those of this host
    :param hypervisor_hostname: str, only those of this name
    :param match: str, only those whose name contains it
    :param mapped_below: int, only those whose ``mapped`` is smaller
    :param unmigrated: bool, only those whose capacity is not in inventories
    :returns: list of rows of :data:`COLUMNS`
    """
    query = _BASE.where(_nodes.c.id > after).order_by(_nodes.c.id)
    if host is not None:
        query = query.where(_nodes.c.host == host)
    if hypervisor_hostname is not None:
        query = query.where(_nodes.c.hypervisor_hostname == hypervisor_hostname)
    if match is not None:
        query = query.where(_nodes.c.hypervisor_hostname.contains(match, autoescape=True))
    if mapped_below is not None:
        query = query.where(sa.func.coalesce(_nodes.c.mapped, 0) < mapped_below)
    if unmigrated:
        query = query.where(_nodes.c.inventory_migrated_at.is_(None))
    return tx.execute(query.limit(limit)).all()


def of_names(tx, names):
    """Return the nodes of some hypervisor_hostnames, rows of :data:`COLUMNS`, in the order of ids.
    """
    return _OF_NAMES.execute(tx, {"names": list(names)}).all()


def capacities(tx, ids):
    """Return the capacities in the columns of nodes: dict of id to row of :data:`CAPACITY`."""
    return {row.id: row for row in _CAPACITY.execute(tx, {"ids": list(ids)})} if ids else {}


def counts(tx):
    """Return a row of numbers: nodes, unmigrated, without_uuid, and (different) uuids."""
    return tx.execute(sa.select(
        sa.func.count(_nodes.c.id).label("nodes"),
        sa.func.count(sa.case((_nodes.c.inventory_migrated_at.is_(None), 1))).label(
            "unmigrated"),
        sa.func.count(sa.case((_nodes.c.uuid.is_(None), 1))).label("without_uuid"),
        sa.func.count(_nodes.c.uuid.distinct()).label("uuids"))).one()


def insert(tx, values):
    """Insert a node.

    :param values: dict of column to value
    :returns: int, its id
    :raises oslo_db.exception.DBDuplicateEntry: when its host has a node of that name
    """
    at = bulk.now()
    return tx.execute(sa.insert(_nodes), {
        **values, "created_at": at, "updated_at": at}).inserted_primary_key[0]


def insert_many(tx, rows):
    """Insert nodes.

    :param rows: list of dicts of column to value, all of the same columns
    """
    at = bulk.now()
    tx.execute(sa.insert(_nodes), [
        {**values, "created_at": at, "updated_at": at} for values in rows])


def update(tx, node_id, values):
    """Update a node.

    :param values: dict of column to value
    """
    tx.execute(_UPDATE, {**values, "row_id": node_id, "updated_at": bulk.now()})


def delete(tx, node_id):
    """Delete a node's row."""
    tx.execute(sa.delete(_nodes).where(_nodes.c.id == node_id))


def set_uuids(tx, uuids):
    """Set the uuids of nodes that have none; a node that has one keeps it.

    :param uuids: dict of node id to uuid
    """
    if uuids:
        tx.execute(_SET_UUID, [
            {"row_id": node_id, "uuid": uuid} for node_id, uuid in uuids.items()])


def mark_migrated(tx, ids):
    """Record that the capacity of nodes is in inventories."""
    _MARK.execute(tx, {"ids": list(ids), "at": bulk.now()})


def set_devices(tx, ids, value):
    """Set the numbers of devices in use of nodes.

    :param value: str, JSON
    """
    _SET_DEVICES.execute(tx, {"ids": list(ids), "value": value})


def inventories(tx, uuids):
    """Return the inventories of nodes, by one query.

    :param uuids: list of the nodes' uuids
    :returns: list of rows of provider_uuid, resource_class, total, reserved, max_unit,
        allocation_ratio, used
    """
    return _INVENTORIES.execute(tx, {"uuids": list(uuids)}).all() if uuids else []


def sharing(tx, uuids):
    """Return providers of DISK_GB that share an aggregate with nodes and are no nodes.

    :returns: list of rows of node_uuid, provider_uuid, total, allocation_ratio, free
    """
    return _SHARING.execute(tx, {"uuids": list(uuids)}).all() if uuids else []


def unshared(tx, uuids, request_ids):
    """Return the nodes that share no disk, with their providers.

    :returns: dict of uuid to row of :data:`COLUMNS`, provider_id, generation and
        provider_updated_at, without nodes that have no provider or the uuid of another node;
        empty if one of the requests was settled
    """
    rows = {}
    for row in _UNSHARED.execute(tx, {"uuids": list(uuids), "request_ids": list(request_ids)}):
        rows[row.uuid] = None if row.uuid in rows else row
    return {uuid: row for uuid, row in rows.items() if row is not None}


def providers(tx, uuids):
    """Return the providers that exist: dict of uuid to row of id, uuid, name."""
    return {row.uuid: row for row in _PROVIDERS.execute(tx, {"uuids": list(uuids)})}


def taken_names(tx, names):
    """Return which names are taken: dict of name to the uuid of its provider."""
    return {row.name: row.uuid for row in _NAMES.execute(tx, {"names": list(names)})}


def insert_providers(tx, rows):
    """Insert providers.

    :param rows: list of tuples of uuid, name, generation
    :returns: dict of uuid to row id
    :raises oslo_db.exception.DBDuplicateEntry: when another writer was faster
    """
    _INSERT_PROVIDERS.execute(tx, rows)
    return {uuid: row.id for uuid, row in providers(tx, [row[0] for row in rows]).items()}


def insert_inventories(tx, rows):
    """Insert inventories.

    :param rows: list of tuples of provider id, class id, total, reserved, min_unit, max_unit,
        step_size, allocation_ratio, capacity, used
    """
    if rows:
        _INSERT_INVENTORIES.execute(tx, rows)
