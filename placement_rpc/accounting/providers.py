# SPDX-License-Identifier: Apache-2.0
"""Create, rename and delete resource providers."""

from typing import Any

from oslo_db import exception as db_exc

from placement_rpc import exception
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.db import api as db
from placement_rpc.db.queries import providers
from placement_rpc.objects.payloads import ResourceProviderPayload
from placement_rpc.objects.resource_provider import ResourceProvider


def lock(tx: db.Connection, uuid: str, generation: int | None = None) -> Any:
    """Lock a provider for a change.

    :param generation: the generation that the caller read; None to accept any
    :returns: row of id, uuid, name, generation
    :raises ProviderNotFound: if there is no provider of that uuid
    :raises ConcurrentUpdate: if the caller's generation is not the current one
    """
    row = providers.lock(tx, uuid)
    if row is None:
        raise exception.ProviderNotFound(provider=uuid)
    if generation is not None and generation != row.generation:
        raise exception.ConcurrentUpdate(
            provider=uuid, current=row.generation, given=generation)
    return row


def get_or_404(tx: db.Connection, uuid: str) -> Any:
    """Read a provider.

    :returns: row of id, uuid, name, generation
    :raises ProviderNotFound: if there is no provider of that uuid
    """
    row = providers.get(tx, uuid)
    if row is None:
        raise exception.ProviderNotFound(provider=uuid)
    return row


def raise_generation(tx: db.Connection, row: Any) -> int:
    """Mark a provider as changed, by compare-and-swap (DESIGN rule 2).

    :param row: as :func:`lock` returned it
    :returns: the new generation
    :raises placement_rpc.db.api.Stale: if another writer changed it
    """
    if not providers.raise_generation(tx, row.id, row.generation):
        raise db.Stale(f"resource provider {row.uuid}")
    return row.generation + 1


def create(tx: db.Connection, outbox: Outbox, provider: ResourceProvider) -> ResourceProvider:
    """Insert a provider.

    :param provider: with ``uuid`` and ``name``
    :raises NameInUse: if another provider has the name
    :raises ProviderExists: if the uuid is taken
    """
    if providers.named(tx, provider.name):
        raise exception.NameInUse(name=provider.name)
    if providers.get(tx, provider.uuid):
        raise exception.ProviderExists(provider=provider.uuid)
    providers.insert(tx, provider.uuid, provider.name)
    outbox.add("resource_provider.create", ResourceProviderPayload(
        provider_uuid=provider.uuid, generation=0, previous_generation=None, name=provider.name,
        previous_name=None))
    return ResourceProvider(uuid=provider.uuid, name=provider.name, generation=0)


def rename(tx: db.Connection, outbox: Outbox, provider: ResourceProvider) -> ResourceProvider:
    """Give the provider of this uuid this name; the same name changes nothing.

    :param provider: with ``uuid`` and ``name``, and the ``generation`` that the caller read, if
        it checks it
    :raises ProviderNotFound: if there is no provider of that uuid
    :raises ConcurrentUpdate: if the generation is not the current one
    :raises NameInUse: if another provider has the name
    """
    row = lock(tx, provider.uuid, provider.value("generation"))
    generation = row.generation
    if row.name != provider.name:
        if providers.named(tx, provider.name):
            raise exception.NameInUse(name=provider.name)
        providers.rename(tx, row.id, provider.name)
        generation = raise_generation(tx, row)
        outbox.add("resource_provider.update", ResourceProviderPayload(
            provider_uuid=row.uuid, generation=generation, previous_generation=row.generation,
            name=provider.name, previous_name=row.name))
    return ResourceProvider(uuid=row.uuid, name=provider.name, generation=generation)


def delete(tx: db.Connection, outbox: Outbox, uuid: str, generation: int | None = None) -> None:
    """Delete a provider, its inventories and its links to aggregates.

    :raises ProviderNotFound: if there is no provider of that uuid
    :raises ConcurrentUpdate: if the generation is not the current one
    :raises ProviderInUse: if it has allocations
    """
    row = lock(tx, uuid, generation)
    if providers.has_allocations(tx, row.id):
        raise exception.ProviderInUse(provider=uuid)
    try:
        providers.delete(tx, row.id)
    except db_exc.DBReferenceError:
        raise exception.ProviderInUse(provider=uuid) from None
    outbox.add("resource_provider.delete", ResourceProviderPayload(
        provider_uuid=row.uuid, generation=row.generation,
        previous_generation=row.generation, name=row.name, previous_name=row.name))
