# SPDX-License-Identifier: Apache-2.0
"""Resource classes by name and by id."""

import sqlalchemy as sa

from placement_rpc.db import galera, models
from placement_rpc.db.queries import bulk

_classes = models.resource_classes
_BY_NAME = bulk.OverLists(lambda among: sa.select(_classes.c.name, _classes.c.id).where(
    among(_classes.c.name, "names")))


def _locked(read):
    return bulk.OverLists(lambda among: sa.select(_classes.c.id, _classes.c.name).where(
        among(_classes.c.id, "ids")).order_by(_classes.c.id).with_for_update(read=read))


_SHARED, _LOCKED = _locked(read=True), _locked(read=False)


def ids(tx, names):
    """Return dict of name to id of the classes that exist."""
    return dict(tuple(row) for row in _BY_NAME.execute(tx, {"names": sorted(names)}))


def names(tx, ids):
    """Return dict of id to name of the classes that exist."""
    return dict(tuple(row) for row in tx.execute(sa.select(
        _classes.c.id, _classes.c.name).where(_classes.c.id.in_(sorted(ids)))))


def shared(tx, ids):
    """Lock classes for reading: their names do not change until the transaction ends.

    On a node of a Galera cluster they are written, too: a node that renames one sees no locks.

    :returns: dict of id to name of those that exist
    """
    if not galera.is_node(tx):
        return dict(tuple(row) for row in _SHARED.execute(tx, {"ids": sorted(ids)}))
    # Two transactions that had locked a row for reading would wait for each other to write it.
    found = dict(tuple(row) for row in _LOCKED.execute(tx, {"ids": sorted(ids)}))
    galera.touch(tx, _classes, found)
    return found


def lock(tx, name):
    """Return the row of id and name of a class, locked; None if there is none."""
    return tx.execute(sa.select(_classes.c.id, _classes.c.name).where(
        _classes.c.name == name).with_for_update()).one_or_none()


def get(tx, name):
    """Return the row of name and updated_at of a class; None if there is none."""
    return tx.execute(sa.select(_classes.c.name, _classes.c.updated_at).where(
        _classes.c.name == name)).one_or_none()


def page(tx, marker=None, limit=None):
    """Return classes in the order of their names.

    :param marker: str, the name after which to begin
    :param limit: int, how many at most
    :returns: list of rows of name and updated_at
    """
    query = sa.select(_classes.c.name, _classes.c.updated_at).order_by(_classes.c.name)
    if marker is not None:
        query = query.where(_classes.c.name > marker)
    return tx.execute(query.limit(limit)).all()


def insert(tx, name, first_id):
    """Insert a class with the next free id.

    :param first_id: int, the smallest id a custom class may have
    :raises oslo_db.exception.DBDuplicateEntry: when the name is taken, or when another writer
        takes the id at the same time
    """
    highest = tx.execute(sa.select(sa.func.max(_classes.c.id))).scalar()
    at = bulk.now()
    tx.execute(sa.insert(_classes), {
        "id": max(first_id, (highest or 0) + 1), "name": name, "created_at": at,
        "updated_at": at})


def insert_missing(tx, classes):
    """Insert the classes that do not exist.

    :param classes: dict of name to id
    """
    known = ids(tx, classes)
    at = bulk.now()
    rows = [{"id": class_id, "name": name, "created_at": at, "updated_at": at}
            for name, class_id in classes.items() if name not in known]
    if rows:
        tx.execute(sa.insert(_classes), rows)


def rename(tx, class_id, name):
    """Rename a class.

    :raises oslo_db.exception.DBDuplicateEntry: when the name is taken
    """
    tx.execute(sa.update(_classes).where(_classes.c.id == class_id).values(
        name=name, updated_at=bulk.now()))


def in_use(tx, class_id):
    """Return whether there is an inventory of a class."""
    table = models.inventories
    return tx.execute(sa.select(table.c.id).where(
        table.c.resource_class_id == class_id).limit(1)).first() is not None


def delete(tx, class_id):
    """Delete a class.

    :raises oslo_db.exception.DBReferenceError: when it is in use
    """
    tx.execute(sa.delete(_classes).where(_classes.c.id == class_id))
