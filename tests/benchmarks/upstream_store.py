# SPDX-License-Identifier: Apache-2.0
"""Fills OpenStack Placement's tables with the same number of providers as the service has."""

import datetime

import sqlalchemy as sa

from placement_rpc.objects import class_names
from tests import base

_NOW = datetime.datetime(2026, 1, 1)


def grow(url, size, amounts):
    """Add providers until there are ``size``.

    :param url: str, SQLAlchemy URL of the database
    :param amounts: dict of class name to total
    :returns: list of str, uuids of those that were added
    """
    engine = sa.create_engine(url)
    try:
        with engine.begin() as tx:
            tables = sa.MetaData()
            tables.reflect(tx, only=("resource_providers", "inventories", "resource_classes"))
            added = _add(tx, tables.tables, size, amounts)
        with engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("ANALYZE")
        return added
    finally:
        engine.dispose()


def _add(tx, tables, size, amounts):
    providers, inventories = tables["resource_providers"], tables["inventories"]
    classes = dict(tx.execute(sa.select(
        tables["resource_classes"].c.name, tables["resource_classes"].c.id)).all())
    if not class_names.STANDARD_IDS.keys() - {"CUSTOM_PCI_SRIOV_PF"} <= classes.keys():
        raise RuntimeError("openstack-placement has not put its classes into its database yet")
    last = tx.execute(sa.select(sa.func.max(providers.c.id))).scalar() or 0
    times = {"created_at": _NOW, "updated_at": _NOW}
    rows = [{"id": id_, "uuid": base.new_uuid(), "name": f"node {id_}", "generation": 1,
             "root_provider_id": id_, **times} for id_ in range(last + 1, size + 1)]
    if rows:
        tx.execute(sa.insert(providers), rows)
        tx.execute(sa.insert(inventories), [
            {"resource_provider_id": row["id"], "resource_class_id": classes[name],
             "total": total, "reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1,
             "allocation_ratio": 1.0, **times}
            for row in rows for name, total in amounts.items()])
        tx.exec_driver_sql(
            "SELECT setval(pg_get_serial_sequence('resource_providers', 'id'), "
            f"{size})")
    return [row["uuid"] for row in rows]
