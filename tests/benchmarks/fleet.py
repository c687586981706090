# SPDX-License-Identifier: Apache-2.0
"""Fills a store with providers, straight into its tables."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk
from placement_rpc.objects import class_names
from tests import base

_AMOUNTS = {"VCPU": 100_000, "MEMORY_MB": 100_000_000, "DISK_GB": 1_000_000}


def grow(database, size):
    """Add providers until there are so many.

    :returns: list of all uuids
    """
    at = bulk.now()
    times = {"created_at": at, "updated_at": at}
    with database.writer() as tx:
        known = tx.execute(sa.select(models.resource_providers.c.uuid)).scalars().all()
        rows = [{"uuid": base.new_uuid(), "name": f"node {number}", "generation": 1, **times}
                for number in range(len(known), size)]
        if rows:
            ids = tx.execute(sa.insert(models.resource_providers).returning(
                models.resource_providers.c.id), rows).scalars().all()
            tx.execute(sa.insert(models.inventories), [
                {"resource_provider_id": id_, "resource_class_id": class_names.STANDARD_IDS[name],
                 "total": total, "reserved": 0, "min_unit": 1, "max_unit": total,
                 "step_size": 1, "allocation_ratio": 1.0, "capacity": total, "used": 0, **times}
                for id_ in ids for name, total in _AMOUNTS.items()])
    if database.dialect == "postgresql":
        with database.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("ANALYZE")
    return [*known, *(row["uuid"] for row in rows)]
