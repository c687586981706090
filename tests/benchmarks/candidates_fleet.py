# SPDX-License-Identifier: Apache-2.0
"""Fleets of trees, written straight into the tables of the service and of openstack-placement.

Both get the same rows with the same ids, by PostgreSQL's COPY.
"""

import dataclasses
import random
import uuid

import psycopg
import sqlalchemy as sa

_NOW = "2026-01-01 00:00:00"
_NULL = r"\N"
#: The project and the user of all consumers: openstack-placement answers 404 to a claim that makes
#: the same new one as another claim at the same time.
PROJECT = "project"
# Trees that are written at a time.
_AT_A_TIME = 2000
# Spreads the numbers of providers over all UUIDs.
_SPREAD = 0x9E3779B97F4A7C15F39CC0605CEDC835


@dataclasses.dataclass(frozen=True)
class Node:
    """A provider of a tree.

    :param parent: place of its parent in the tree; None for the root
    :param totals: class name to total
    :param used: class name to the amount that one consumer has
    """

    parent: int | None
    totals: dict
    traits: tuple = ()
    used: dict = dataclasses.field(default_factory=dict)
    ratio: dict = dataclasses.field(default_factory=dict)
    zone: int | None = None


class Fleet:
    """A number of trees, the same ones for the same arguments.

    :param trees: int, how many
    """

    #: str, by which the benchmark names it
    name = ""
    #: int, providers of a tree
    providers = 0
    #: int, aggregates of hosts
    zones = 0

    def __init__(self, trees):
        self.trees = trees

    def tree(self, number):
        """Return the nodes of a tree, depth first."""
        raise NotImplementedError

    @staticmethod
    def uuid(provider):
        """Return the UUID of the provider of an id."""
        digits = f"{provider * _SPREAD % 2 ** 128:032x}"
        return (f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}")

    def root(self, number):
        """Return the UUID of the root of a tree."""
        return self.uuid(number * self.providers + 1)

    @staticmethod
    def zone(number):
        """Return the UUID of the aggregate of a zone."""
        return str(uuid.UUID(int=number + 1, version=4))


class Hosts(Fleet):
    """Compute nodes with a network agent, four ports below it, and four GPUs: ten providers.

    :param full: share of those without room
    """

    name, providers = "hosts", 10
    zones = 20

    def __init__(self, trees, full=0.3):
        super().__init__(trees)
        self._full = full
        self._common = tuple(f"CUSTOM_NODE_CAPABILITY_{number:02}" for number in range(28))

    def tree(self, number):
        draw = random.Random(number)
        traits = [*self._common, *_COMPUTE_TRAITS, f"CUSTOM_RACK_TYPE_{number % 8}"]
        if draw.random() < 0.02:
            traits.append("COMPUTE_STATUS_DISABLED")
        used = {"VCPU": 256, "MEMORY_MB": 262144, "DISK_GB": 1000} if (
            draw.random() < self._full) else {
                "VCPU": draw.randint(1, 200), "MEMORY_MB": 1024 * draw.randint(1, 400),
                "DISK_GB": 10 * draw.randint(1, 300)}
        return [
            Node(None, {"VCPU": 64, "MEMORY_MB": 524288, "DISK_GB": 4000}, tuple(traits), used,
                 {"VCPU": 4.0}, draw.randrange(self.zones)),
            Node(0, {"NET_PACKET_RATE_KILOPACKET_PER_SEC": 8000}, ("CUSTOM_VNIC_TYPE_NORMAL",)),
            *(Node(1, {"NET_BW_EGR_KILOBIT_PER_SEC": 10_000_000,
                       "NET_BW_IGR_KILOBIT_PER_SEC": 10_000_000},
                   (f"CUSTOM_PHYSNET_{port % 2}", "CUSTOM_VNIC_TYPE_NORMAL"))
              for port in range(4)),
            *(Node(0, {"VGPU": 8}, ("CUSTOM_GPU_MODEL_A",)) for _ in range(4))]


    def host_with_room(self):
        """Return the UUID of the root of a tree that is not full."""
        for number in range(self.trees // 2, self.trees):
            root = self.tree(number)[0]
            if root.used["VCPU"] <= 200 and "COMPUTE_STATUS_DISABLED" not in root.traits:
                return self.root(number)
        raise RuntimeError("every host is full")


class NearlyFull(Hosts):
    """Hosts of which a share has room for one more server, and the others for none."""

    name = "nearly full hosts"
    #: what a server asks for
    wanted = {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 40}

    def __init__(self, trees, free):
        super().__init__(trees)
        self._step = max(1, trees // free)

    def tree(self, number):
        root, *others = super().tree(number)
        used = {"VCPU": 252 + 4 * bool(number % self._step), "MEMORY_MB": 262144, "DISK_GB": 100}
        traits = tuple(each for each in root.traits if each != "COMPUTE_STATUS_DISABLED")
        return [dataclasses.replace(root, used=used, traits=traits), *others]


class Devices(Fleet):
    """Compute nodes with eight children that have one unit of each of three classes.

    One child's units of two of the classes are used, so that eight of them never fit.
    """

    name, providers = "hosts of eight devices", 9

    def tree(self, number):
        one = {"CUSTOM_DEVICE": 1, "CUSTOM_SHORT": 1, "CUSTOM_SHORT_TOO": 1}
        return [
            Node(None, {"VCPU": 64, "MEMORY_MB": 524288, "DISK_GB": 4000},
                 ("COMPUTE_NODE",), {"VCPU": number % 60 + 1}, {"VCPU": 4.0}),
            *(Node(0, one) for _ in range(7)),
            Node(0, one, used={"CUSTOM_SHORT": 1, "CUSTOM_SHORT_TOO": 1})]


_COMPUTE_TRAITS = (
    "COMPUTE_NODE", "COMPUTE_IMAGE_TYPE_QCOW2", "COMPUTE_IMAGE_TYPE_RAW", "COMPUTE_RESCUE_BFV",
    "COMPUTE_NET_ATTACH_INTERFACE", "COMPUTE_VOLUME_ATTACH_WITH_TAG", "COMPUTE_TRUSTED_CERTS",
    "COMPUTE_STORAGE_BUS_VIRTIO", "HW_CPU_X86_AVX2", "HW_CPU_X86_SSE42", "HW_CPU_X86_VMX")


def write(url, fleet, is_peer):
    """Fill a store that has no providers.

    :param url: str, SQLAlchemy URL of the PostgreSQL database
    :param fleet: :class:`Fleet`
    :param is_peer: bool, whether the tables are openstack-placement's
    """
    address = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        # Triggers of foreign keys would take most of the time.
        connection.execute("SET session_replication_role = replica")
        _Writer(connection, fleet, is_peer).write()
        connection.execute("ANALYZE")


class _Writer:

    def __init__(self, connection, fleet, is_peer):
        self._connection, self._fleet, self._is_peer = connection, fleet, is_peer
        kinds = [node for number in range(min(fleet.trees, 2000)) for node in fleet.tree(number)]
        self._classes = self._ids("resource_classes", {
            name for node in kinds for name in node.totals})
        self._traits = self._ids("traits", {name for node in kinds for name in node.traits})

    def _ids(self, table, names):
        """Return the ids of classes or traits; those that the table lacks are added."""
        known = dict(self._connection.execute(f"SELECT name, id FROM {table}").fetchall())
        last = max([9999 if table == "resource_classes" else 0, *known.values()])
        for id_, name in enumerate(sorted(names - known.keys()), last + 1):
            self._connection.execute(
                f"INSERT INTO {table} (id, name, created_at, updated_at) "
                "VALUES (%s, %s, %s, %s)", (id_, name, _NOW, _NOW))
            known[name] = id_
        return known

    def write(self):
        if self._is_peer:
            for table in ("projects", "users"):
                self._copy(table, ("id", "external_id"), [(1, PROJECT)])
        self._copy("placement_aggregates" if self._is_peer else "aggregates",
                   ("id", "uuid", "created_at", "updated_at"),
                   ((zone + 1, self._fleet.zone(zone), _NOW, _NOW)
                    for zone in range(self._fleet.zones)))
        for first in range(0, self._fleet.trees, _AT_A_TIME):
            self._write_trees(range(first, min(first + _AT_A_TIME, self._fleet.trees)))
        for table in ("resource_providers", "consumers", "traits"):
            self._connection.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}")

    def _write_trees(self, numbers):
        nodes = list(enumerate((node for number in numbers for node in self._fleet.tree(number)),
                               numbers.start * self._fleet.providers + 1))
        self._copy("resource_providers", (
            "id", "uuid", "name", "generation", "parent_provider_id", "root_provider_id",
            "created_at", "updated_at"), self._providers(nodes))
        self._copy("inventories", (
            "resource_provider_id", "resource_class_id", "total", "reserved", "min_unit",
            "max_unit", "step_size", "allocation_ratio", "created_at", "updated_at",
            *(() if self._is_peer else ("capacity", "used"))), self._inventories(nodes))
        self._copy("resource_provider_traits", ("trait_id", "resource_provider_id"), (
            (self._traits[name], id_) for id_, node in nodes for name in node.traits))
        self._copy("resource_provider_aggregates", ("aggregate_id", "resource_provider_id"), (
            (node.zone + 1, id_) for id_, node in nodes if node.zone is not None))
        self._write_consumers(nodes)

    def _providers(self, nodes):
        size = self._fleet.providers
        for id_, node in nodes:
            root = id_ - (id_ - 1) % size
            is_root = node.parent is None
            yield (id_, self._fleet.uuid(id_), f"provider {id_}", 1,
                   None if is_root else root + node.parent,
                   root if self._is_peer or not is_root else None, _NOW, _NOW)

    def _inventories(self, nodes):
        for id_, node in nodes:
            for name, total in node.totals.items():
                ratio = node.ratio.get(name, 1.0)
                yield (id_, self._classes[name], total, 0, 1, total, 1, ratio, _NOW, _NOW,
                       *(() if self._is_peer else (int(total * ratio), node.used.get(name, 0))))

    def _write_consumers(self, nodes):
        """Write one consumer for each provider of which something is used."""
        project = 1 if self._is_peer else PROJECT
        self._copy("consumers", (
            "id", "uuid", "project_id", "user_id", "generation", "created_at", "updated_at"), (
                (id_, self._consumer(id_), project, project, 1, _NOW, _NOW)
                for id_, node in nodes if node.used))
        self._copy("allocations", (
            "consumer_id", "resource_provider_id", "resource_class_id", "used", "created_at",
            "updated_at"), (
                (self._consumer(id_) if self._is_peer else id_, id_, self._classes[name], amount,
                 _NOW, _NOW)
                for id_, node in nodes for name, amount in node.used.items()))

    def _consumer(self, id_):
        return self._fleet.uuid(id_ + 10 ** 9)

    def _copy(self, table, columns, rows):
        with self._connection.cursor() as cursor, cursor.copy(
                f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
            copy.write("".join(
                "\t".join(_NULL if value is None else str(value) for value in row) + "\n"
                for row in rows))
