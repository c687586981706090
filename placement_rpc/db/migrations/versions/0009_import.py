# SPDX-License-Identifier: Apache-2.0
"""The hold of the store, and the progress of an import. It only adds.

Both are new tables. ``store_hold`` has its row from the start: changes lock it on MariaDB, where a
row that does not exist cannot be locked. Conductors of older releases know nothing of either
table, so an import does not begin while one of them is alive.

Revision: 0009
Revises: 0008
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from placement_rpc.db.migrations import online

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

UUID = sa.String(36).with_variant(
    mysql.CHAR(36, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
TABLE = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}


def upgrade():
    # MariaDB commits each step: steps of an interrupted attempt are not repeated.
    connection = op.get_bind()
    online.create_table(
        "store_hold",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("held_since", TIME, nullable=True),
        sa.Column("reason", sa.String(255), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_store_hold"),
        **TABLE,
    )
    hold = sa.table("store_hold", sa.column("id", sa.Integer))
    if connection.execute(sa.select(hold.c.id)).first() is None:
        connection.execute(sa.insert(hold), {"id": 1})
    online.create_table(
        "import_state",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source", sa.String(255), nullable=False),
        sa.Column("begun_at", TIME, nullable=False),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("passes", sa.Integer(), nullable=False),
        sa.Column("pass_begun_at", TIME, nullable=False),
        sa.Column("is_interrupted", sa.Boolean(), nullable=False),
        sa.Column("pass_id", UUID, nullable=False),
        sa.Column("last_event_before", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_import_state"),
        **TABLE,
    )
