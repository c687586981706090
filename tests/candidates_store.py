# SPDX-License-Identifier: Apache-2.0
"""Worlds of the candidates model in the tables of a store."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk
from tests import candidates_model as model
from tests import candidates_random

_EMPTIED = (
    models.allocations, models.consumers, models.inventories, models.resource_provider_traits,
    models.resource_provider_aggregates, models.aggregates)
_INVENTORY = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio", "used")


def prepare(api):
    """Create the custom resource classes and traits of random worlds."""
    for name in ("CUSTOM_GOLD", "CUSTOM_RARE"):
        api.resource_class_create(None, name)
    for name in (*candidates_random.TRAITS, "CUSTOM_UNUSED"):
        if name.startswith("CUSTOM_"):
            api.create_trait(None, name)


def load(database, world):
    """Replace all providers by those of a world; there are no events about it.

    What is used is not held by any consumer.
    """
    at = bulk.now()
    times = {"created_at": at, "updated_at": at}
    ids = {each.uuid: number for number, each in enumerate(world.providers, 1)}
    aggregates = sorted(set().union(*(each.aggregates for each in world.providers)))
    aggregate_ids = {each: number for number, each in enumerate(aggregates, 1)}
    with database.writer() as tx:
        _empty(tx)
        classes, traits = (dict(tx.execute(sa.select(table.c.name, table.c.id)).all())
                           for table in (models.resource_classes, models.traits))
        # A parent has to be there before its children.
        for each in sorted(world.providers, key=lambda each: len(world.lineage(each))):
            tx.execute(sa.insert(models.resource_providers).values(
                id=ids[each.uuid], uuid=each.uuid, name=each.uuid, generation=1,
                parent_provider_id=ids.get(each.parent),
                root_provider_id=each.parent and ids[world.root(each).uuid], **times))
        for table, rows in {
                models.aggregates: [
                    {"id": id_, "uuid": each, **times} for each, id_ in aggregate_ids.items()],
                models.resource_provider_aggregates: [
                    {"resource_provider_id": ids[each.uuid], "aggregate_id": aggregate_ids[name]}
                    for each in world.providers for name in each.aggregates],
                models.resource_provider_traits: [
                    {"resource_provider_id": ids[each.uuid], "trait_id": traits[name]}
                    for each in world.providers for name in each.traits],
                models.inventories: [
                    {"resource_provider_id": ids[each.uuid], "resource_class_id": classes[name],
                     "capacity": inventory.capacity, **vars(inventory), **times}
                    for each in world.providers for name, inventory in each.inventories.items()],
        }.items():
            if rows:
                tx.execute(sa.insert(table), rows)


def _empty(tx):
    for table in _EMPTIED:
        tx.execute(sa.delete(table))
    tx.execute(sa.update(models.resource_providers).values(
        parent_provider_id=None, root_provider_id=None))
    tx.execute(sa.delete(models.resource_providers))


def read(database):
    """Return the providers of a store as a :class:`tests.candidates_model.World`."""
    providers, classes = models.resource_providers, models.resource_classes
    with database.reader() as tx:
        rows = tx.execute(providers.select()).all()
        inventories = tx.execute(sa.select(models.inventories, classes.c.name).join(classes)).all()
        traits = tx.execute(sa.select(
            models.resource_provider_traits.c.resource_provider_id, models.traits.c.name).join(
                models.traits)).all()
        aggregates = tx.execute(sa.select(
            models.resource_provider_aggregates.c.resource_provider_id, models.aggregates.c.uuid
        ).join(models.aggregates)).all()
        names = [tuple(tx.execute(sa.select(table.c.name)).scalars())
                 for table in (classes, models.traits)]
    uuids = {row.id: row.uuid for row in rows}
    found = {row.id: model.Provider(row.uuid, uuids.get(row.parent_provider_id)) for row in rows}
    for row in inventories:
        found[row.resource_provider_id].inventories[row.name] = model.Inventory(
            **{name: getattr(row, name) for name in _INVENTORY})
    for row in traits:
        found[row.resource_provider_id].traits.add(row.name)
    for row in aggregates:
        found[row.resource_provider_id].aggregates.add(row.uuid)
    return model.World(list(found.values()), *names)
