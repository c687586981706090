# SPDX-License-Identifier: Apache-2.0
"""The outbox: events, the lease of their relay, and its progress.

Revision: 0002
Revises: 0001
"""

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from placement_rpc.db.migrations import online

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
UUID = sa.String(36).with_variant(
    mysql.CHAR(36, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
TABLE = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}


def upgrade():
    online.create_table(
        "events",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("event_id", UUID, nullable=False),
        sa.Column("event_type", sa.String(length=64), nullable=False),
        sa.Column("occurred_at", TIME, nullable=False),
        sa.Column("payload", TEXT, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.UniqueConstraint("position", name="uq_events_position"),
        **TABLE,
    )
    online.create_index("ix_events_occurred_at", "events", ["occurred_at"])
    online.create_table(
        "leases",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("holder", sa.String(length=128), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
        **TABLE,
    )
    online.create_table(
        "relay_state",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("last_position", sa.BigInteger(), nullable=False),
        sa.Column("published_position", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_relay_state"),
        **TABLE,
    )
