# SPDX-License-Identifier: Apache-2.0
"""The tables.

Plain tables rather than mapped classes: every hot path reads and writes sets of rows, and the
rules are in ``accounting``. ``tests/integration/test_store.py`` checks that the migrations give
the tables of this module, on all three databases.

Sources: the data model sections of the specifications (inventories: compute-node-inventory;
resource_provider_aggregates: generic-resource-pools; resource_classes:
custom-resource-classes).
"""

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

metadata = sa.MetaData(naming_convention={
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
})

# SQLite generates ids only for a key of exactly the type INTEGER.
_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_Uuid = sa.String(36).with_variant(
    mysql.CHAR(36, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
# Names of providers and classes are case-sensitive on every database.
_Name = sa.String(200).with_variant(
    mysql.VARCHAR(200, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")
_Host = sa.String(255).with_variant(
    mysql.VARCHAR(255, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")
_ClassName = sa.String(255).with_variant(
    mysql.VARCHAR(255, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
_RequestId = sa.String(64).with_variant(
    mysql.VARCHAR(64, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
_Time = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
_Text = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
# MariaDB's FLOAT holds seven digits.
_Ratio = sa.Double()


def _timestamps():
    return (sa.Column("created_at", _Time, nullable=False),
            sa.Column("updated_at", _Time, nullable=False))


resource_providers = sa.Table(
    "resource_providers", metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    sa.Column("uuid", _Uuid, nullable=False),
    sa.Column("name", _Name, nullable=False),
    sa.Column("generation", sa.BigInteger, nullable=False),
    *_timestamps(),
    # Both are NULL for the root of a tree, which many providers are; a provider that a conductor
    # of an older release creates is one.
    sa.Column("parent_provider_id", sa.ForeignKey("resource_providers.id"), nullable=True),
    sa.Column("root_provider_id", sa.ForeignKey("resource_providers.id"), nullable=True),
    sa.UniqueConstraint("uuid"),
    sa.UniqueConstraint("name"),
    sa.Index("ix_resource_providers_parent", "parent_provider_id"),
    sa.Index("ix_resource_providers_root", "root_provider_id"),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

traits = sa.Table(
    "traits", metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    # A standard trait of os-traits, or a custom one.
    sa.Column("name", _ClassName, nullable=False),
    *_timestamps(),
    sa.UniqueConstraint("name"),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

resource_provider_traits = sa.Table(
    "resource_provider_traits", metadata,
    sa.Column("trait_id", sa.ForeignKey(traits.c.id), primary_key=True),
    sa.Column("resource_provider_id", sa.ForeignKey(resource_providers.c.id),
              primary_key=True),
    sa.Index("ix_resource_provider_traits_provider", "resource_provider_id"),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

# Types are never deleted while clients change consumers, so consumers refer to them without a
# foreign key, which would be a long change of a large table.
consumer_types = sa.Table(
    "consumer_types", metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", _ClassName, nullable=False),
    *_timestamps(),
    sa.UniqueConstraint("name"),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

resource_classes = sa.Table(
    "resource_classes", metadata,
    # The id of a standard class is its index in os-resource-classes; ids of custom classes start
    # at 10000 (FIRST_CUSTOM_ID).
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", _ClassName, nullable=False),
    *_timestamps(),
    sa.UniqueConstraint("name"),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

inventories = sa.Table(
    "inventories", metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    sa.Column("resource_provider_id", sa.ForeignKey(resource_providers.c.id),
              nullable=False),
    sa.Column("resource_class_id", sa.ForeignKey(resource_classes.c.id), nullable=False),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("reserved", sa.Integer, nullable=False),
    sa.Column("min_unit", sa.Integer, nullable=False),
    sa.Column("max_unit", sa.Integer, nullable=False),
    sa.Column("step_size", sa.Integer, nullable=False),
    sa.Column("allocation_ratio", _Ratio, nullable=False),
    # (total - reserved) * allocation_ratio, rounded down once when it is written: queries and
    # rules then compare whole numbers and cannot disagree about a fraction.
    sa.Column("capacity", sa.BigInteger, nullable=False),
    # The sum of the allocations, kept in the transaction that changes them.
    sa.Column("used", sa.BigInteger, nullable=False),
    *_timestamps(),
    sa.UniqueConstraint("resource_provider_id", "resource_class_id",
                        name="uq_inventories_provider_class"),
    # For the query whether a class is in use, and for the foreign key of the class. The amounts
    # are not part of the index: each claim would otherwise have to write it too.
    sa.Index("ix_inventories_class_provider", "resource_class_id", "resource_provider_id"),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

consumers = sa.Table(
    "consumers", metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    sa.Column("uuid", _Uuid, nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("generation", sa.BigInteger, nullable=False),
    *_timestamps(),
    # NULL for a consumer whose type is not known.
    sa.Column("consumer_type_id", sa.Integer, nullable=True),
    sa.UniqueConstraint("uuid"),
    sa.Index("ix_consumers_project_id_user_id", "project_id", "user_id"),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

allocations = sa.Table(
    "allocations", metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    sa.Column("consumer_id", sa.ForeignKey(consumers.c.id), nullable=False),
    sa.Column("resource_provider_id", sa.BigInteger, nullable=False),
    sa.Column("resource_class_id", sa.Integer, nullable=False),
    sa.Column("used", sa.Integer, nullable=False),
    *_timestamps(),
    # An allocation needs an inventory, which cannot be deleted before its allocations.
    sa.ForeignKeyConstraint(
        ["resource_provider_id", "resource_class_id"],
        [inventories.c.resource_provider_id, inventories.c.resource_class_id],
        name="fk_allocations_inventory"),
    sa.UniqueConstraint("consumer_id", "resource_provider_id", "resource_class_id",
                        name="uq_allocations_held"),
    sa.Index("ix_allocations_inventory", "resource_provider_id", "resource_class_id"),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

aggregates = sa.Table(
    "aggregates", metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    sa.Column("uuid", _Uuid, nullable=False),
    *_timestamps(),
    sa.UniqueConstraint("uuid"),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

resource_provider_aggregates = sa.Table(
    "resource_provider_aggregates", metadata,
    sa.Column("aggregate_id", sa.ForeignKey(aggregates.c.id), primary_key=True),
    sa.Column("resource_provider_id", sa.ForeignKey(resource_providers.c.id),
              primary_key=True),
    sa.Index("ix_resource_provider_aggregates_provider", "resource_provider_id"),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

requests = sa.Table(
    "requests", metadata,
    sa.Column("request_id", _RequestId, primary_key=True),
    sa.Column("method", sa.String(64), nullable=False),
    # SHA-256 of the method and its arguments: distinguishes a repeated request from a reused id.
    sa.Column("fingerprint", sa.String(64), nullable=False),
    # JSON: {"result": ...} or {"error": {"code": ..., "kwargs": ...}}
    sa.Column("outcome", _Text, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
    sa.Index("ix_requests_created_at", "created_at"),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

services = sa.Table(
    "services", metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    sa.Column("binary", sa.String(64), nullable=False),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("worker", sa.Integer, nullable=False),
    sa.Column("version", sa.String(32), nullable=False),
    sa.Column("rpc_version", sa.String(16), nullable=False),
    sa.Column("started_at", _Time, nullable=False),
    sa.Column("last_seen_at", _Time, nullable=False),
    # [upgrade_levels] placement, and the oldest release among the recent clients; NULL for
    # services of a release that writes neither.
    sa.Column("pin", sa.String(32), nullable=True),
    sa.Column("oldest_caller", sa.String(32), nullable=True),
    sa.UniqueConstraint("binary", "host", "worker"),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

events = sa.Table(
    "events", metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    sa.Column("event_id", _Uuid, nullable=False),
    sa.Column("event_type", sa.String(64), nullable=False),
    sa.Column("occurred_at", _Time, nullable=False),
    # JSON: the versioned payload, without its position.
    sa.Column("payload", _Text, nullable=False),
    # Its position in the stream, without gaps; set by the relay, since ids commit out of order.
    sa.Column("position", sa.BigInteger, nullable=True),
    # JSON, what its transaction changed for candidates (accounting.outbox); empty for nothing,
    # and NULL if it is not known.
    sa.Column("touched", _Text, nullable=True),
    # The consumer of a deletion of allocations; NULL for other events, and if a process of an
    # older release wrote it.
    sa.Column("released_consumer", _Uuid, nullable=True),
    sa.UniqueConstraint("position"),
    sa.Index("ix_events_occurred_at", "occurred_at"),
    # Of deletions only, where the database has such indexes: a claim does not pay for it.
    sa.Index("ix_events_released", "released_consumer", "event_type", "occurred_at",
             postgresql_where=sa.text("event_type = 'allocation.delete'"),
             sqlite_where=sa.text("event_type = 'allocation.delete'")),
    # MariaDB has no such indexes, and sorts even with one of all events. SQLite reads the index of
    # the position, which has the ids in order.
    sa.Index("ix_events_waiting", "position", "id", info={"dialect": "postgresql"},
             postgresql_where=sa.text("position IS NULL")),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

# The holders of tasks that one process at a time may do.
leases = sa.Table(
    "leases", metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("holder", sa.String(128), nullable=False),
    sa.Column("expires_at", _Time, nullable=False),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

# One row: the last position that was given to an event, and the last that the broker confirmed.
relay_state = sa.Table(
    "relay_state", metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("last_position", sa.BigInteger, nullable=False),
    sa.Column("published_position", sa.BigInteger, nullable=False),
    sa.Column("updated_at", _Time, nullable=False),
    # The numbering that the positions belong to; NULL until a relay of this release works.
    sa.Column("epoch", _Uuid, nullable=True),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

# One row: the current or last snapshot of all allocations.
snapshot_state = sa.Table(
    "snapshot_state", metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("snapshot_id", _Uuid, nullable=False),
    sa.Column("begun_at", _Time, nullable=False),
    sa.Column("ended_at", _Time, nullable=True),
    # The last consumer that it has, in the order of uuids, and the number of its consumers.
    sa.Column("last_consumer", _Uuid, nullable=False),
    sa.Column("consumers", sa.BigInteger, nullable=False),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

# One row, which the schema brings along: whether changes are refused, and until what. Changes read
# it in their transactions, and lock it there on MariaDB, so nothing else belongs here.
store_hold = sa.Table(
    "store_hold", metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    # NULL while changes are accepted.
    sa.Column("held_since", _Time, nullable=True),
    sa.Column("reason", sa.String(255), nullable=True),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

# One row: the import of OpenStack Placement's data.
import_state = sa.Table(
    "import_state", metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    # The database that was read, without its password.
    sa.Column("source", sa.String(255), nullable=False),
    sa.Column("begun_at", _Time, nullable=False),
    # NULL until the operator says that the import is finished.
    sa.Column("finished_at", _Time, nullable=True),
    # Complete passes, when the latest one began, and whether it has been interrupted.
    sa.Column("passes", sa.Integer, nullable=False),
    sa.Column("pass_begun_at", _Time, nullable=False),
    sa.Column("is_interrupted", sa.Boolean, nullable=False),
    # The latest pass: an earlier one that still runs ends when it finds another one here.
    sa.Column("pass_id", _Uuid, nullable=False),
    # The highest id of an event when the import began.
    sa.Column("last_event_before", sa.BigInteger, nullable=False),
    # How many events had ever been written when the import began, and those that it has written
    # itself; NULL if a release began it that did not count them.
    sa.Column("events_before", sa.BigInteger, nullable=True),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

# How often commands were attempted, to detect those during which processes end.
command_attempts = sa.Table(
    "command_attempts", metadata,
    sa.Column("command_id", _RequestId, primary_key=True),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("tried_at", _Time, nullable=False),
    sa.Index("ix_command_attempts_tried_at", "tried_at"),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)

# nova's columns of a compute node. Those of COMPUTE_NODE_CAPACITY are read and written only until
# the node's capacity is in inventories; the contract branch removes them.
COMPUTE_NODE_CAPACITY = (
    "vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used",
    "free_ram_mb", "free_disk_gb", "cpu_allocation_ratio", "ram_allocation_ratio",
    "disk_allocation_ratio")

compute_nodes = sa.Table(
    "compute_nodes", metadata,
    sa.Column("id", _Id, primary_key=True, autoincrement=True),
    # Generated on demand if nova had none; NOT NULL and unique after the contract branch.
    sa.Column("uuid", _Uuid, nullable=True),
    sa.Column("service_id", sa.BigInteger, nullable=True),
    sa.Column("host", _Host, nullable=True),
    sa.Column("hypervisor_hostname", _Name, nullable=True),
    sa.Column("hypervisor_type", sa.String(255), nullable=True),
    sa.Column("hypervisor_version", sa.BigInteger, nullable=True),
    sa.Column("host_ip", sa.String(39), nullable=True),
    *(sa.Column(name, _Ratio if name.endswith("_ratio") else sa.BigInteger, nullable=True)
      for name in COMPUTE_NODE_CAPACITY),
    sa.Column("disk_available_least", sa.BigInteger, nullable=True),
    sa.Column("current_workload", sa.BigInteger, nullable=True),
    sa.Column("running_vms", sa.BigInteger, nullable=True),
    sa.Column("mapped", sa.Integer, nullable=True),
    sa.Column("cpu_info", _Text, nullable=True),
    sa.Column("metrics", _Text, nullable=True),
    # JSON, as nova writes it.
    sa.Column("stats", _Text, nullable=True),
    sa.Column("supported_instances", _Text, nullable=True),
    sa.Column("pci_stats", _Text, nullable=True),
    sa.Column("numa_topology", _Text, nullable=True),
    # What nova has in other tables or not at all: whether the node's disk is another provider's;
    # and JSON, class to number of claimed or allocated devices, which pci_stats leaves out.
    sa.Column("shares_disk", sa.Boolean, nullable=True),
    sa.Column("pci_in_use", _Text, nullable=True),
    # When its capacity was migrated to inventories; NULL while it is in these columns.
    sa.Column("inventory_migrated_at", _Time, nullable=True),
    *_timestamps(),
    sa.UniqueConstraint("host", "hypervisor_hostname", name="uq_compute_nodes_host_name"),
    sa.Index("ix_compute_nodes_uuid", "uuid"),
    sa.Index("ix_compute_nodes_migrated", "inventory_migrated_at", "id"),
    mysql_engine="InnoDB", mysql_charset="utf8mb4",
)
