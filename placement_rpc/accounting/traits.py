# SPDX-License-Identifier: Apache-2.0
"""Create and delete traits, and give them to resource providers."""

from collections.abc import Collection

import os_traits
from oslo_db import exception as db_exc

from placement_rpc import exception
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.accounting.providers import lock, raise_generation
from placement_rpc.db import api as db
from placement_rpc.db.queries import bulk
from placement_rpc.db.queries import traits as queries
from placement_rpc.objects.payloads import ProviderTraitsPayload, TraitPayload
from placement_rpc.objects.trait import CUSTOM_PREFIX, ProviderTraits, Trait, is_custom

#: The names of the traits of os-traits. They cannot be created or deleted.
STANDARD = frozenset(os_traits.get_traits())


def create(tx: db.Connection, outbox: Outbox, name: str) -> Trait:
    """Insert a custom trait.

    :raises TraitStandard: if a standard trait has the name
    :raises InvalidInput: if a custom trait cannot have the name
    :raises TraitExists: if a custom trait has the name
    """
    if name in STANDARD:
        raise exception.TraitStandard(trait=name)
    if not is_custom(name):
        raise exception.InvalidInput(
            what="name", reason=f"{name} does not match CUSTOM_[A-Z0-9_]+")
    found = queries.page(tx, names=[name])
    if found:
        raise exception.TraitExists(trait=name, updated_at=found[0].updated_at.isoformat())
    queries.insert(tx, [name])
    outbox.add("trait.create", TraitPayload(name=name))
    return Trait(name=name, updated_at=bulk.now().isoformat())


def delete(tx: db.Connection, outbox: Outbox, name: str) -> None:
    """Delete a custom trait.

    :raises TraitStandard: if it is a standard trait
    :raises TraitNotFound: if there is no trait of the name
    :raises TraitInUse: if a provider has it
    """
    if name in STANDARD:
        raise exception.TraitStandard(trait=name)
    row = queries.lock(tx, name)
    if row is None:
        raise exception.TraitNotFound(traits=name)
    if not name.startswith(CUSTOM_PREFIX):
        # A standard one of a newer library, with which another conductor runs.
        raise exception.TraitStandard(trait=name)
    if queries.in_use(tx, row.id):
        raise exception.TraitInUse(trait=name)
    try:
        queries.delete(tx, row.id)
    except db_exc.DBReferenceError:
        raise exception.TraitInUse(trait=name) from None
    outbox.add("trait.delete", TraitPayload(name=name))


def resolve(tx: db.Connection, names: Collection[str]) -> dict[str, int]:
    """Return the row ids of traits, by name.

    :raises TraitNotFound: if some do not exist; it names all of them
    """
    found = queries.ids(tx, names) if names else {}
    missing = sorted(set(names) - set(found))
    if missing:
        raise exception.TraitNotFound(traits=", ".join(missing))
    return found


def replace(tx: db.Connection, outbox: Outbox, wanted: ProviderTraits) -> ProviderTraits:
    """Give a provider these traits and no others; the same ones change nothing.

    :param wanted: with the ``generation`` that the caller read, if it checks it
    :raises ProviderNotFound: if there is no such provider
    :raises ConcurrentUpdate: if the generation is not the current one
    :raises TraitNotFound: if a trait does not exist
    """
    row = lock(tx, wanted.provider_uuid, wanted.value("generation"))
    after, current = set(wanted.traits), queries.of_provider(tx, row.id)
    generation, updated_at = row.generation, row.updated_at
    if after != set(current):
        gone, added = set(current) - after, after - set(current)
        # Resolved before anything is written: a refusal leaves nothing behind.
        added_ids = resolve(tx, added)
        if gone:
            queries.unlink(tx, row.id, [current[name] for name in gone])
        if added:
            queries.link(tx, row.id, added_ids.values())
        generation, updated_at = raise_generation(tx, row), bulk.now()
        outbox.add("resource_provider.traits.update", ProviderTraitsPayload(
            provider_uuid=row.uuid, generation=generation, previous_generation=row.generation,
            before=sorted(current), after=sorted(after)))
    return ProviderTraits(
        provider_uuid=row.uuid, generation=generation, traits=sorted(after),
        updated_at=updated_at.isoformat())
