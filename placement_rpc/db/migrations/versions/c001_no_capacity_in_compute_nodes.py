# SPDX-License-Identifier: Apache-2.0
"""Nodes have their capacity in inventories alone, and a uuid each.

The first of the contract branch: it removes columns that the previous release needs
(compute-node-inventory, the note at its 4d, and the columns of its 4a and 4b).

No statement waits for a lock for more than ``online.PATIENCE`` seconds, since all reports of
compute nodes would wait behind it for as long as a backup reads the table. After that it fails,
and can be run again.

Revision: c001
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from placement_rpc.db.migrations import online

revision = "c001"
down_revision = "0003"
branch_labels = ("contract",)
depends_on = "0004"

UUID = sa.String(36).with_variant(
    mysql.CHAR(36, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")


CAPACITY = ("vcpus", "memory_mb", "local_gb", "vcpus_used", "memory_mb_used", "local_gb_used",
            "free_ram_mb", "free_disk_gb", "cpu_allocation_ratio", "ram_allocation_ratio",
            "disk_allocation_ratio")


def upgrade():
    with online.patience():
        # MariaDB commits each step: steps of an interrupted attempt are not repeated.
        there = sa.inspect(op.get_bind())
        columns = {each["name"] for each in there.get_columns("compute_nodes")}
        unique = {each["name"] for each in there.get_unique_constraints("compute_nodes")}
        indexes = {each["name"] for each in there.get_indexes("compute_nodes")}
        with op.batch_alter_table("compute_nodes") as nodes:
            if "uq_compute_nodes_uuid" not in unique:
                nodes.create_unique_constraint("uq_compute_nodes_uuid", ["uuid"])
            nodes.alter_column("uuid", existing_type=UUID, nullable=False)
            for name in CAPACITY:
                if name in columns:
                    nodes.drop_column(name)
        if "ix_compute_nodes_uuid" in indexes:
            op.drop_index("ix_compute_nodes_uuid", "compute_nodes")
