# SPDX-License-Identifier: Apache-2.0
"""Create, rename, move and delete resource providers."""

from typing import Any

from oslo_db import exception as db_exc

from placement_rpc import exception
from placement_rpc.accounting import trees
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.db import api as db
from placement_rpc.db.queries import bulk, providers
from placement_rpc.db.queries import trees as tree_queries
from placement_rpc.objects import codec
from placement_rpc.objects.payloads import ResourceProviderPayload
from placement_rpc.objects.resource_provider import ResourceProvider


def lock(tx: db.Connection, uuid: str, generation: int | None = None) -> Any:
    """Lock a provider for a change.

    :param generation: the generation that the caller read; None to accept any
    :returns: row as of :func:`placement_rpc.db.queries.providers.get`
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

    :returns: row as of :func:`placement_rpc.db.queries.providers.get`
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

    :param provider: with ``uuid`` and ``name``, and ``parent_provider_uuid`` unless it is a root
    :raises NameInUse: if another provider has the name
    :raises ProviderExists: if the uuid is taken
    :raises ParentNotFound: if there is no such parent
    """
    parent_uuid = provider.value("parent_provider_uuid")
    if parent_uuid == provider.uuid:
        raise exception.ParentNotFound(parent=parent_uuid)
    place = trees.lock_parent(tx, parent_uuid) if parent_uuid else None
    # First: a client that reads this knows that another has just created its provider.
    if providers.get(tx, provider.uuid):
        raise exception.ProviderExists(provider=provider.uuid)
    if providers.named(tx, provider.name):
        raise exception.NameInUse(name=provider.name)
    providers.insert(tx, provider.uuid, provider.name, place and place.id, place and place.root_id)
    created = ResourceProvider(
        uuid=provider.uuid, name=provider.name, generation=0, parent_provider_uuid=parent_uuid,
        root_provider_uuid=place.root_uuid if place else provider.uuid,
        updated_at=bulk.now().isoformat())
    outbox.add("resource_provider.create", ResourceProviderPayload(
        provider_uuid=created.uuid, generation=0, previous_generation=None, name=created.name,
        previous_name=None, parent_provider_uuid=parent_uuid,
        root_provider_uuid=created.root_provider_uuid, previous_parent_provider_uuid=None,
        previous_root_provider_uuid=None))
    return created


def update(tx: db.Connection, outbox: Outbox, provider: ResourceProvider,
           may_move: bool = True) -> ResourceProvider:
    """Give the provider of this uuid this name and this parent; what is the same stays.

    :param provider: with ``uuid`` and ``name``. An unset ``parent_provider_uuid`` keeps the
        parent, and None makes it a root. With the ``generation`` that the caller read, if it
        checks it.
    :param may_move: whether a provider that has a parent may get another, or none
    :raises ProviderNotFound: if there is no provider of that uuid
    :raises ConcurrentUpdate: if the generation is not the current one
    :raises NameInUse: if another provider has the name
    :raises ParentNotFound: if there is no such parent
    :raises ParentFixed: if the parent may not be changed
    :raises TreeLoop: if the parent is the provider itself, or below it
    """
    moves = provider.obj_attr_is_set("parent_provider_uuid")
    if moves:
        # All that is locked, is locked at once and in order.
        trees.lock_move(tx, provider.uuid, provider.parent_provider_uuid)
    row = lock(tx, provider.uuid, provider.value("generation"))
    wanted = provider.parent_provider_uuid if moves else row.parent_uuid
    parent = _checked_parent(tx, row, wanted, may_move) if wanted != row.parent_uuid else None
    # MariaDB finds the provider itself if only blanks at the end differ.
    if row.name != provider.name and providers.named(tx, provider.name) not in (None, row.id):
        raise exception.NameInUse(name=provider.name)
    if (row.name, row.parent_uuid) == (provider.name, wanted):
        return of_row(row)
    if row.name != provider.name:
        providers.rename(tx, row.id, provider.name)
    moved = trees.move(tx, row, parent) if wanted != row.parent_uuid else trees.Move(
        row.root_uuid, ())
    generation = raise_generation(tx, row)
    outbox.add("resource_provider.update", ResourceProviderPayload(
        provider_uuid=row.uuid, generation=generation, previous_generation=row.generation,
        name=provider.name, previous_name=row.name, parent_provider_uuid=wanted,
        root_provider_uuid=moved.root_uuid, previous_parent_provider_uuid=row.parent_uuid,
        previous_root_provider_uuid=row.root_uuid))
    for each in moved.followers:
        outbox.add("resource_provider.update", ResourceProviderPayload(
            provider_uuid=each.uuid, generation=raise_generation(tx, each),
            previous_generation=each.generation, name=each.name, previous_name=each.name,
            parent_provider_uuid=each.parent_uuid, root_provider_uuid=moved.root_uuid,
            previous_parent_provider_uuid=each.parent_uuid,
            previous_root_provider_uuid=row.root_uuid))
    return ResourceProvider(
        uuid=row.uuid, name=provider.name, generation=generation, parent_provider_uuid=wanted,
        root_provider_uuid=moved.root_uuid, updated_at=bulk.now().isoformat())


def _checked_parent(tx, row, parent_uuid, may_move):
    """Return the row of another parent that a provider may get; None for no parent.

    :raises ParentNotFound: if there is no such parent
    :raises ParentFixed: if the provider has a parent, and may not be moved
    :raises TreeLoop: if the parent is the provider itself, or below it
    """
    parent = None
    if parent_uuid is not None:
        parent = providers.get(tx, parent_uuid)
        if parent is None:
            raise exception.ParentNotFound(parent=parent_uuid)
    if row.parent_uuid is not None and not may_move:
        raise exception.ParentFixed(provider=row.uuid)
    if parent is not None:
        trees.check_no_loop(tx, row, parent)
    return parent


def of_row(row: Any) -> ResourceProvider:
    """Return the provider of a row of :func:`placement_rpc.db.queries.providers.get`."""
    return codec.stored(
        ResourceProvider, uuid=row.uuid, name=row.name, generation=row.generation,
        parent_provider_uuid=row.parent_uuid, root_provider_uuid=row.root_uuid,
        updated_at=row.updated_at.isoformat())


def delete(tx: db.Connection, outbox: Outbox, uuid: str, generation: int | None = None) -> None:
    """Delete a provider, its inventories, and its links to aggregates and traits.

    :raises ProviderNotFound: if there is no provider of that uuid
    :raises ConcurrentUpdate: if the generation is not the current one
    :raises ProviderIsParent: if it has children
    :raises ProviderInUse: if it has allocations
    """
    row = lock(tx, uuid, generation)
    if tree_queries.has_children(tx, row.id):
        raise exception.ProviderIsParent(provider=uuid)
    if providers.has_allocations(tx, row.id):
        raise exception.ProviderInUse(provider=uuid)
    try:
        providers.delete(tx, row.id)
    except db_exc.DBReferenceError:
        # A child would have locked it.
        raise exception.ProviderInUse(provider=uuid) from None
    outbox.add("resource_provider.delete", ResourceProviderPayload(
        provider_uuid=row.uuid, generation=row.generation,
        previous_generation=row.generation, name=row.name, previous_name=row.name,
        parent_provider_uuid=row.parent_uuid, root_provider_uuid=row.root_uuid,
        previous_parent_provider_uuid=row.parent_uuid,
        previous_root_provider_uuid=row.root_uuid))
