# SPDX-License-Identifier: Apache-2.0
"""Create, rename and delete resource classes, and resolve their names."""

import functools
from collections.abc import Collection, Mapping

from oslo_db import exception as db_exc

from placement_rpc import exception
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.db import api as db
from placement_rpc.db.queries import resource_classes as queries
from placement_rpc.objects import class_names
from placement_rpc.objects.payloads import ResourceClassPayload
from placement_rpc.objects.resource_class import ResourceClass, canonical

_STANDARD_NAMES = {id_: name for name, id_ in class_names.STANDARD_IDS.items()}


def resolve(tx: db.Connection, names: Collection[str]) -> dict[str, int]:
    """Return the ids of classes.

    Custom classes are read each time: another process may have just renamed one.

    :param names: canonical names
    :returns: dict of name to id
    :raises ResourceClassNotFound: for the first name that does not exist
    """
    return class_names.resolve(names, functools.partial(queries.ids, tx))


def ids_of(tx: db.Connection, names: Collection[str]) -> dict[str, int]:
    """As :func:`resolve`, but leave out the classes that do not exist."""
    return class_names.ids_of(names, functools.partial(queries.ids, tx))


def names_of(tx: db.Connection, ids: Mapping[str, int], others: Collection[int]) -> dict[int, str]:
    """Return the names of classes by their ids.

    :param ids: dict of name to id, of classes that were resolved before
    :param others: further ids
    :returns: dict of id to name
    """
    names = {id_: name for name, id_ in ids.items()}
    for id_ in others:
        if id_ not in names and id_ in _STANDARD_NAMES:
            names[id_] = _STANDARD_NAMES[id_]
    missing = [id_ for id_ in others if id_ not in names]
    return names | queries.names(tx, missing) if missing else names


def pinned_names(tx: db.Connection, ids: Mapping[str, int], others: Collection[int],
                 ) -> dict[int, str]:
    """As :func:`names_of`, and custom classes keep their names until the transaction ends.

    :raises placement_rpc.db.api.Stale: if a class of ``ids`` was renamed or deleted since its id
        was read
    """
    needed = {*ids.values(), *others}
    names = {id_: _STANDARD_NAMES[id_] for id_ in needed if id_ in _STANDARD_NAMES}
    custom = needed - names.keys()
    if custom:
        names |= queries.shared(tx, custom)
    if any(names.get(id_) != name for name, id_ in ids.items()):
        raise db.Stale("the name of a resource class")
    return names


def create(tx: db.Connection, outbox: Outbox, name: str) -> ResourceClass:
    """Insert a custom class.

    :raises InvalidInput: if a custom class cannot have the name
    :raises ResourceClassStandard: if a standard class has the name
    :raises ResourceClassExists: if a custom class has the name, such as one that exists from the
        start: nova makes sure of each class that it uses
    """
    if name not in class_names.PREDEFINED:
        _check_custom(name)
    if queries.ids(tx, [name]):
        raise exception.ResourceClassExists(resource_class=name)
    queries.insert(tx, name, class_names.FIRST_CUSTOM_ID)
    outbox.add("resource_class.create", ResourceClassPayload(name=name, previous_name=None))
    return ResourceClass(name=name)


def rename(tx: db.Connection, outbox: Outbox, old_name: str, name: str) -> ResourceClass:
    """Rename a custom class.

    :raises ResourceClassStandard: if one of the names is a standard class's
    :raises InvalidInput: if a custom class cannot have the new name
    :raises ResourceClassNotFound: if there is no class of the old name
    :raises ResourceClassExists: if a custom class has the new name
    """
    row = _lock_custom(tx, old_name)
    _check_custom(name)
    if row.name != name:
        if queries.ids(tx, [name]):
            raise exception.ResourceClassExists(resource_class=name)
        queries.rename(tx, row.id, name)
        outbox.add("resource_class.update", ResourceClassPayload(
            name=name, previous_name=row.name))
    return ResourceClass(name=name)


def delete(tx: db.Connection, outbox: Outbox, name: str) -> None:
    """Delete a custom class.

    :raises ResourceClassStandard: if it is a standard class
    :raises ResourceClassNotFound: if there is no class of the name
    :raises ResourceClassInUse: if there are inventories of it
    """
    row = _lock_custom(tx, name)
    if queries.in_use(tx, row.id):
        raise exception.ResourceClassInUse(resource_class=name)
    try:
        queries.delete(tx, row.id)
    except db_exc.DBReferenceError:
        raise exception.ResourceClassInUse(resource_class=name) from None
    outbox.add("resource_class.delete", ResourceClassPayload(
        name=row.name, previous_name=row.name))


def _check_custom(name):
    if name in class_names.STANDARD_IDS:
        raise exception.ResourceClassStandard(resource_class=name)
    if not class_names.is_custom(name):
        raise exception.InvalidInput(
            what="name", reason=f"{name} does not match CUSTOM_[A-Z0-9_]+")


def _lock_custom(tx, name):
    name = canonical(name)
    if name in class_names.STANDARD_IDS:
        raise exception.ResourceClassStandard(resource_class=name)
    row = queries.lock(tx, name)
    if row is None:
        raise exception.ResourceClassNotFound(resource_class=name)
    return row
