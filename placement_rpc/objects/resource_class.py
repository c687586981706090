# SPDX-License-Identifier: Apache-2.0
"""Resource classes: standard ones, and custom ones (custom-resource-classes)."""

from oslo_db import exception as db_exc

from placement_rpc import exception
from placement_rpc.db.queries import resource_classes as queries
from placement_rpc.objects import base, class_names, fields
from placement_rpc.objects.payloads import ResourceClassPayload


def resolve(tx, names):
    """Ids of classes.

    Standard classes never change, so they are known without asking. Custom ones are asked for
    each time: another process may have renamed one a moment ago.

    :param names: collection of canonical names
    :returns: dict of name to id
    :raises ResourceClassNotFound: naming the first that does not exist
    """
    ids = known(tx, names)
    for name in names:
        if name not in ids:
            raise exception.ResourceClassNotFound(resource_class=name)
    return ids


def known(tx, names):
    """As :func:`resolve`, but leaves out the classes that do not exist."""
    standard = class_names.STANDARD_IDS
    ids = {name: standard[name] for name in names if name in standard}
    others = [name for name in names if name not in standard]
    if others:
        ids.update(queries.ids(tx, others))
    return ids


def names_of(tx, ids, others):
    """Names of classes by their ids.

    :param ids: dict of name to id, known already
    :param others: collection of further ids
    :returns: dict of id to name
    """
    names = {id_: name for name, id_ in ids.items()}
    for id_ in others:
        if id_ not in names and id_ in _STANDARD_NAMES:
            names[id_] = _STANDARD_NAMES[id_]
    missing = [id_ for id_ in others if id_ not in names]
    return names | queries.names(tx, missing) if missing else names


_STANDARD_NAMES = {id_: name for name, id_ in class_names.STANDARD_IDS.items()}


def canonical(name):
    """:returns: str, today's spelling; :raises InvalidInput: when it can name no class"""
    return fields.ClassName().coerce(None, "resource_class", name)


@base.PlacementObjectRegistry.register
class ResourceClass(base.PlacementObject):
    """A kind of resource."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"name": fields.field(fields.ClassName())}

    @classmethod
    def get(cls, context, name):
        """:raises ResourceClassNotFound: where there is none of that name"""
        name = canonical(name)
        with context.database.reader() as tx:
            resolve(tx, [name])
        return cls(name=name)

    def create(self, tx, journal):
        """Insert a custom class.

        :raises InvalidInput: when the name is not that of a custom class
        :raises ResourceClassExists: when the name is taken
        """
        self._check_custom()
        if queries.ids(tx, [self.name]):
            raise exception.ResourceClassExists(resource_class=self.name)
        queries.insert(tx, self.name, class_names.FIRST_CUSTOM_ID)
        journal.add("resource_class.create", ResourceClassPayload(
            name=self.name, previous_name=None))
        return ResourceClass(name=self.name)

    def rename(self, tx, journal, old_name):
        """Give a custom class this name.

        :raises ResourceClassStandard: :raises InvalidInput: :raises ResourceClassNotFound:
        :raises ResourceClassExists: when the name is taken
        """
        row = _locked_custom(tx, old_name)
        self._check_custom()
        if row.name != self.name:
            if queries.ids(tx, [self.name]):
                raise exception.ResourceClassExists(resource_class=self.name)
            queries.rename(tx, row.id, self.name)
            journal.add("resource_class.update", ResourceClassPayload(
                name=self.name, previous_name=row.name))
        return ResourceClass(name=self.name)

    @staticmethod
    def delete(tx, journal, name):
        """Delete a custom class.

        :raises ResourceClassStandard: :raises ResourceClassNotFound:
        :raises ResourceClassInUse: when there are inventories of it
        """
        row = _locked_custom(tx, name)
        if queries.in_use(tx, row.id):
            raise exception.ResourceClassInUse(resource_class=name)
        try:
            queries.delete(tx, row.id)
        except db_exc.DBReferenceError:
            raise exception.ResourceClassInUse(resource_class=name) from None
        journal.add("resource_class.delete", ResourceClassPayload(
            name=row.name, previous_name=row.name))

    def _check_custom(self):
        if self.name in class_names.STANDARD_IDS:
            raise exception.ResourceClassStandard(resource_class=self.name)
        if not class_names.is_custom(self.name):
            raise exception.InvalidInput(
                what="name", reason=f"{self.name} does not match CUSTOM_[A-Z0-9_]+")


def _locked_custom(tx, name):
    name = canonical(name)
    if name in class_names.STANDARD_IDS:
        raise exception.ResourceClassStandard(resource_class=name)
    row = queries.lock(tx, name)
    if row is None:
        raise exception.ResourceClassNotFound(resource_class=name)
    return row


@base.PlacementObjectRegistry.register
class ResourceClassList(base.PlacementObjectList):
    """Several resource classes."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"objects": fields.ListOfObjectsField("ResourceClass")}

    @classmethod
    def page(cls, context, marker=None, limit=None):
        """Classes in alphabetical order.

        :param marker: str, the name after which to begin
        :param limit: int, how many at the most
        """
        with context.database.reader() as tx:
            rows = queries.page(tx, canonical(marker) if marker else None, limit)
        return cls(objects=[ResourceClass(name=row.name) for row in rows])
