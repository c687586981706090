# SPDX-License-Identifier: Apache-2.0
"""Fills the tables of a store with providers and compute nodes."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk
from placement_rpc.nova import importer
from placement_rpc.nova import store as columns
from placement_rpc.objects import class_names
from placement_rpc.objects.nova.compute_node import ComputeNode
from tests import base
from tests.compute_nodes import nodes

AMOUNTS = {"VCPU": 100_000, "MEMORY_MB": 100_000_000, "DISK_GB": 1_000_000}
# Providers to add in one transaction: the server ends one in which it hears nothing for seconds.
_TOGETHER = 10_000


def grow(database, size, analyse=True):
    """Add providers until there are ``size``.

    :param analyse: bool, whether to update PostgreSQL's statistics of the tables afterwards
    :returns: list of all uuids
    """
    with database.reader() as tx:
        known = tx.execute(sa.select(models.resource_providers.c.uuid)).scalars().all()
    for first in range(len(known), size, _TOGETHER):
        with database.writer() as tx:
            known += _added(tx, range(first, min(first + _TOGETHER, size)))
    if analyse and database.dialect == "postgresql":
        with database.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("ANALYZE")
    return known


def _added(tx, numbers):
    """Add providers; return their uuids."""
    at = bulk.now()
    times = {"created_at": at, "updated_at": at}
    rows = [{"uuid": base.new_uuid(), "name": f"node {number}", "generation": 1, **times}
            for number in numbers]
    ids = tx.execute(sa.insert(models.resource_providers).returning(
        models.resource_providers.c.id), rows).scalars().all()
    tx.execute(sa.insert(models.inventories), [
        {"resource_provider_id": id_, "resource_class_id": class_names.STANDARD_IDS[name],
         "total": total, "reserved": 0, "min_unit": 1, "max_unit": total,
         "step_size": 1, "allocation_ratio": 1.0, "capacity": total, "used": 0, **times}
        for id_ in ids for name, total in AMOUNTS.items()])
    return [row["uuid"] for row in rows]


def node_columns(number):
    """Return one of nova's real nodes as a row.

    :param number: int, its index
    """
    sent = nodes()
    found = columns.columns_of(ComputeNode.read(sent[number % len(sent)]))
    return {name: value for name, value in found.items() if name != "uuid"}


def bring_in(database, options, size):
    """Import ``size`` compute nodes, each a copy of one of nova's under another name.

    :param options: ``conf.compute_nodes``
    """
    work = importer.Import(database, options)
    patterns = [node_columns(number) for number in range(120)]
    for start in range(0, size, 500):
        work.bring_in([(f"{number}", {
            **patterns[number % 120], "uuid": base.new_uuid(), "host": f"host {number}",
            "hypervisor_hostname": f"cmp{number}.example.org"})
            for number in range(start, min(size, start + 500))])
