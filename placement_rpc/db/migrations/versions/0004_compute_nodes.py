# SPDX-License-Identifier: Apache-2.0
"""Compute nodes as nova has them, and the pins and the oldest clients of services.

The first of the expand branch: it only adds, so services of the previous release keep working.

Revision: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from placement_rpc.db.migrations import online

revision = "0004"
down_revision = "0003"
branch_labels = ("expand",)
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
UUID = sa.String(36).with_variant(
    mysql.CHAR(36, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
NAME = sa.String(200).with_variant(
    mysql.VARCHAR(200, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")
HOST = sa.String(255).with_variant(
    mysql.VARCHAR(255, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")
TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
NUMBER = sa.BigInteger()
RATIO = sa.Double()


def upgrade():
    found = sa.inspect(op.get_bind())
    for column in ("pin", "oldest_caller"):
        online.add_column(found, "services", column, "VARCHAR(32)")
    online.create_table(
        "compute_nodes",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=True),
        sa.Column("service_id", NUMBER, nullable=True),
        sa.Column("host", HOST, nullable=True),
        sa.Column("hypervisor_hostname", NAME, nullable=True),
        sa.Column("hypervisor_type", sa.String(length=255), nullable=True),
        sa.Column("hypervisor_version", NUMBER, nullable=True),
        sa.Column("host_ip", sa.String(length=39), nullable=True),
        *(sa.Column(name, NUMBER, nullable=True) for name in (
            "vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used",
            "free_ram_mb", "free_disk_gb")),
        *(sa.Column(name, RATIO, nullable=True) for name in (
            "cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio")),
        sa.Column("disk_available_least", NUMBER, nullable=True),
        sa.Column("current_workload", NUMBER, nullable=True),
        sa.Column("running_vms", NUMBER, nullable=True),
        sa.Column("mapped", sa.Integer(), nullable=True),
        *(sa.Column(name, TEXT, nullable=True) for name in (
            "cpu_info", "metrics", "stats", "supported_instances", "pci_stats",
            "numa_topology")),
        sa.Column("shares_disk", sa.Boolean(), nullable=True),
        sa.Column("pci_in_use", TEXT, nullable=True),
        sa.Column("inventory_migrated_at", TIME, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_compute_nodes"),
        sa.UniqueConstraint("host", "hypervisor_hostname", name="uq_compute_nodes_host_name"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4",
    )
    online.create_index("ix_compute_nodes_uuid", "compute_nodes", ["uuid"])
    online.create_index(
        "ix_compute_nodes_migrated", "compute_nodes", ["inventory_migrated_at", "id"])
