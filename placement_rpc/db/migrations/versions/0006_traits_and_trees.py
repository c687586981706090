# SPDX-License-Identifier: Apache-2.0
"""Traits, parents and roots of providers, and types of consumers. It only adds.

What each statement locks, on a store that is in use:

* New tables lock nothing that anybody uses.
* A new column without a default changes the catalogue and no row: MariaDB is told to refuse any
  other way (``ALGORITHM=INSTANT``). It needs the table to itself for that moment.
* The indexes and foreign keys of ``resource_providers``: MariaDB makes both in place, while others
  read and write; it does not check the foreign keys, since all values are NULL. On PostgreSQL
  others can neither read nor write this table until the revision ends: 0.2 s at 100,000
  providers. ``consumers`` is the large table, and gets nothing but a column, at the end.
* On a Galera cluster each statement stops all writers for as long as it takes.

No statement waits for a lock for more than ``online.PATIENCE`` seconds, since all other
statements on the table would wait behind it. After that it fails, and the migration can be run
again.

The foreign keys keep a conductor of an older release, which knows nothing of trees, from deleting
a provider that has children. A NULL parent or root is a root's; types of consumers have no foreign
key, which would be a long change, and are never deleted.

Revision: 0006
Revises: 0005
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from placement_rpc.db.migrations import online

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME = sa.String(255).with_variant(
    mysql.VARCHAR(255, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
TABLE = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}

PROVIDERS = "resource_providers"
# Column, and what is left of the names of its index and its foreign key.
LINKS = {"parent_provider_id": "parent", "root_provider_id": "root"}


def upgrade():
    with online.patience():
        # MariaDB commits each step: steps of an interrupted attempt are not repeated.
        found = sa.inspect(op.get_bind())
        _create_named("traits", ID)
        _create_named("consumer_types", sa.Integer())
        _create_links()
        columns = online.columns(found, PROVIDERS)
        indexes = {each["name"] for each in found.get_indexes(PROVIDERS)}
        keys = {each["name"] for each in found.get_foreign_keys(PROVIDERS)}
        for column, short in LINKS.items():
            if column not in columns:
                _add_link(column)
            if f"ix_{PROVIDERS}_{short}" not in indexes:
                _add_index(column, f"ix_{PROVIDERS}_{short}")
            if f"fk_{PROVIDERS}_{column}" not in keys:
                _add_key(column, f"fk_{PROVIDERS}_{column}")
        if "consumer_type_id" not in online.columns(found, "consumers"):
            statement = "ALTER TABLE consumers ADD COLUMN consumer_type_id INTEGER"
            online.run(sqlite=statement, postgresql=statement,
                       mysql=f"{statement}, ALGORITHM=INSTANT")


def _create_named(table, type_):
    online.create_table(
        table,
        sa.Column("id", type_, autoincrement=True, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        sa.UniqueConstraint("name", name=f"uq_{table}_name"),
        **TABLE,
    )


def _create_links():
    table = "resource_provider_traits"
    online.create_table(
        table,
        sa.Column("trait_id", ID, nullable=False),
        sa.Column("resource_provider_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("trait_id", "resource_provider_id", name=f"pk_{table}"),
        sa.ForeignKeyConstraint(["trait_id"], ["traits.id"], name=f"fk_{table}_trait_id"),
        sa.ForeignKeyConstraint(["resource_provider_id"], ["resource_providers.id"],
                                name=f"fk_{table}_resource_provider_id"),
        **TABLE,
    )
    online.create_index(f"ix_{table}_provider", table, ["resource_provider_id"])


def _add_link(column):
    online.run(
        # SQLite adds a foreign key with its column only.
        sqlite=f"ALTER TABLE {PROVIDERS} ADD COLUMN {column} INTEGER "
               f"CONSTRAINT fk_{PROVIDERS}_{column} REFERENCES {PROVIDERS} (id)",
        postgresql=f"ALTER TABLE {PROVIDERS} ADD COLUMN {column} BIGINT",
        mysql=f"ALTER TABLE {PROVIDERS} ADD COLUMN {column} BIGINT NULL, ALGORITHM=INSTANT")


def _add_index(column, name):
    statement = f"CREATE INDEX {name} ON {PROVIDERS} ({column})"
    online.run(sqlite=statement, postgresql=statement,
               mysql=f"ALTER TABLE {PROVIDERS} ADD INDEX {name} ({column}), ALGORITHM=INPLACE, "
                     "LOCK=NONE")


def _add_key(column, name):
    reference = f"FOREIGN KEY ({column}) REFERENCES {PROVIDERS} (id)"
    online.run(
        postgresql=f"ALTER TABLE {PROVIDERS} ADD CONSTRAINT {name} {reference}",
        # MariaDB adds a foreign key in place only while it checks none; all values are NULL.
        mysql=(
            "SET SESSION foreign_key_checks = 0",
            f"ALTER TABLE {PROVIDERS} ADD CONSTRAINT {name} {reference}, ALGORITHM=INPLACE, "
            "LOCK=NONE",
            "SET SESSION foreign_key_checks = 1"))
