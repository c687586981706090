# SPDX-License-Identifier: Apache-2.0
"""Resource providers."""

from oslo_db import exception as db_exc

from placement_rpc import exception
from placement_rpc.db import api as db
from placement_rpc.db.queries import providers
from placement_rpc.objects import base, fields, lean
from placement_rpc.objects.payloads import ResourceProviderPayload


def locked(tx, uuid, generation=None):
    """Lock a provider for a change.

    :param generation: int, what the caller believes it to be; None for whatever it is
    :returns: row of id, uuid, name, generation
    :raises ProviderNotFound: when there is none of that uuid
    :raises ConcurrentUpdate: when the caller's generation is not the current one
    """
    row = providers.lock(tx, uuid)
    if row is None:
        raise exception.ProviderNotFound(provider=uuid)
    if generation is not None and generation != row.generation:
        raise exception.ConcurrentUpdate(
            provider=uuid, current=row.generation, given=generation)
    return row


def known(tx, uuid):
    """:returns: row of id, uuid, name, generation; :raises ProviderNotFound: where none is"""
    row = providers.get(tx, uuid)
    if row is None:
        raise exception.ProviderNotFound(provider=uuid)
    return row


def raise_generation(tx, row):
    """Mark a provider as changed, by compare and swap (DESIGN rule 2).

    :param row: as :func:`locked` returned it
    :returns: int, the new generation
    """
    if not providers.raise_generation(tx, row.id, row.generation):
        raise db.Stale(f"resource provider {row.uuid}")
    return row.generation + 1


@base.PlacementObjectRegistry.register
class ResourceProvider(base.PlacementObject):
    """Something that provides amounts of resources: a compute node, a shared pool.

    ``free`` maps the classes that were asked for to how much is free of them, and is set in what
    get_by_request answers alone.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added free
    VERSION = "1.1"

    fields = {
        "uuid": fields.field(fields.Uuid()),
        "name": fields.field(fields.Name()),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
        "free": fields.field(fields.Amounts(maximum=2 ** 63 - 1), nullable=True),
    }

    added = {"free": "1.1"}

    @classmethod
    def of_row(cls, row):
        """:param row: row of uuid, name, generation"""
        return cls(uuid=row.uuid, name=row.name, generation=row.generation)

    @classmethod
    def get(cls, context, uuid):
        """:raises ProviderNotFound: where there is none"""
        with context.database.reader() as tx:
            return cls.of_row(known(tx, uuid))

    def create(self, tx, journal):
        """Insert the provider; ``uuid`` and ``name`` are set.

        :raises NameInUse: when another provider has the name
        :raises ProviderExists: when the uuid is taken
        """
        if providers.named(tx, self.name):
            raise exception.NameInUse(name=self.name)
        if providers.get(tx, self.uuid):
            raise exception.ProviderExists(provider=self.uuid)
        providers.insert(tx, self.uuid, self.name)
        journal.add("resource_provider.create", ResourceProviderPayload(
            provider_uuid=self.uuid, generation=0, previous_generation=None, name=self.name,
            previous_name=None))
        return ResourceProvider(uuid=self.uuid, name=self.name, generation=0)

    def rename(self, tx, journal):
        """Give the provider of this uuid this name; the same name changes nothing.

        :raises ProviderNotFound: :raises ConcurrentUpdate: :raises NameInUse:
        """
        row = locked(tx, self.uuid, self.value("generation"))
        generation = row.generation
        if row.name != self.name:
            if providers.named(tx, self.name):
                raise exception.NameInUse(name=self.name)
            providers.rename(tx, row.id, self.name)
            generation = raise_generation(tx, row)
            journal.add("resource_provider.update", ResourceProviderPayload(
                provider_uuid=row.uuid, generation=generation,
                previous_generation=row.generation, name=self.name, previous_name=row.name))
        return ResourceProvider(uuid=row.uuid, name=self.name, generation=generation)

    @staticmethod
    def delete(tx, journal, uuid, generation=None):
        """Delete a provider, its inventories and its links to aggregates.

        :raises ProviderNotFound: :raises ConcurrentUpdate:
        :raises ProviderInUse: when it has allocations
        """
        row = locked(tx, uuid, generation)
        if providers.has_allocations(tx, row.id):
            raise exception.ProviderInUse(provider=uuid)
        try:
            providers.delete(tx, row.id)
        except db_exc.DBReferenceError:
            raise exception.ProviderInUse(provider=uuid) from None
        journal.add("resource_provider.delete", ResourceProviderPayload(
            provider_uuid=row.uuid, generation=row.generation,
            previous_generation=row.generation, name=row.name, previous_name=row.name))


@base.PlacementObjectRegistry.register
class ResourceProviderList(base.PlacementObjectList):
    """Several providers."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"objects": fields.ListOfObjectsField("ResourceProvider")}

    @classmethod
    def _of_rows(cls, rows):
        return cls(objects=[ResourceProvider.of_row(row) for row in rows])

    @classmethod
    def page(cls, context, **filters):
        """Providers in a stable order.

        :param filters: name, member_of, marker, limit; see the query
        :raises ProviderNotFound: when the marker is no provider
        """
        with context.database.reader() as tx:
            if filters.get("marker"):
                known(tx, filters["marker"])
            return cls._of_rows(providers.page(tx, **filters))

    @classmethod
    def of_candidates(cls, found):
        """:param found: list of :class:`placement_rpc.objects.candidate_index.Candidate`"""
        return lean.stored(cls, objects=[lean.stored(
            ResourceProvider, uuid=each.uuid, name=each.name, generation=each.generation,
            free=each.free) for each in found])
