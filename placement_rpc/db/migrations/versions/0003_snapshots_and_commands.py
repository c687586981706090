# SPDX-License-Identifier: Apache-2.0
"""The progress of the snapshot of all allocations, and attempts at commands.

Revision: 0003
Revises: 0002
"""

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from placement_rpc.db.migrations import online

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

UUID = sa.String(36).with_variant(
    mysql.CHAR(36, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
REQUEST_ID = sa.String(64).with_variant(
    mysql.VARCHAR(64, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
TABLE = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}


def upgrade():
    online.create_table(
        "snapshot_state",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("snapshot_id", UUID, nullable=False),
        sa.Column("begun_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("last_consumer", UUID, nullable=False),
        sa.Column("consumers", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_snapshot_state"),
        **TABLE,
    )
    online.create_table(
        "command_attempts",
        sa.Column("command_id", REQUEST_ID, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("tried_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("command_id", name="pk_command_attempts"),
        **TABLE,
    )
    online.create_index("ix_command_attempts_tried_at", "command_attempts", ["tried_at"])
