# SPDX-License-Identifier: Apache-2.0
"""The first schema.

Revision: 0001
"""

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from placement_rpc.db.migrations import online

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _ascii(length):
    # Compared byte by byte, as on the other databases.
    return mysql.VARCHAR(length, charset="ascii", collation="ascii_bin")


ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
UUID = sa.String(36).with_variant(
    mysql.CHAR(36, charset="ascii", collation="ascii_bin"), "mysql", "mariadb"
)
NAME = sa.String(200).with_variant(
    mysql.VARCHAR(200, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)
CLASS_NAME = sa.String(255).with_variant(_ascii(255), "mysql", "mariadb")
REQUEST_ID = sa.String(64).with_variant(_ascii(64), "mysql", "mariadb")
TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
TABLE = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}


def upgrade():
    online.create_table(
        "aggregates",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_aggregates"),
        sa.UniqueConstraint("uuid", name="uq_aggregates_uuid"),
        **TABLE,
    )
    online.create_table(
        "consumers",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_consumers"),
        sa.UniqueConstraint("uuid", name="uq_consumers_uuid"),
        **TABLE,
    )
    online.create_index("ix_consumers_project_id_user_id", "consumers", ["project_id", "user_id"])
    online.create_table(
        "requests",
        sa.Column("request_id", REQUEST_ID, nullable=False),
        sa.Column("method", sa.String(length=64), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("outcome", TEXT, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("request_id", name="pk_requests"),
        **TABLE,
    )
    online.create_index("ix_requests_created_at", "requests", ["created_at"])
    online.create_table(
        "resource_classes",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", CLASS_NAME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resource_classes"),
        sa.UniqueConstraint("name", name="uq_resource_classes_name"),
        **TABLE,
    )
    online.create_table(
        "resource_providers",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resource_providers"),
        sa.UniqueConstraint("name", name="uq_resource_providers_name"),
        sa.UniqueConstraint("uuid", name="uq_resource_providers_uuid"),
        **TABLE,
    )
    online.create_table(
        "services",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("binary", sa.String(length=64), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("worker", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(length=32), nullable=False),
        sa.Column("rpc_version", sa.String(length=16), nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("last_seen_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_services"),
        sa.UniqueConstraint("binary", "host", "worker", name="uq_services_binary_host_worker"),
        **TABLE,
    )
    online.create_table(
        "inventories",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("resource_provider_id", ID, nullable=False),
        sa.Column("resource_class_id", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("reserved", sa.Integer(), nullable=False),
        sa.Column("min_unit", sa.Integer(), nullable=False),
        sa.Column("max_unit", sa.Integer(), nullable=False),
        sa.Column("step_size", sa.Integer(), nullable=False),
        sa.Column("allocation_ratio", sa.Double(), nullable=False),
        sa.Column("capacity", sa.BigInteger(), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["resource_class_id"], ["resource_classes.id"], name="fk_inventories_resource_class_id"
        ),
        sa.ForeignKeyConstraint(
            ["resource_provider_id"],
            ["resource_providers.id"],
            name="fk_inventories_resource_provider_id",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_inventories"),
        sa.UniqueConstraint(
            "resource_provider_id", "resource_class_id", name="uq_inventories_provider_class"
        ),
        **TABLE,
    )
    online.create_index(
        "ix_inventories_class_provider",
        "inventories",
        ["resource_class_id", "resource_provider_id"],
    )
    online.create_table(
        "resource_provider_aggregates",
        sa.Column("aggregate_id", ID, nullable=False),
        sa.Column("resource_provider_id", ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["aggregate_id"],
            ["aggregates.id"],
            name="fk_resource_provider_aggregates_aggregate_id",
        ),
        sa.ForeignKeyConstraint(
            ["resource_provider_id"],
            ["resource_providers.id"],
            name="fk_resource_provider_aggregates_resource_provider_id",
        ),
        sa.PrimaryKeyConstraint(
            "aggregate_id", "resource_provider_id", name="pk_resource_provider_aggregates"
        ),
        **TABLE,
    )
    online.create_index(
        "ix_resource_provider_aggregates_provider",
        "resource_provider_aggregates",
        ["resource_provider_id"],
    )
    online.create_table(
        "allocations",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("consumer_id", ID, nullable=False),
        sa.Column("resource_provider_id", sa.BigInteger(), nullable=False),
        sa.Column("resource_class_id", sa.Integer(), nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["consumer_id"], ["consumers.id"], name="fk_allocations_consumer_id"
        ),
        sa.ForeignKeyConstraint(
            ["resource_provider_id", "resource_class_id"],
            ["inventories.resource_provider_id", "inventories.resource_class_id"],
            name="fk_allocations_inventory",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_allocations"),
        sa.UniqueConstraint(
            "consumer_id", "resource_provider_id", "resource_class_id", name="uq_allocations_held"
        ),
        **TABLE,
    )
    online.create_index(
        "ix_allocations_inventory", "allocations", ["resource_provider_id", "resource_class_id"]
    )
