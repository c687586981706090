# SPDX-License-Identifier: Apache-2.0
"""Reads compute nodes from nova's own database."""

import sqlalchemy as sa

from placement_rpc import exception

_BATCH = 500
_IN_USE = ("claimed", "allocated")


def compute_nodes(url):
    """Yield the rows of ``compute_nodes``, also deleted ones, in the order of their ids.

    :param url: str, SQLAlchemy URL of nova's cell database
    :returns: iterator of dicts of column to value, with ``pci_in_use``: dict of the kind of a
        device (``type-VF``) to the number of ``pci_devices`` that are claimed or allocated
    :raises StoreUnavailable: when the database cannot be read
    :raises InvalidInput: when it has no such table
    """
    try:
        engine = sa.create_engine(url)
        try:
            with engine.connect() as connection:
                yield from _rows(connection)
        finally:
            engine.dispose()
    except sa.exc.NoSuchTableError:
        raise exception.InvalidInput(
            what="database", reason="it has no table compute_nodes") from None
    except (sa.exc.SQLAlchemyError, ImportError) as error:
        raise exception.StoreUnavailable(
            reason=f"{type(error).__name__}, of the database to read from") from error


def _rows(connection):
    table = sa.Table("compute_nodes", sa.MetaData(), autoload_with=connection)
    in_use = _devices_in_use(connection)
    last = 0
    while True:
        query = sa.select(table).where(table.c.id > last).order_by(table.c.id).limit(_BATCH)
        rows = connection.execute(query).all()
        for row in rows:
            yield {**row._mapping, "pci_in_use": in_use.get(row.id)}
        if len(rows) < _BATCH:
            return
        last = rows[-1].id


def _devices_in_use(connection):
    """Return dict of a node's id to dict of kind to number."""
    if not sa.inspect(connection).has_table("pci_devices"):
        return {}
    table = sa.Table("pci_devices", sa.MetaData(), autoload_with=connection)
    query = sa.select(
        table.c.compute_node_id, table.c.dev_type, sa.func.count().label("number"),
    ).where(table.c.status.in_(_IN_USE)).group_by(table.c.compute_node_id, table.c.dev_type)
    if "deleted" in table.c:
        query = query.where(table.c.deleted == 0)
    found = {}
    for row in connection.execute(query):
        found.setdefault(row.compute_node_id, {})[row.dev_type] = row.number
    return found
