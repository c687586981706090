# SPDX-License-Identifier: Apache-2.0
"""The tables of OpenStack Placement's database, and the revisions of them that are known.

Placement keeps an Alembic revision of its schema in the table ``alembic_version``. Columns that
the newest revision has and an older one lacks are left out of a statement by
:func:`has_consumer_types`. Indexes and constraints are not described: Placement's own migrations
make the schema.
"""

import sqlalchemy as sa

metadata = sa.MetaData()

#: Dict of each revision that is known, the oldest first, to what it brought.
REVISIONS = {
    "b4ed3a175331": "the first tables",
    "611cd6dffd7b": "every provider has a root",
    "b5c396305c25": "every allocation has a consumer",
    "422ece571366": "types of consumers",
    "a082b8bb98d0": "fewer indexes",
}
NEWEST = "a082b8bb98d0"
_WITHOUT_CONSUMER_TYPES = frozenset(("b4ed3a175331", "611cd6dffd7b", "b5c396305c25"))


def has_consumer_types(revision: str) -> bool:
    """Return whether the schema of a revision has types of consumers."""
    return revision not in _WITHOUT_CONSUMER_TYPES


def _times():
    return (sa.Column("created_at", sa.DateTime), sa.Column("updated_at", sa.DateTime))


alembic_version = sa.Table(
    "alembic_version", metadata,
    sa.Column("version_num", sa.String(32), primary_key=True))

resource_classes = sa.Table(
    "resource_classes", metadata, *_times(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False))

traits = sa.Table(
    "traits", metadata, *_times(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Unicode(255), nullable=False))

consumer_types = sa.Table(
    "consumer_types", metadata, *_times(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Unicode(255), nullable=False))

projects = sa.Table(
    "projects", metadata, *_times(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("external_id", sa.String(255), nullable=False))

users = sa.Table(
    "users", metadata, *_times(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("external_id", sa.String(255), nullable=False))

resource_providers = sa.Table(
    "resource_providers", metadata, *_times(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.Column("name", sa.Unicode(200)),
    sa.Column("generation", sa.Integer),
    # NULL at the first revision only, for providers that were created before there were trees.
    sa.Column("root_provider_id", sa.Integer),
    sa.Column("parent_provider_id", sa.Integer))

# Neither these nor the following tables refer to others by foreign keys, except for traits.
inventories = sa.Table(
    "inventories", metadata, *_times(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("resource_provider_id", sa.Integer, nullable=False),
    sa.Column("resource_class_id", sa.Integer, nullable=False),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("reserved", sa.Integer, nullable=False),
    sa.Column("min_unit", sa.Integer, nullable=False),
    sa.Column("max_unit", sa.Integer, nullable=False),
    sa.Column("step_size", sa.Integer, nullable=False),
    # Of seven digits on MySQL and MariaDB.
    sa.Column("allocation_ratio", sa.Float, nullable=False))

placement_aggregates = sa.Table(
    "placement_aggregates", metadata, *_times(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", sa.String(36)))

resource_provider_aggregates = sa.Table(
    "resource_provider_aggregates", metadata, *_times(),
    sa.Column("resource_provider_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("aggregate_id", sa.Integer, primary_key=True, autoincrement=False))

resource_provider_traits = sa.Table(
    "resource_provider_traits", metadata, *_times(),
    sa.Column("trait_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("resource_provider_id", sa.Integer, primary_key=True, autoincrement=False))

consumers = sa.Table(
    "consumers", metadata, *_times(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.Column("project_id", sa.Integer, nullable=False),
    sa.Column("user_id", sa.Integer, nullable=False),
    sa.Column("generation", sa.Integer, nullable=False, server_default="0"),
    sa.Column("consumer_type_id", sa.Integer))

allocations = sa.Table(
    "allocations", metadata, *_times(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("resource_provider_id", sa.Integer, nullable=False),
    # The uuid of a consumer, not its id.
    sa.Column("consumer_id", sa.String(36), nullable=False),
    sa.Column("resource_class_id", sa.Integer, nullable=False),
    sa.Column("used", sa.Integer, nullable=False))
