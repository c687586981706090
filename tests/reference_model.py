# SPDX-License-Identifier: Apache-2.0
"""A slow and obvious search for candidates, which the candidate index is compared with.

It reads all rows of a store and applies the rules of DESIGN in plain Python. It does not
trust what the service derives: it works out a capacity from total, reserved and ratio, and sums
allocations in place of the column ``used``.
"""

import dataclasses
import fractions
import math

import sqlalchemy as sa

from placement_rpc.db import models


@dataclasses.dataclass
class Inventory:
    """One inventory, with what its allocations use."""

    capacity: int
    used: int
    min_unit: int
    max_unit: int
    step_size: int

    @property
    def free(self):
        return self.capacity - self.used

    def can_give(self, amount):
        return (self.used + amount <= self.capacity
                and self.min_unit <= amount <= self.max_unit
                and amount % self.step_size == 0)


@dataclasses.dataclass
class Provider:
    """One provider, with its inventories by class name and the uuids of its aggregates."""

    id: int
    uuid: str
    name: str
    generation: int
    inventories: dict
    aggregates: set

    def fits(self, request):
        for name, amount in request.resources.items():
            if name not in self.inventories or not self.inventories[name].can_give(amount):
                return False
        for uuids in request.value("member_of") or ():
            if not self.aggregates & set(uuids):
                return False
        return not self.aggregates & set(request.value("not_member_of") or ())


def providers(database):
    """Return all providers of a store, in the order of their ids."""
    with database.reader() as tx:
        rows = {table.name: tx.execute(sa.select(table)).all() for table in (
            models.resource_providers, models.resource_classes, models.inventories,
            models.allocations, models.aggregates, models.resource_provider_aggregates)}
    classes = {row.id: row.name for row in rows["resource_classes"]}
    aggregates = {row.id: row.uuid for row in rows["aggregates"]}
    found = {row.id: Provider(row.id, row.uuid, row.name, row.generation, {}, set())
             for row in rows["resource_providers"]}
    for row in rows["inventories"]:
        found[row.resource_provider_id].inventories[classes[row.resource_class_id]] = Inventory(
            _capacity(row), 0, row.min_unit, row.max_unit, row.step_size)
    for row in rows["allocations"]:
        inventories = found[row.resource_provider_id].inventories
        inventories[classes[row.resource_class_id]].used += row.used
    for row in rows["resource_provider_aggregates"]:
        found[row.resource_provider_id].aggregates.add(aggregates[row.aggregate_id])
    return sorted(found.values(), key=lambda provider: provider.id)


def _capacity(row):
    ratio = fractions.Fraction(repr(row.allocation_ratio))
    return math.floor((row.total - row.reserved) * ratio)
