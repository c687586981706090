# SPDX-License-Identifier: Apache-2.0
"""A large cloud in a database of OpenStack Placement.

Each compute node is a tree of five providers: the node, two NUMA nodes, and a group of GPUs on
each. Its servers hold CPUs and memory of it, and disk of the storage that a rack shares.
"""

import datetime
import itertools
import typing

import os_traits
import sqlalchemy as sa
from placement.db.sqlalchemy import models

from tests.placement_contents import inventory, uuid_of

_BATCH = 5000
_NOW = datetime.datetime(2026, 1, 1)
_RACK = 40
_PROVIDERS = 5
#: What a server holds: CPUs and memory of its node, disk of the shared storage
_SERVER = (("VCPU", 2), ("MEMORY_MB", 4096), ("DISK_GB", 20))
_TRAITS = 30


class Size(typing.NamedTuple):
    """How large a cloud is.

    :ivar computes: int, compute nodes, of five providers each
    :ivar allocations: int, of servers with three each
    """

    computes: int
    allocations: int


class _Writer:
    """Inserts rows in batches.

    :param connection: of SQLAlchemy
    """

    def __init__(self, connection):
        self._connection = connection
        self._ids = {
            model: dict(connection.execute(sa.select(model.name, model.id)).all())
            for model in (models.ResourceClass, models.Trait)}

    def class_id(self, name):
        """Return the id of a resource class."""
        return self._ids[models.ResourceClass][name]

    def trait_id(self, name):
        """Return the id of a trait."""
        return self._ids[models.Trait][name]

    def insert(self, model, rows):
        """Insert rows, an iterable of dicts, and commit each batch."""
        rows = iter(rows)
        while batch := list(itertools.islice(rows, _BATCH)):
            self._connection.execute(sa.insert(model.__table__), [
                {"created_at": _NOW, "updated_at": _NOW, **row} for row in batch])
            self._connection.commit()


def fill(cloud, size):
    """Fill an empty database.

    :param cloud: :class:`tests.placement_cloud.PlacementCloud`
    :param size: :class:`Size`
    """
    with cloud.without_foreign_keys() as connection:
        if connection.dialect.name == "mysql":
            connection.exec_driver_sql("SET unique_checks = 0")
        writer = _Writer(connection)
        racks = range(1, 2 + size.computes // _RACK)
        writer.insert(models.PlacementAggregate, (
            {"id": rack, "uuid": uuid_of(f"rack {rack}")} for rack in racks))
        for model, rows in (
                (models.ResourceProvider, _providers(size)),
                (models.ResourceProvider, _shared_storage(size, racks)),
                (models.Inventory, _inventories(size, racks, writer)),
                (models.ResourceProviderTrait, _traits(size, racks, writer)),
                (models.ResourceProviderAggregate, _aggregates(size, racks)),
                (models.Project, ({"id": id_, "external_id": f"project {id_}"}
                                  for id_ in range(1, 1001))),
                (models.User, ({"id": id_, "external_id": f"user {id_}"}
                               for id_ in range(1, 5001))),
                (models.ConsumerType, [{"id": 1, "name": "INSTANCE"}]),
                (models.Consumer, _consumers(size)),
                (models.Allocation, _allocations(size, writer))):
            writer.insert(model, rows)
        if connection.dialect.name == "postgresql":
            _set_sequences(connection)
        connection.commit()


def _set_sequences(connection):
    """Let new rows get ids above those that were given."""
    for table in ("resource_providers", "placement_aggregates", "projects", "users",
                  "consumer_types", "consumers"):
        connection.exec_driver_sql(
            f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), "
            f"(SELECT max(id) FROM {table}))")


def host(number):
    """Return the name of a compute node; the number of the first is 0."""
    return f"compute{number}.example"


def usages(size):
    """Return dict of a node's uuid to the VCPU that its servers use."""
    found = dict.fromkeys((uuid_of(host(number)) for number in range(size.computes)), 0)
    for id_ in range(1, 1 + _server_count(size)):
        found[uuid_of(host(id_ % size.computes))] += dict(_SERVER)["VCPU"]
    return found


def _root_id(number):
    return 1 + number * _PROVIDERS


def _storage_id(size, rack):
    return size.computes * _PROVIDERS + rack


def _providers(size):
    for number in range(size.computes):
        root, name = _root_id(number), host(number)
        for part, parent, suffix in ((0, None, ""), (1, 0, " numa0"), (2, 0, " numa1"),
                                     (3, 1, " numa0 gpu"), (4, 2, " numa1 gpu")):
            yield {"id": root + part, "uuid": uuid_of(name + suffix), "name": name + suffix,
                   "generation": 4, "root_provider_id": root,
                   "parent_provider_id": None if parent is None else root + parent}


def _shared_storage(size, racks):
    for rack in racks:
        id_ = _storage_id(size, rack)
        yield {"id": id_, "uuid": uuid_of(f"storage {rack}"), "name": f"storage {rack}",
               "generation": 2, "root_provider_id": id_}


def _inventories(size, racks, writer):
    for number in range(size.computes):
        root = _root_id(number)
        for provider, name, fields in (
                (root, "VCPU", inventory(64, allocation_ratio=4.0)),
                (root, "MEMORY_MB", inventory(262144, reserved=512)),
                (root + 3, "VGPU", inventory(8)), (root + 4, "VGPU", inventory(8))):
            yield {"resource_provider_id": provider, "resource_class_id": writer.class_id(name),
                   **fields}
    for rack in racks:
        yield {"resource_provider_id": _storage_id(size, rack),
               "resource_class_id": writer.class_id("DISK_GB"), **inventory(1_000_000)}


def _traits(size, racks, writer):
    names = sorted(os_traits.get_traits("HW_CPU") + os_traits.get_traits("COMPUTE"))[:_TRAITS]
    of_node = [writer.trait_id(name) for name in names]
    of_numa, sharing = (writer.trait_id(name) for name in (
        "HW_NUMA_ROOT", "MISC_SHARES_VIA_AGGREGATE"))
    for number in range(size.computes):
        root = _root_id(number)
        for trait in of_node:
            yield {"resource_provider_id": root, "trait_id": trait}
        for part in (1, 2):
            yield {"resource_provider_id": root + part, "trait_id": of_numa}
    for rack in racks:
        yield {"resource_provider_id": _storage_id(size, rack), "trait_id": sharing}


def _aggregates(size, racks):
    for number in range(size.computes):
        yield {"resource_provider_id": _root_id(number), "aggregate_id": 1 + number // _RACK}
    for rack in racks:
        yield {"resource_provider_id": _storage_id(size, rack), "aggregate_id": rack}


def _server_count(size):
    return -(-size.allocations // len(_SERVER))


def _consumers(size):
    for id_ in range(1, 1 + _server_count(size)):
        yield {"id": id_, "uuid": uuid_of(f"server {id_}"), "project_id": 1 + id_ % 1000,
               "user_id": 1 + id_ % 5000, "generation": 1, "consumer_type_id": 1}


def _allocations(size, writer):
    rows = _all_allocations(size, writer)
    return itertools.islice(rows, size.allocations)


def _all_allocations(size, writer):
    for id_ in range(1, 1 + _server_count(size)):
        number = id_ % size.computes
        for name, used in _SERVER:
            provider = _root_id(number) if name != "DISK_GB" else _storage_id(
                size, 1 + number // _RACK)
            yield {"resource_provider_id": provider, "consumer_id": uuid_of(f"server {id_}"),
                   "resource_class_id": writer.class_id(name), "used": used}
