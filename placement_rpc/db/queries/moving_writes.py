# SPDX-License-Identifier: Apache-2.0
"""Write rows of another store into this one, in batches.

The rows are those of ``placement_rpc/moving/rows.py``: keys are uuids and names, and a row ends
with the times of its creation and of its last change. Each function runs in a transaction in which
no other process changes the store, since it is held.
"""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import aggregates, bulk, claims, consumer_types, resource_classes
from placement_rpc.db.queries import traits as trait_queries

_aggregate_links = models.resource_provider_aggregates
_allocations = models.allocations
_classes = models.resource_classes
_consumers = models.consumers
_inventories = models.inventories
_providers = models.resource_providers
_trait_links = models.resource_provider_traits
_traits = models.traits
_types = models.consumer_types

_TIMES = ("created_at", "updated_at")
_RULES = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio", "capacity")
_OWNER = ("project_id", "user_id", "consumer_type_id", "generation")

_INSERT_NAMES = {table.name: bulk.Insert(table, "name", *_TIMES) for table in (_traits, _types)}
_INSERT_CLASSES = bulk.Insert(_classes, "id", "name", *_TIMES)
_INSERT_PROVIDERS = bulk.Insert(_providers, "uuid", "name", "generation", *_TIMES)
_UPDATE_PROVIDERS = bulk.Update(_providers, "name", "generation", *_TIMES, stamps=False)
_SET_NAMES = bulk.Update(_providers, "name", stamps=False)
_SET_PARENTS = bulk.Update(
    _providers, "parent_provider_id", "root_provider_id", stamps=False)
_INSERT_INVENTORIES = bulk.Insert(
    _inventories, "resource_provider_id", "resource_class_id", *_RULES, "used", *_TIMES)
_UPDATE_INVENTORIES = bulk.Update(_inventories, *_RULES, *_TIMES, stamps=False)
_SET_USED = bulk.Update(_inventories, "used", stamps=False)
_INSERT_TRAIT_LINKS = bulk.Insert(_trait_links, "resource_provider_id", "trait_id")
_INSERT_AGGREGATE_LINKS = bulk.Insert(_aggregate_links, "resource_provider_id", "aggregate_id")
_INSERT_CONSUMERS = bulk.Insert(_consumers, "uuid", *_OWNER, *_TIMES)
_UPDATE_CONSUMERS = bulk.Update(_consumers, *_OWNER, *_TIMES, stamps=False)
_INSERT_ALLOCATIONS = bulk.Insert(
    _allocations, "consumer_id", "resource_provider_id", "resource_class_id", "used", *_TIMES)
_UPDATE_ALLOCATIONS = bulk.Update(_allocations, "used", *_TIMES, stamps=False)

_PROVIDERS = bulk.OverLists(lambda among: sa.select(_providers.c.uuid, _providers.c.id).where(
    among(_providers.c.uuid, "uuids")).with_hint(
        # For many uuids it would read the whole table.
        _providers, "FORCE INDEX (uq_resource_providers_uuid)", "mysql"))
_NAMED = bulk.OverLists(lambda among: sa.select(
    _providers.c.id, _providers.c.uuid, _providers.c.name).where(
        among(_providers.c.name, "names")))
_HELD = bulk.OverLists(lambda among: sa.select(
    _allocations.c.consumer_id, _allocations.c.resource_provider_id,
    _allocations.c.resource_class_id, _allocations.c.id, _allocations.c.used).where(
        among(_allocations.c.consumer_id, "ids")))
_OF_PROVIDERS = bulk.OverLists(lambda among: sa.select(
    _inventories.c.resource_provider_id, _inventories.c.resource_class_id, _inventories.c.id,
    _inventories.c.used).where(among(_inventories.c.resource_provider_id, "ids")))


def provider_ids(tx, uuids):
    """Return the row ids of providers: dict of uuid to row id."""
    return dict(tuple(row) for row in _PROVIDERS.execute(tx, {"uuids": sorted(uuids)}))


# -- classes, traits and types ----------------------------------------------------------

def insert_resource_classes(tx, rows, first_id):
    """Insert resource classes.

    :param first_id: int, the smallest id that a custom class may have
    """
    highest = tx.execute(sa.select(sa.func.max(_classes.c.id))).scalar() or 0
    _INSERT_CLASSES.execute(tx, [
        (id_, row[0], *_times(row)) for id_, row in enumerate(rows, max(first_id, highest + 1))])


def insert_traits(tx, rows):
    """Insert traits."""
    _insert_names(tx, _traits, rows)


def insert_consumer_types(tx, rows):
    """Insert types of consumers."""
    _insert_names(tx, _types, rows)


def _insert_names(tx, table, rows):
    _INSERT_NAMES[table.name].execute(tx, [(row[0], *_times(row)) for row in rows])


def delete_resource_classes(tx, keys):
    """Delete resource classes that no inventory has."""
    tx.execute(sa.delete(_classes).where(_classes.c.name.in_([name for name, in keys])))


def delete_traits(tx, keys):
    """Delete traits that no provider has."""
    tx.execute(sa.delete(_traits).where(_traits.c.name.in_([name for name, in keys])))


def delete_consumer_types(tx, keys):
    """Delete types that no consumer has.

    Nothing refers to them by a foreign key, so they may only be deleted while the store is held.
    """
    tx.execute(sa.delete(_types).where(_types.c.name.in_([name for name, in keys])))


# -- providers --------------------------------------------------------------------------

def put_providers(tx, new, changed):
    """Insert and update providers; their parents and roots are left as they are.

    Names are unique, and may be swapped between providers: one that has a name which another is to
    have gets one of its own, until it is its turn.

    :param new: rows of providers that do not exist
    :param changed: rows of providers that exist
    """
    wanted = {row.uuid: row.name for row in (*new, *changed)}
    in_the_way = [row for row in _NAMED.execute(tx, {"names": sorted(set(wanted.values()))})
                  if wanted.get(row.uuid) != row.name]
    if in_the_way:
        _SET_NAMES.execute(tx, [(row.id, f"renamed by the import: {row.uuid}")
                                for row in in_the_way])
    if new:
        _INSERT_PROVIDERS.execute(tx, [
            (row.uuid, row.name, row.generation, *_times(row)) for row in new])
    if changed:
        ids = provider_ids(tx, [row.uuid for row in changed])
        _UPDATE_PROVIDERS.execute(tx, [
            (ids[row.uuid], row.name, row.generation, *_times(row)) for row in changed])


def set_parents(tx, links):
    """Give providers parents and roots.

    :param links: list of tuples of the uuids of a provider, of its parent (None for a root) and of
        its root
    """
    ids = provider_ids(tx, {uuid for link in links for uuid in link if uuid is not None})
    _SET_PARENTS.execute(tx, [
        (ids[uuid], None, None) if parent is None else (ids[uuid], ids[parent], ids[root])
        for uuid, parent, root in links])


def detach_providers(tx, keys):
    """Take providers that are to be deleted out of their trees."""
    ids = provider_ids(tx, [uuid for uuid, in keys]).values()
    _SET_PARENTS.execute(tx, [(id_, None, None) for id_ in ids])


def delete_providers(tx, keys):
    """Delete providers to which nothing belongs."""
    ids = provider_ids(tx, [uuid for uuid, in keys])
    tx.execute(sa.delete(_providers).where(_providers.c.id.in_(ids.values())))


# -- what belongs to providers ----------------------------------------------------------

def put_inventories(tx, new, changed):
    """Insert and update inventories; what is used of them is left as it is.

    :param new: list of tuples of a row and its capacity, for inventories that do not exist
    :param changed: the same for those that exist
    """
    rows = [row for row, _ in (*new, *changed)]
    providers = provider_ids(tx, {row.provider for row in rows})
    classes = resource_classes.ids(tx, {row.resource_class for row in rows})
    if new:
        _INSERT_INVENTORIES.execute(tx, [
            (providers[row.provider], classes[row.resource_class], *_rules(row), capacity, 0,
             *_times(row)) for row, capacity in new])
    if changed:
        found = _inventory_rows(tx, {providers[row.provider] for row, _ in changed})
        _UPDATE_INVENTORIES.execute(tx, [
            (found[providers[row.provider], classes[row.resource_class]].id, *_rules(row),
             capacity, *_times(row)) for row, capacity in changed])


def _rules(row):
    return (row.total, row.reserved, row.min_unit, row.max_unit, row.step_size,
            row.allocation_ratio)


def delete_inventories(tx, keys):
    """Delete inventories that nothing is allocated from."""
    providers = provider_ids(tx, {key[0] for key in keys})
    classes = resource_classes.ids(tx, {key[1] for key in keys})
    found = _inventory_rows(tx, set(providers.values()))
    tx.execute(sa.delete(_inventories).where(_inventories.c.id.in_([
        found[providers[provider], classes[name]].id for provider, name in keys])))


def _inventory_rows(tx, ids):
    """Return the inventories of providers: dict of provider id and class id to row."""
    return {row[:2]: row for row in _OF_PROVIDERS.execute(tx, {"ids": sorted(ids)})}


def insert_provider_traits(tx, rows):
    """Give providers traits."""
    providers = provider_ids(tx, {row.provider for row in rows})
    traits = trait_queries.ids(tx, {row.trait for row in rows})
    _INSERT_TRAIT_LINKS.execute(tx, [
        (providers[row.provider], traits[row.trait]) for row in rows])


def delete_provider_traits(tx, keys):
    """Take traits from providers."""
    _unlink(tx, _trait_links.c.trait_id, keys,
            trait_queries.ids(tx, {name for _, name in keys}))


def insert_provider_aggregates(tx, rows):
    """Add providers to aggregates, which are made if they do not exist."""
    providers = provider_ids(tx, {row.provider for row in rows})
    found = aggregates.ids(tx, {row.aggregate for row in rows})
    _INSERT_AGGREGATE_LINKS.execute(tx, [
        (providers[row.provider], found[row.aggregate]) for row in rows])


def delete_provider_aggregates(tx, keys):
    """Remove providers from aggregates."""
    _unlink(tx, _aggregate_links.c.aggregate_id, keys,
            aggregates.ids(tx, {uuid for _, uuid in keys}))


def _unlink(tx, column, keys, others):
    """Delete links of providers.

    :param column: the column of the link that refers to the other end
    :param keys: list of tuples of the uuid of a provider and the key of the other end
    :param others: dict of the key of the other end to its row id
    """
    providers = provider_ids(tx, {uuid for uuid, _ in keys})
    of_other = {}
    for uuid, other in keys:
        of_other.setdefault(others[other], []).append(providers[uuid])
    for other_id, ids in of_other.items():
        tx.execute(sa.delete(column.table).where(
            column == other_id, column.table.c.resource_provider_id.in_(ids)))


# -- consumers --------------------------------------------------------------------------

def put_consumers(tx, new, changed):
    """Insert and update consumers."""
    types = consumer_types.ids(tx, {row.consumer_type for row in (*new, *changed)} - {None})
    types[None] = None

    def owner(row):
        return row.project, row.user, types[row.consumer_type], row.generation

    if new:
        _INSERT_CONSUMERS.execute(tx, [(row.uuid, *owner(row), *_times(row)) for row in new])
    if changed:
        ids = claims.consumer_ids(tx, [row.uuid for row in changed])
        _UPDATE_CONSUMERS.execute(tx, [
            (ids[row.uuid], *owner(row), *_times(row)) for row in changed])


def delete_consumers(tx, keys):
    """Delete consumers that hold nothing."""
    tx.execute(sa.delete(_consumers).where(_consumers.c.uuid.in_([uuid for uuid, in keys])))


def put_allocations(tx, new, changed):
    """Insert and update allocations, and change what is used of the inventories accordingly."""
    ids = _AllocationIds(tx, [row.key for row in (*new, *changed)])
    used = {}
    if new:
        _INSERT_ALLOCATIONS.execute(tx, [
            (*ids.of(row.key), row.used, *_times(row)) for row in new])
        for row in new:
            _add(used, ids.of(row.key)[1:], row.used)
    if changed:
        held = ids.held()
        _UPDATE_ALLOCATIONS.execute(tx, [
            (held[ids.of(row.key)].id, row.used, *_times(row)) for row in changed])
        for row in changed:
            _add(used, ids.of(row.key)[1:], row.used - held[ids.of(row.key)].used)
    _change_used(tx, used)


def delete_allocations(tx, keys):
    """Delete allocations, and change what is used of the inventories accordingly."""
    ids = _AllocationIds(tx, keys)
    held = ids.held()
    rows = [held[ids.of(key)] for key in keys]
    tx.execute(sa.delete(_allocations).where(_allocations.c.id.in_([row.id for row in rows])))
    used = {}
    for row in rows:
        _add(used, (row.resource_provider_id, row.resource_class_id), -row.used)
    _change_used(tx, used)


class _AllocationIds:
    """The row ids that the keys of allocations stand for."""

    def __init__(self, tx, keys):
        self._tx = tx
        self._consumers = claims.consumer_ids(tx, sorted({key[0] for key in keys}))
        self._providers = provider_ids(tx, {key[1] for key in keys})
        self._classes = resource_classes.ids(tx, {key[2] for key in keys})

    def of(self, key):
        """Return the ids of the consumer, the provider and the class of a key, as a tuple."""
        consumer, provider, name = key
        return self._consumers[consumer], self._providers[provider], self._classes[name]

    def held(self):
        """Return all allocations of the consumers: dict of ids, as of :meth:`of`, to row."""
        return {row[:3]: row for row in _HELD.execute(
            self._tx, {"ids": sorted(self._consumers.values())})}


def _add(used, inventory, amount):
    used[inventory] = used.get(inventory, 0) + amount


def _change_used(tx, amounts):
    """Change what is used of inventories.

    :param amounts: dict of provider id and class id to the amount that is added
    """
    found = _inventory_rows(tx, {provider_id for provider_id, _ in amounts})
    changed = [(found[key].id, found[key].used + amount)
               for key, amount in amounts.items() if amount]
    if changed:
        _SET_USED.execute(tx, changed)


def _times(row):
    """Return the times of a row; the present time for those that are not known."""
    created, updated = row[-2:]
    created = created or bulk.now()
    return created, updated or created
